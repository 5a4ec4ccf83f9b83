/* SPDX-License-Identifier: BSD-3-Clause */
/* A UCX that is too old: it has every function that is used, and says that it is 1.11.2. */
#define STUB(name) \
  void name(void) {}
STUB(ucp_config_read)
STUB(ucp_config_modify)
STUB(ucp_config_release)
STUB(ucp_init_version)
STUB(ucp_cleanup)
STUB(ucp_context_print_info)
STUB(ucp_worker_create)
STUB(ucp_worker_destroy)
STUB(ucp_worker_get_address)
STUB(ucp_worker_release_address)
STUB(ucp_worker_get_efd)
STUB(ucp_worker_arm)
STUB(ucp_worker_progress)
STUB(ucp_worker_set_am_recv_handler)
STUB(ucp_ep_create)
STUB(ucp_ep_close_nbx)
STUB(ucp_ep_print_info)
STUB(ucp_am_send_nbx)
STUB(ucp_am_recv_data_nbx)
STUB(ucp_request_check_status)
STUB(ucp_request_free)
STUB(ucs_status_string)

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release) {
  *major = 1;
  *minor = 11;
  *release = 2;
}
