/* SPDX-License-Identifier: BSD-3-Clause */
/* The service of fields.x in C. */
#include <stdlib.h>
#include <string.h>

#include "fields_c.h"
#include "fields_rpc.h"

static int nothing(void *context, nssi_rt_request *request) {
  (void)context, (void)request;
  return NESSIE_OK;
}

static int add(void *context, nssi_rt_request *request, int a, u_quad_t b, quad_t *sum) {
  (void)context, (void)request;
  *sum = a + (quad_t)b;
  return NESSIE_OK;
}

static int add_three(void *context, nssi_rt_request *request, int a, int b, int c, int *sum) {
  (void)context, (void)request;
  *sum = a + b + c;
  return NESSIE_OK;
}

/* --- bulk data ---------------------------------------------------------------------------------------------------- */

/* Room for all of the caller's data. */
static int make_field(nssi_rt_request *request, double **field, uint64_t *size) {
  const uint64_t size_bytes = nssi_rt_data_bytes(request);
  *size = size_bytes / sizeof **field;
  *field = malloc(size_bytes + 1);
  return *field != NULL ? NESSIE_OK : NESSIE_NO_MEMORY;
}

static int pull(nssi_rt_request *request, double **field, uint64_t *size) {
  const int code = make_field(request, field, size);
  return code == NESSIE_OK ? nssi_rt_get_data(request, *field, *size * sizeof **field, 0) : code;
}

static int measure(void *context, nssi_rt_request *request, moments *result) {
  double *field = NULL;
  uint64_t size = 0;
  const int code = pull(request, &field, &size);
  (void)context;
  for (uint64_t i = 0; code == NESSIE_OK && i < size; ++i) {
    result->sum += field[i];
    if (i == 0 || field[i] < result->least) result->least = field[i];
    if (i == 0 || field[i] > result->greatest) result->greatest = field[i];
  }
  free(field);
  return code;
}

static int scale(void *context, nssi_rt_request *request, double factor) {
  double *field = NULL;
  uint64_t size = 0;
  int code = pull(request, &field, &size);
  (void)context;
  for (uint64_t i = 0; code == NESSIE_OK && i < size; ++i) field[i] *= factor;
  if (code == NESSIE_OK) code = nssi_rt_put_data(request, field, size * sizeof *field, 0);
  free(field);
  return code;
}

static int ramp(void *context, nssi_rt_request *request, axis along) {
  double *field = NULL;
  uint64_t size = 0;
  int code = make_field(request, &field, &size);
  (void)context;
  for (uint64_t i = 0; code == NESSIE_OK && i < size; ++i) field[i] = (double)((i + 1) * along);
  if (code == NESSIE_OK) code = nssi_rt_put_data(request, field, size * sizeof *field, 0);
  free(field);
  return code;
}

/* --- values of every kind ----------------------------------------------------------------------------------------- */

static int greet(void *context, nssi_rt_request *request, const char *name, const title *its_title, char **greeting) {
  (void)context, (void)request;
  *greeting = malloc(strlen(name) + strlen(*its_title) + sizeof "hello , ");
  if (*greeting == NULL) return NESSIE_NO_MEMORY;
  strcpy(*greeting, "hello ");
  strcat(*greeting, name);
  strcat(*greeting, ", ");
  strcat(*greeting, *its_title);
  return NESSIE_OK;
}

static int blend(void *context, nssi_rt_request *request, weights from, float factor, weights to) {
  (void)context, (void)request;
  for (int i = 0; i < 4; ++i) to[i] = from[i] * (double)factor;
  return NESSIE_OK;
}

/* What is borrowed is answered before it goes. */
static int find(void *context, nssi_rt_request *request, const stamp *what, bool_t is_here, found *result) {
  found it = {is_here, {*what}};
  (void)context, (void)result;
  return fields_find_1_reply(request, &it);
}

static int reverse(void *context, nssi_rt_request *request, const route *from, route *to) {
  (void)context, (void)request;
  for (const stop *each = *from; each != NULL; each = each->next) {
    stop *made = malloc(sizeof *made);
    if (made == NULL) return NESSIE_NO_MEMORY;
    *made = (stop){strdup(each->place), *to};
    *to = made;
    if (made->place == NULL) return NESSIE_NO_MEMORY;
  }
  return NESSIE_OK;
}

