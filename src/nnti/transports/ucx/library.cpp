// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ucx/library.hpp"

#include <base/host.hpp>
#include <base/signals.hpp>

#include <dlfcn.h>
#include <fmt/core.h>

#include <climits>
#include <cstdlib>
#include <optional>

namespace nnti::ucx {
namespace {

constexpr const char *kSoname = "libucp.so.0";
constexpr const char *kServicesSoname = "libucs.so.0";

nessie::Error unusable(std::string why) { return {nessie::Code::kUnsupported, std::move(why)}; }

/// Looks functions up, and remembers the first that is missing.
class Resolver {
 public:
  explicit Resolver(void *handle) : handle_(handle) {}
  template <class F> void operator()(const char *name, F &function) {
    function = reinterpret_cast<F>(::dlsym(handle_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char *missing() const { return missing_; }

 private:
  void *handle_;
  const char *missing_ = nullptr;
};

void resolve_all(Resolver &resolve, Library &ucx) {
  resolve("ucp_get_version", ucx.get_version);
  resolve("ucp_config_read", ucx.config_read);
  resolve("ucp_config_modify", ucx.config_modify);
  resolve("ucp_config_release", ucx.config_release);
  resolve("ucp_init_version", ucx.init_version);
  resolve("ucp_cleanup", ucx.cleanup);
  resolve("ucp_context_print_info", ucx.context_print_info);
  resolve("ucp_worker_create", ucx.worker_create);
  resolve("ucp_worker_destroy", ucx.worker_destroy);
  resolve("ucp_worker_get_address", ucx.worker_get_address);
  resolve("ucp_worker_release_address", ucx.worker_release_address);
  resolve("ucp_worker_get_efd", ucx.worker_get_efd);
  resolve("ucp_worker_arm", ucx.worker_arm);
  resolve("ucp_worker_progress", ucx.worker_progress);
  resolve("ucp_worker_set_am_recv_handler", ucx.worker_set_am_recv_handler);
  resolve("ucp_ep_create", ucx.ep_create);
  resolve("ucp_ep_close_nbx", ucx.ep_close_nbx);
  resolve("ucp_ep_print_info", ucx.ep_print_info);
  resolve("ucp_am_send_nbx", ucx.am_send_nbx);
  resolve("ucp_am_recv_data_nbx", ucx.am_recv_data_nbx);
  resolve("ucp_request_check_status", ucx.request_check_status);
  resolve("ucp_request_free", ucx.request_free);
  resolve("ucs_status_string", ucx.status_string);
}

/// What only UCX's service library can be told: it reads its own settings as it is loaded.
void set_global_option(void *handle, const char *name, const char *value) {
  if (std::getenv(fmt::format("UCX_{}", name).c_str()) != nullptr) return;
  auto set =
      reinterpret_cast<ucs_status_t (*)(const char *, const char *)>(::dlsym(handle, "ucs_global_opts_set_value"));
  if (set != nullptr) set(name, value);
}

nessie::Status check_version(const Library &ucx, const char *soname) {
  unsigned major = 0, minor = 0, release = 0;
  ucx.get_version(&major, &minor, &release);
  if (major == kOldestMajor && minor >= kOldestMinor) return {};
  return unusable(fmt::format("{} is UCX {}.{}.{}, which Nessie cannot use; install UCX {}.{} or a newer {}.x", soname,
                              major, minor, release, kOldestMajor, kOldestMinor, kOldestMajor));
}

/// The library of the system, with the process's signals and standard output left alone.
nessie::Result<Library> load_quietly() {
  const bool in_use = ::dlopen(kServicesSoname, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  std::optional<nessie::SignalHandlersKept> kept;
  if (!in_use && std::getenv("UCX_HANDLE_ERRORS") == nullptr) kept.emplace();
  auto loaded = load_library(kSoname);
  kept.reset();
  if (in_use || !loaded.ok()) return loaded;
  void *handle = ::dlopen(kSoname, RTLD_NOW | RTLD_NOLOAD);
  set_global_option(handle, "HANDLE_ERRORS", "none");
  set_global_option(handle, "LOG_LEVEL", "fatal");
  return loaded;
}

/// UCX 1.13's constructor copies the host's name to where one of the longest that Linux has does not fit, and the C
/// library ends the process for it.
bool host_name_is_too_long() { return nessie::host_name().size() >= HOST_NAME_MAX; }

const nessie::Result<Library> &loaded() {
  static const nessie::Result<Library> once =
      host_name_is_too_long() ? unusable(
                                    "this host's name is too long for UCX, which would end the process over it; use "
                                    "another transport, or give the host a shorter name")
                              : load_quietly();
  return once;
}

}  // namespace

nessie::Result<Library> load_library(const char *soname) {
  void *handle = ::dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr)
    return unusable(fmt::format("UCX cannot be loaded: {}; install UCX {}.{} or newer (libucx0)", ::dlerror(),
                                kOldestMajor, kOldestMinor));
  Library functions;
  Resolver resolve(handle);
  resolve_all(resolve, functions);
  if (resolve.missing() != nullptr)
    return unusable(
        fmt::format("{} lacks {}; install UCX {}.{} or newer", soname, resolve.missing(), kOldestMajor, kOldestMinor));
  if (auto status = check_version(functions, soname); !status.ok()) return status.error();
  return functions;
}

nessie::Result<const Library *> load_library() {
  if (!loaded().ok()) return loaded().error();
  return &*loaded();
}

const Library &library() {
  static const Library &functions = *loaded();
  return functions;
}

}  // namespace nnti::ucx
