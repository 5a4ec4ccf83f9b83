/* SPDX-License-Identifier: BSD-3-Clause */
/* A service written for Trios: prints where it can be reached. */
#include <Trios_nssi_client.h>
#include <Trios_nssi_server.h>

#include <stdio.h>

int main(void) {
  nssi_service service;
  if (nssi_rpc_init(NSSI_RPC_SHM, NSSI_DEFAULT_ENCODE, NULL) != NSSI_OK) return 1;
  if (nssi_service_init(NSSI_RPC_SHM, NSSI_SHORT_REQUEST_SIZE, &service) != NSSI_OK) return 1;
  printf("%s\n", service.svc_host.url);
  return nssi_rpc_fini(NSSI_RPC_SHM) == NSSI_OK ? 0 : 1;
}
