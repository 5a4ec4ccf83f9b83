// SPDX-License-Identifier: BSD-3-Clause
#include "version.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>
#include <pnetcdf.h>

namespace nessie::cli {

namespace {

/// A function of a library that is opened only now: to load both takes longer than all the rest of a command's start.
/// Null: the library is not there, or has no such function.
template <class Function> Function *function_of(const char *library, const char *name) {
  void *opened = ::dlopen(library, RTLD_LAZY | RTLD_GLOBAL);  // its plug-ins look for it
  return opened == nullptr ? nullptr : reinterpret_cast<Function *>(::dlsym(opened, name));
}

constexpr const char *kMissing = "not found";

}  // namespace

std::string pnetcdf_version() {
  auto *version = function_of<decltype(ncmpi_inq_libvers)>(NESSIE_PNETCDF_SONAME, "ncmpi_inq_libvers");
  return version == nullptr ? kMissing : version();
}

std::string mpi_version() {
  auto *version = function_of<decltype(MPI_Get_library_version)>(NESSIE_MPI_SONAME, "MPI_Get_library_version");
  if (version == nullptr) return kMissing;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  version(text, &length);        // needs no MPI_Init
  const std::string all = text;  // Open MPI counts the terminator, too
  return all.substr(0, all.find('\n'));
}

std::string pnetcdf_built_for() { return PNETCDF_VERSION; }

#ifdef OPEN_MPI
MpiFlavour mpi_flavour_built_for() { return MpiFlavour::kOpenMpi; }
std::string mpi_built_for() {
  return fmt::format("{}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
}
#else
MpiFlavour mpi_flavour_built_for() { return MpiFlavour::kMpich; }
std::string mpi_built_for() { return MPICH_VERSION; }
#endif

std::string version() {
  return fmt::format("nessie {}\nPnetCDF: {}\nMPI: {}", NESSIE_VERSION, pnetcdf_version(), mpi_version());
}

}  // namespace nessie::cli
