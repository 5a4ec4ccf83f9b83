/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in progress, as in Trios 12. */
#ifndef TRIOS_NSSI_REQUEST_H
#define TRIOS_NSSI_REQUEST_H

#include "Trios_nssi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nssi_request_status {
  NSSI_REQUEST_ERROR = -1,
  NSSI_REQUEST_NULL = 0,
  NSSI_SENDING_REQUEST = 1,
  NSSI_PROCESSING_REQUEST = 2,
  NSSI_PROCESSING_RESULT = 3,
  NSSI_REQUEST_TIMEDOUT = 4,
  NSSI_REQUEST_COMPLETE = 5
} nssi_request_status;

/* A call. `args`, `data` and `result` are its caller's, and stay as they are until it is complete. */
typedef struct nssi_request {
  nssi_size id; /* private; 0: not in progress */
  const nssi_service *svc;
  int opcode;
  void *args;
  void *data;
  nssi_size data_size;
  void *result;
  nssi_request_status status;
  int error_code; /* once it is complete: what went wrong with the call, or what its stub answered */

  /* To be set between nssi_create_request() and nssi_send_request(): */
  int is_responseless; /* nobody waits for an answer; without `data` and `result` */
  int is_sync;         /* nssi_send_request() waits, for sync_timeout ms, -1: until the call's own deadline */
  int sync_timeout;
  int (*callback)(struct nssi_request *request); /* called within the wait that completes the request */
  void *callback_args;
  /* Memory of the caller's for the parts of a request. Nessie needs none: these are taken, and not used. */
  int app_pinned_short_request, app_pinned_long_args, app_pinned_bulk_data, app_pinned_short_result;
  NNTI_buffer_t *short_request_hdl, *long_args_hdl, *bulk_data_hdl, *short_result_hdl;
} nssi_request;

#ifdef __cplusplus
}
#endif
#endif
