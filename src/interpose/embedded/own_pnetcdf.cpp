// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/embedded/own_pnetcdf.hpp>

#include <interpose/embedded/embedded_abi.h>
#include <interpose/pnetcdf/engine_abi.h>
#include <interpose/symbols.h>
#include <base/fd.hpp>
#include <base/file.hpp>

#include "functions.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

/// For native_entries.c.
extern "C" {
extern nessie_function (*nessie_native)(int);
nessie_function (*nessie_native)(int) = nullptr;
}

namespace embedded {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

#define NESSIE_NAME(name) #name,
constexpr std::array<const char *, NESSIE_PNETCDF_FUNCTION_COUNT> kNames = {NESSIE_PNETCDF_FUNCTIONS(NESSIE_NAME)};
#undef NESSIE_NAME

std::array<nessie_function, NESSIE_PNETCDF_FUNCTION_COUNT> functions;  // null: PnetCDF has none of the name

Error not_loaded(Code code, const std::string &why) {
  return {code, fmt::format("the servers' PnetCDF cannot be loaded: {}", why)};
}

std::string said_by_linker() {
  const char *text = ::dlerror();
  return text == nullptr ? "?" : text;
}

/// Looked for as for any program. It does not stay loaded: the program may be about to bring another one.
Result<std::string> find_library() {
  void *library = ::dlopen(NESSIE_PNETCDF_SONAME, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return not_loaded(Code::kNotFound, said_by_linker());
  link_map *map = nullptr;
  std::string path = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
  ::dlclose(library);
  return path;
}

/// By its SONAME the copy is told from the program's own PnetCDF.
void give_other_name(std::string &library) {
  constexpr std::string_view kName("\0" NESSIE_PNETCDF_SONAME, sizeof NESSIE_PNETCDF_SONAME + 1);  // zeros around it
  const auto place = library.find(kName);
  if (place != std::string::npos)
    library.replace(place + 1, std::strlen(NESSIE_EMBEDDED_PNETCDF), NESSIE_EMBEDDED_PNETCDF);
}

Result<nessie::Fd> copy_of(std::string library) {
  give_other_name(library);
  nessie::Fd copy(::memfd_create("nessie-pnetcdf", MFD_CLOEXEC));
  for (std::size_t done = 0; done < library.size();) {
    const auto written = ::write(copy.get(), library.data() + done, library.size() - done);
    if (written <= 0) return not_loaded(Code::kIo, std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
  return copy;
}

/// What it calls of itself it would find in the program's PnetCDF, or in what stands in front of that.
int take_functions(dl_phdr_info *info, std::size_t, void *) {
  nessie_library library;
  if (!nessie_read_library(info, &library) || !std::string_view(library.soname).starts_with(NESSIE_EMBEDDED_PNETCDF))
    return 0;
  nessie_find_own(&library, "");
  for (std::size_t i = 0; i < functions.size(); ++i) {
    void *symbol = nessie_defined_in(&library, kNames[i]);
    std::memcpy(&functions[i], &symbol, sizeof symbol);
  }
  return functions[0] != nullptr;
}

nessie_function native(int number) { return functions[static_cast<std::size_t>(number)]; }

}  // namespace

Status load_own_pnetcdf() {
  const auto path = find_library();
  if (!path.ok()) return path.error();
  auto bytes = nessie::read_file(*path);
  if (!bytes.ok()) return not_loaded(Code::kIo, bytes.error().message);
  const auto copy = copy_of(*std::move(bytes));
  if (!copy.ok()) return copy.error();
  if (::dlopen(fmt::format("/proc/self/fd/{}", copy->get()).c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
    return not_loaded(Code::kIo, said_by_linker());
  if (::dl_iterate_phdr(take_functions, nullptr) == 0)
    return not_loaded(Code::kIo, fmt::format("{} has no functions of PnetCDF", *path));
  nessie_native = native;
  return {};
}

}  // namespace embedded
