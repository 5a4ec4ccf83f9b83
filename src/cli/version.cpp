// SPDX-License-Identifier: BSD-3-Clause
#include "version.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <pnetcdf.h>

namespace nessie::cli {

std::string pnetcdf_version() { return ncmpi_inq_libvers(); }

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);  // needs no MPI_Init
  const std::string all = text;            // Open MPI counts the terminator, too
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
