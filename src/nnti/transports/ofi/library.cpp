// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/library.hpp"

#include <base/signals.hpp>

#include <dlfcn.h>
#include <fmt/core.h>

namespace nnti::ofi {
namespace {

constexpr const char *kSoname = "libfabric.so.1";

struct Loaded {
  Library functions;
  std::string problem;
};

template <class F> void resolve(void *handle, const char *name, F &function, std::string &problem) {
  function = reinterpret_cast<F>(::dlsym(handle, name));
  if (function == nullptr && problem.empty())
    problem = fmt::format("{} lacks {}; install libfabric 1.14 or newer", kSoname, name);
}

Loaded load() {
  Loaded loaded;
  void *handle = [] {
    const nessie::SignalHandlersKept kept;  // libinfinipath, which Debian's libfabric needs, installs its own
    return ::dlopen(kSoname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  }();
  if (handle == nullptr) {
    loaded.problem = fmt::format("libfabric cannot be loaded: {}", ::dlerror());
    return loaded;
  }
  resolve(handle, "fi_getinfo", loaded.functions.getinfo, loaded.problem);
  resolve(handle, "fi_freeinfo", loaded.functions.freeinfo, loaded.problem);
  resolve(handle, "fi_dupinfo", loaded.functions.dupinfo, loaded.problem);
  resolve(handle, "fi_fabric", loaded.functions.fabric, loaded.problem);
  resolve(handle, "fi_strerror", loaded.functions.strerror, loaded.problem);
  return loaded;
}

Loaded &loaded() {
  static Loaded once = load();
  return once;
}

}  // namespace

nessie::Result<const Library *> load_library() {
  if (!loaded().problem.empty()) return nessie::Error{nessie::Code::kUnsupported, loaded().problem};
  return &loaded().functions;
}

const Library &library() { return loaded().functions; }

void substitute_library(const Library &functions) { loaded().functions = functions; }

}  // namespace nnti::ofi
