// SPDX-License-Identifier: BSD-3-Clause
// The program opens its files itself, with native PnetCDF: so names, rights, error codes and what is printed are
// native. What is staged then is the open file, and no longer its name.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

#include <nnti/fd.hpp>

namespace interpose {

/// What came of opening it on this process alone.
struct ProgramFile {
  int nc_error = 0;  ///< native PnetCDF's; if it is no harmless one, there is no file
  nnti::Fd file;     ///< for what the program may do; invalid if it cannot be had, though PnetCDF has opened it
  std::string name;  ///< absolute
  std::int64_t bytes_read = 0;
};

/// ncmpi_create and ncmpi_open on MPI_COMM_SELF, closed again: what ncmpi_create leaves is a file without content that
/// counts.
ProgramFile create_as_program(const OpenedAs &as, int cmode, MPI_Info info);
ProgramFile open_as_program(const OpenedAs &as, MPI_Info info);

/// Returns when the servers have nothing left to write of the file that goes by this name.
void settle(const OpenedAs &as);

/// Opens it natively on the communicator, under whatever name it can be opened with: it was open before.
int open_once_more(const OpenedAs &as, MPI_Comm comm, int omode, MPI_Info info, int *native_id);

}  // namespace interpose
