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
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
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

namespace fs = std::filesystem;

constexpr std::string_view kComponent = "mca_", kRomio = "mca_io_romio";
constexpr const char *kRomioPrefix = "mca_io_romio_dist_";  ///< of MPI_File_open, and the others

#define NESSIE_NAME(name) #name,
constexpr std::array<const char *, NESSIE_PNETCDF_FUNCTION_COUNT> kNames = {NESSIE_PNETCDF_FUNCTIONS(NESSIE_NAME)};
#undef NESSIE_NAME

std::array<nessie_function, NESSIE_PNETCDF_FUNCTION_COUNT> functions;  // null: PnetCDF has none of the name

nessie_function native(int number) { return functions[static_cast<std::size_t>(number)]; }

Error not_loaded(Code code, const std::string &why) {
  return {code, fmt::format("the servers' PnetCDF cannot be loaded: {}", why)};
}

std::string said_by_linker() {
  const char *text = ::dlerror();
  return text == nullptr ? "?" : text;
}

// --- where they are --------------------------------------------------------------------------------------------------

/// Looked for as for any program. It does not stay loaded: the program may be about to bring another one.
Result<std::string> find_pnetcdf() {
  void *library = ::dlopen(NESSIE_PNETCDF_SONAME, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return not_loaded(Code::kNotFound, said_by_linker());
  link_map *map = nullptr;
  std::string path = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
  ::dlclose(library);
  return path;
}

int note_folder(dl_phdr_info *info, std::size_t, void *folder) {
  const fs::path path(info->dlpi_name);
  if (!path.filename().string().starts_with(kComponent)) return 0;
  *static_cast<fs::path *>(folder) = path.parent_path();
  return 1;
}

/// It lies beside the components that Open MPI has loaded.
Result<std::string> find_romio() {
  fs::path folder;
  ::dl_iterate_phdr(note_folder, &folder);
  std::error_code ignored;
  for (const auto &entry : fs::directory_iterator(folder, ignored)) {
    const auto &path = entry.path();
    if (path.extension() == ".so" && path.filename().string().starts_with(kRomio)) return path.string();
  }
  return not_loaded(Code::kNotFound, "this Open MPI has no component mca_io_romio");
}

// --- copies ----------------------------------------------------------------------------------------------------------

/// By its SONAME the copy is told from the program's own PnetCDF.
void give_other_name(std::string &library) {
  constexpr std::string_view kName("\0" NESSIE_PNETCDF_SONAME, sizeof NESSIE_PNETCDF_SONAME + 1);  // zeros around it
  const auto place = library.find(kName);
  if (place != std::string::npos)
    library.replace(place + 1, std::strlen(NESSIE_EMBEDDED_PNETCDF), NESSIE_EMBEDDED_PNETCDF);
}

/// A copy in memory, and its tables once it is loaded.
struct Copy {
  nessie::Fd file;  ///< by its number the copy is called: no other has that as long as it is open
  nessie_library library{};
};

struct Search {
  ElfW(Addr) base;
  nessie_library *library;
};

int read_tables(dl_phdr_info *info, std::size_t, void *state) {
  const auto *search = static_cast<const Search *>(state);
  return info->dlpi_addr == search->base && nessie_read_library(info, search->library) ? 1 : 0;
}

Result<Copy> load_copy(const std::string &path) {
  auto bytes = nessie::read_file(path);
  if (!bytes.ok()) return not_loaded(Code::kIo, bytes.error().message);
  give_other_name(*bytes);
  Copy copy{nessie::Fd(::memfd_create("nessie-embedded", MFD_CLOEXEC))};
  for (std::size_t done = 0; done < bytes->size();) {
    const auto written = ::write(copy.file.get(), bytes->data() + done, bytes->size() - done);
    if (written <= 0) return not_loaded(Code::kIo, std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
  void *handle = ::dlopen(fmt::format("/proc/self/fd/{}", copy.file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  link_map *map = nullptr;
  if (handle == nullptr || ::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return not_loaded(Code::kIo, said_by_linker());
  Search search{map->l_addr, &copy.library};
  if (::dl_iterate_phdr(read_tables, &search) == 0) return not_loaded(Code::kIo, path + " has no tables of symbols");
  nessie_find_own(&copy.library, "");  // which it would find in the program's, or in what stands in front of that
  return copy;
}

// --- hints -----------------------------------------------------------------------------------------------------------

// Open MPI tells which hints a file was opened with, whereas ROMIO itself tells all that it has made of them.

decltype(&MPI_File_open) romio_open;
decltype(&MPI_File_close) romio_close;
std::map<MPI_File, MPI_Info> hints;  // of files that are open

int open_with_hints(MPI_Comm comm, const char *path, int mode, MPI_Info info, MPI_File *file) {
  const int code = romio_open(comm, path, mode, info, file);
  if (code != MPI_SUCCESS) return code;
  MPI_Info kept = MPI_INFO_NULL;
  if (info == MPI_INFO_NULL)
    MPI_Info_create(&kept);
  else
    MPI_Info_dup(info, &kept);
  hints[*file] = kept;
  return code;
}

int close_with_hints(MPI_File *file) {
  const auto kept = hints.find(*file);
  const int code = romio_close(file);
  if (kept == hints.end()) return code;
  MPI_Info_free(&kept->second);
  hints.erase(kept);
  return code;
}

int get_hints(MPI_File file, MPI_Info *info) { return MPI_Info_dup(hints[file], info); }

// --- MPI-IO ----------------------------------------------------------------------------------------------------------

void *in_romio(const std::string &name, const nessie_library &romio) {
  return nessie_defined_in(&romio, fmt::format("{}{}", kRomioPrefix, name).c_str());
}

bool find_romio_functions(const nessie_library &romio) {
  romio_open = reinterpret_cast<decltype(romio_open)>(in_romio("MPI_File_open", romio));
  romio_close = reinterpret_cast<decltype(romio_close)>(in_romio("MPI_File_close", romio));
  return romio_open != nullptr && romio_close != nullptr;
}

/// It ends with an attribute of MPI_COMM_SELF: not before what the program has put there, which comes later.
void begin_romio(const nessie_library &romio) {
  int error = MPI_SUCCESS;
  if (void *symbol = nessie_defined_in(&romio, "MPIR_MPIOInit")) reinterpret_cast<void (*)(int *)>(symbol)(&error);
}

/// Where PnetCDF is to find a function. Null: it is none of MPI-IO.
void *place_of(const char *name, void *romio) {
  const std::string_view function(name);
  if (function == "MPI_File_open") return reinterpret_cast<void *>(open_with_hints);
  if (function == "MPI_File_close") return reinterpret_cast<void *>(close_with_hints);
  if (function == "MPI_File_get_info") return reinterpret_cast<void *>(get_hints);
  return function.starts_with("MPI_File_") ? in_romio(name, *static_cast<const nessie_library *>(romio)) : nullptr;
}

}  // namespace

Status load_own_pnetcdf() {
  const auto pnetcdf_path = find_pnetcdf();
  if (!pnetcdf_path.ok()) return pnetcdf_path.error();
  const auto romio_path = find_romio();
  if (!romio_path.ok()) return romio_path.error();
  auto romio = load_copy(*romio_path);
  if (!romio.ok()) return romio.error();
  if (!find_romio_functions(romio->library))
    return not_loaded(Code::kUnsupported, *romio_path + " does not show its functions");
  begin_romio(romio->library);
  const auto pnetcdf = load_copy(*pnetcdf_path);
  if (!pnetcdf.ok()) return pnetcdf.error();
  nessie_find_elsewhere(&pnetcdf->library, place_of, &romio->library);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    void *symbol = nessie_defined_in(&pnetcdf->library, kNames[i]);
    std::memcpy(&functions[i], &symbol, sizeof symbol);
  }
  nessie_native = native;
  return {};
}

}  // namespace embedded
