/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves greeting.x, and calls it, in one process. */
#include <greeting_rpc.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int repeat(void *context, nssi_rt_request *request, const greeting *argument, int times, greeting *result) {
  (void)context, (void)request;
  result->text = strdup(argument->text);
  result->times = argument->times * times;
  return result->text != NULL ? NESSIE_OK : NESSIE_NO_MEMORY;
}

static void *serve(void *runtime) { return nssi_rt_run(runtime) == NESSIE_OK ? runtime : NULL; }

static int call(const char *url) {
  nssi_rt_client client = {NULL, 0, 0};
  char text[] = "hello";
  greeting hello = {text, 21}, answer = {NULL, 0};
  int code = nssi_rt_open(NULL, &client.runtime);
  if (code == NESSIE_OK) code = nssi_rt_connect(client.runtime, url, 10000, &client.peer);
  if (code == NESSIE_OK) code = greeter_repeat_1(&client, &hello, 2, NULL, &answer);
  if (code == NESSIE_OK) printf("%s %d\n", answer.text, answer.times);
  if (code != NESSIE_OK) fprintf(stderr, "%s: %s\n", nessie_code_name(code), nssi_rt_last_error());
  xdr_free((xdrproc_t)xdr_greeting, (char *)&answer);
  (void)nssi_rt_close(client.runtime);
  return code;
}

int main(void) {
  static greeter_1_service service;
  nssi_rt_runtime *runtime = NULL;
  pthread_t thread;
  service.repeat_1 = repeat;
  if (nssi_rt_open(NULL, &runtime) != NESSIE_OK || greeter_1_add_to(runtime, 0, &service) != NESSIE_OK) return 1;
  if (pthread_create(&thread, NULL, serve, runtime) != 0) return 1;
  const int code = call(nssi_rt_url(runtime));
  (void)nssi_rt_stop(runtime);
  pthread_join(thread, NULL);
  return nssi_rt_close(runtime) == NESSIE_OK && code == NESSIE_OK ? 0 : 1;
}
