// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transport/module.hpp"

#include <base/config.hpp>

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace nnti {
namespace {

constexpr const char *kLibrary = "libnessie_transport_mpi.so";

/// Where it may lie: beside the file that has this code; where it was installed; wherever the loader looks.
std::vector<std::string> candidates(const nessie::Config &config) {
  if (auto named = config.get("nnti.mpi.library")) return {*named};
  std::vector<std::string> paths;
  if (Dl_info here{};
      ::dladdr(reinterpret_cast<const void *>(&loaded_mpi_kind), &here) != 0 && here.dli_fname != nullptr) {
    std::error_code none;
    // A program that was found along PATH has its name there, and none of the current folder's files is meant.
    const bool is_path = std::string_view(here.dli_fname).find('/') != std::string_view::npos;
    const auto file = std::filesystem::canonical(is_path ? here.dli_fname : "/proc/self/exe", none);
    if (!none)
      for (const char *folder : {".", "../lib", "../.."})  // a package of Python's lies in lib/python/nessie
        paths.push_back((file.parent_path() / folder / kLibrary).lexically_normal().string());
  }
  paths.push_back(fmt::format("{}/{}", NESSIE_LIBDIR, kLibrary));
  paths.emplace_back(kLibrary);
  return paths;
}

/// Two MPIs in one process would be taken for each other.
Status check_mpi_of_process() {
  using GetVersion = int (*)(char *, int *);
  const auto get_version = reinterpret_cast<GetVersion>(::dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (get_version == nullptr) return {};
  std::string text(8192, '\0');  // at least MPI_MAX_LIBRARY_VERSION_STRING, of every MPI
  int length = 0;
  get_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(std::max(length, 0)));
  if (text.starts_with(NESSIE_MPI_FLAVOUR)) return {};
  return Error{Code::kUnsupported,
               fmt::format("this process runs {}, and Nessie was built with {}; build it with the program's MPI",
                           text.substr(0, text.find_first_of(",\n:")), NESSIE_MPI_FLAVOUR),
               nessie::Scope::kProcess};
}

/// MPI loads parts of itself, which look for its functions among those that all may see.
void *load(const std::vector<std::string> &paths, std::string &problem) {
  for (const auto &path : paths) {
    const bool may_be_there = path.find('/') == std::string::npos || std::filesystem::exists(path);
    if (!may_be_there && paths.size() > 1) continue;
    if (void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE)) return handle;
    problem = ::dlerror();
  }
  return nullptr;
}

Result<const TransportKind *> load_module(const nessie::Config &config) {
  static std::mutex mutex;
  static const TransportKind *loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded != nullptr) return loaded;
  if (auto status = check_mpi_of_process(); !status.ok()) return status.error();
  std::string problem;
  void *handle = load(candidates(config), problem);
  if (handle == nullptr)
    return Error{
        Code::kUnsupported,
        fmt::format("the transport's library cannot be loaded ({}); nnti.mpi.library may say where it is", problem),
        nessie::Scope::kProcess};
  const auto *module = static_cast<const TransportModule *>(::dlsym(handle, kTransportModuleSymbol));
  if (module == nullptr || std::string_view(module->version) != NESSIE_VERSION)
    return Error{Code::kUnsupported,
                 fmt::format("the transport's library is of Nessie {}, and the program of {}; install both alike",
                             module == nullptr ? "an unknown version" : module->version, NESSIE_VERSION),
                 nessie::Scope::kProcess};
  return loaded = module->kind;
}

TransportInfo survey(const nessie::Config &config) {
  const auto kind = load_module(config);
  return kind.ok() ? (*kind)->survey(config) : TransportInfo{"mpi", false, kind.error().message};
}

Result<std::unique_ptr<Transport>> open(const TransportOptions &options) {
  const auto kind = load_module(options.config);
  if (!kind.ok()) return kind.error();
  return (*kind)->open(options);
}

}  // namespace

const TransportKind &loaded_mpi_kind() {
  static constexpr TransportKind kKind{"mpi", survey, open, Reliability::kAlways, true, true};
  return kKind;
}

}  // namespace nnti