static int turn(const tree *from, tree *to) {
  const u_int n = from->children.children_len;
  to->value = from->value;
  to->children.children_val = calloc(n + 1, sizeof *to->children.children_val);
  if (to->children.children_val == NULL) return NESSIE_NO_MEMORY;
  to->children.children_len = n;
  for (u_int i = 0; i < n; ++i)
    if (turn(&from->children.children_val[i], &to->children.children_val[n - 1 - i]) != NESSIE_OK)
      return NESSIE_NO_MEMORY;
  return NESSIE_OK;
}

static int mirror(void *context, nssi_rt_request *request, const tree *from, tree *to) {
  (void)context, (void)request;
  return turn(from, to);
}

static int half(void *context, nssi_rt_request *request, const maybe *number, maybe *result) {
  (void)context, (void)request;
  if (*number == NULL) return NESSIE_OK;
  *result = malloc(sizeof **result);
  if (*result == NULL) return NESSIE_NO_MEMORY;
  **result = **number / 2;
  return NESSIE_OK;
}

static int echo(void *context, nssi_rt_request *request, const octets *bytes, octets *result) {
  (void)context, (void)result;
  return fields_echo_1_reply(request, bytes);
}

static int pick(void *context, nssi_rt_request *request, const titles *from, const axes *which, titles *result) {
  title picked[3];
  titles all = {which->axes_len, picked};
  (void)context, (void)result;
  for (u_int i = 0; i < which->axes_len; ++i) {
    if (which->axes_val[i] > from->titles_len) return NESSIE_OUT_OF_RANGE;
    picked[i] = from->titles_val[which->axes_val[i] - 1];
  }
  return fields_pick_1_reply(request, &all);
}

static int shift(void *context, nssi_rt_request *request, const history *from, double by, history *to) {
  (void)context, (void)request;
  to->history_val = malloc(from->history_len * sizeof *to->history_val + 1);
  if (to->history_val == NULL) return NESSIE_NO_MEMORY;
  to->history_len = from->history_len;
  for (u_int i = 0; i < from->history_len; ++i) {
    const moments *each = &from->history_val[i];
    to->history_val[i] = (moments){each->sum, each->least + by, each->greatest + by};
  }
  return NESSIE_OK;
}

/* --- time and errors ---------------------------------------------------------------------------------------------- */

static int rest(void *context, nssi_rt_request *request, u_int time_ms, int *rested) {
  (void)request;
  *rested = (int)time_ms;
  return nssi_rt_sleep(context, (int32_t)time_ms);
}

static int refuse(void *context, nssi_rt_request *request, int cause, int *result) {
  (void)context, (void)result;
  return nssi_rt_reply_error(request, NESSIE_IO, NSSI_RT_SCOPE_SERVICE, cause, "No space left on device: free some");
}

/* Of more than twenty characters the result breaks the interface. */
static int repeat(void *context, nssi_rt_request *request, const title *what, int times, title *result) {
  const size_t count = times > 0 ? (size_t)times : 0;
  (void)context, (void)request;
  *result = calloc(strlen(*what) * count + 1, 1);
  if (*result == NULL) return NESSIE_NO_MEMORY;
  for (size_t i = 0; i < count; ++i) strcat(*result, *what);
  return NESSIE_OK;
}

static int32_t kind_of(void *context, uint32_t op) {
  (void)context;
  return op == ADD ? NSSI_RT_SHORT : NSSI_RT_FIBER;
}

int fields_offer(nssi_rt_runtime *runtime) {
  static fields_1_service first;
  static const fields_2_service second = {.add_2 = add_three};
  first = (fields_1_service){runtime, kind_of, nothing, add,  measure, scale, ramp, greet,  blend, find,
                             reverse, mirror,  half,    echo, pick,    shift, rest, refuse, repeat};
  const int code = fields_1_add_to(runtime, 0, &first);
  return code == NESSIE_OK ? fields_2_add_to(runtime, 5, &second) : code;
}
