// SPDX-License-Identifier: BSD-3-Clause
// UCX, loaded when the first process asks for it, not when it starts: loading it installs signal handlers and looks for
// devices, which a program that never leaves its node should not pay for.
#pragma once

#include <nessie/result.hpp>

#include <ucp/api/ucp.h>

namespace nnti::ucx {

/// What of UCX is used.
struct Library {
  decltype(&::ucp_get_version) get_version = nullptr;
  decltype(&::ucp_config_read) config_read = nullptr;
  decltype(&::ucp_config_modify) config_modify = nullptr;
  decltype(&::ucp_config_release) config_release = nullptr;
  decltype(&::ucp_init_version) init_version = nullptr;
  decltype(&::ucp_cleanup) cleanup = nullptr;
  decltype(&::ucp_context_print_info) context_print_info = nullptr;
  decltype(&::ucp_worker_create) worker_create = nullptr;
  decltype(&::ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&::ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&::ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&::ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&::ucp_worker_arm) worker_arm = nullptr;
  decltype(&::ucp_worker_progress) worker_progress = nullptr;
  decltype(&::ucp_worker_set_am_recv_handler) worker_set_am_recv_handler = nullptr;
  decltype(&::ucp_ep_create) ep_create = nullptr;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&::ucp_ep_print_info) ep_print_info = nullptr;
  decltype(&::ucp_am_send_nbx) am_send_nbx = nullptr;
  decltype(&::ucp_am_recv_data_nbx) am_recv_data_nbx = nullptr;
  decltype(&::ucp_request_check_status) request_check_status = nullptr;
  decltype(&::ucp_request_free) request_free = nullptr;
  decltype(&::ucs_status_string) status_string = nullptr;
};

inline constexpr unsigned kOldestMajor = 1, kOldestMinor = 12;

/// The functions of the library called `soname`, loaded for the rest of the process's life. kUnsupported, with a
/// sentence that says what to install: there is none, or it is older than kOldestMajor.kOldestMinor.
nessie::Result<Library> load_library(const char *soname);

/// Loads UCX, once, for the rest of the process's life. kUnsupported, with the loader's reason, if there is none.
/// The process's signal handlers stay as they are, and UCX prints nothing, unless the user set UCX_HANDLE_ERRORS or
/// UCX_LOG_LEVEL, or something else in the process (an MPI library) has loaded UCX before.
nessie::Result<const Library *> load_library();

/// What load_library() loaded. Only after it succeeded.
const Library &library();

}  // namespace nnti::ucx
