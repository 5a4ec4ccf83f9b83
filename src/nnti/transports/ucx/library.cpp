// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/library.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <signal.h>

#include <array>
#include <cstdlib>

namespace nnti::ucx {
namespace {

constexpr const char *kSoname = "libucp.so.0";
constexpr const char *kServicesSoname = "libucs.so.0";

struct Loaded {
  Library functions;
  std::string problem;
};

/// The handlers of all signals, as they were when it was made.
class SignalHandlers {
 public:
  SignalHandlers() {
    for (int signal = 1; signal < NSIG; ++signal) known_[signal] = ::sigaction(signal, nullptr, &actions_[signal]) == 0;
  }
  void restore() const {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction now {};
      if (!known_[signal] || ::sigaction(signal, nullptr, &now) != 0) continue;
      if (now.sa_handler != actions_[signal].sa_handler) ::sigaction(signal, &actions_[signal], nullptr);
    }
  }

 private:
  std::array<struct sigaction, NSIG> actions_{};
  std::array<bool, NSIG> known_{};
};

template <class F> void resolve(void *handle, const char *name, F &function, std::string &problem) {
  function = reinterpret_cast<F>(::dlsym(handle, name));
  if (function == nullptr && problem.empty())
    problem = fmt::format("{} lacks {}; install UCX 1.12 or newer", kSoname, name);
}

void resolve_all(void *handle, Library &ucx, std::string &problem) {
  resolve(handle, "ucp_config_read", ucx.config_read, problem);
  resolve(handle, "ucp_config_modify", ucx.config_modify, problem);
  resolve(handle, "ucp_config_release", ucx.config_release, problem);
  resolve(handle, "ucp_init_version", ucx.init_version, problem);
  resolve(handle, "ucp_cleanup", ucx.cleanup, problem);
  resolve(handle, "ucp_context_print_info", ucx.context_print_info, problem);
  resolve(handle, "ucp_worker_create", ucx.worker_create, problem);
  resolve(handle, "ucp_worker_destroy", ucx.worker_destroy, problem);
  resolve(handle, "ucp_worker_get_address", ucx.worker_get_address, problem);
  resolve(handle, "ucp_worker_release_address", ucx.worker_release_address, problem);
  resolve(handle, "ucp_worker_get_efd", ucx.worker_get_efd, problem);
  resolve(handle, "ucp_worker_arm", ucx.worker_arm, problem);
  resolve(handle, "ucp_worker_progress", ucx.worker_progress, problem);
  resolve(handle, "ucp_worker_set_am_recv_handler", ucx.worker_set_am_recv_handler, problem);
  resolve(handle, "ucp_ep_create", ucx.ep_create, problem);
  resolve(handle, "ucp_ep_close_nbx", ucx.ep_close_nbx, problem);
  resolve(handle, "ucp_ep_print_info", ucx.ep_print_info, problem);
  resolve(handle, "ucp_am_send_nbx", ucx.am_send_nbx, problem);
  resolve(handle, "ucp_am_recv_data_nbx", ucx.am_recv_data_nbx, problem);
  resolve(handle, "ucp_request_check_status", ucx.request_check_status, problem);
  resolve(handle, "ucp_request_free", ucx.request_free, problem);
  resolve(handle, "ucs_status_string", ucx.status_string, problem);
}

/// What only UCX's service library can be told: it reads its own settings as it is loaded.
void set_global_option(void *handle, const char *name, const char *value) {
  if (std::getenv(fmt::format("UCX_{}", name).c_str()) != nullptr) return;
  auto set = reinterpret_cast<ucs_status_t (*)(const char *, const char *)>(::dlsym(handle, "ucs_global_opts_set_value"));
  if (set != nullptr) set(name, value);
}

Loaded load() {
  Loaded loaded;
  const bool in_use = ::dlopen(kServicesSoname, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  const SignalHandlers handlers;
  void *handle = ::dlopen(kSoname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    loaded.problem = fmt::format("UCX cannot be loaded: {}", ::dlerror());
    return loaded;
  }
  resolve_all(handle, loaded.functions, loaded.problem);
  if (in_use) return loaded;
  if (std::getenv("UCX_HANDLE_ERRORS") == nullptr) handlers.restore();
  set_global_option(handle, "HANDLE_ERRORS", "none");
  set_global_option(handle, "LOG_LEVEL", "fatal");
  return loaded;
}

const Loaded &loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

nessie::Result<const Library *> load_library() {
  if (!loaded().problem.empty()) return nessie::Error{nessie::Code::kUnsupported, loaded().problem};
  return &loaded().functions;
}

const Library &library() { return loaded().functions; }

}  // namespace nnti::ucx
