// SPDX-License-Identifier: BSD-3-Clause
// The program opens its files itself: so names, rights, and what opening leaves behind are native. What is staged then
// is the open file, and no longer its name. Whatever cannot be opened is left to native PnetCDF, for its error codes.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

#include <base/fd.hpp>

namespace interpose {

/// A file that is open on this process.
struct ProgramFile {
  nessie::Fd file;   ///< for reading and, if the program may write, writing; invalid: it cannot be opened in this way
  std::string name;  ///< absolute
};

/// What ncmpi_create and ncmpi_open would open. A file that is created has no content that counts; what cannot be
/// created natively has not been touched.
ProgramFile create_as_program(const OpenedAs &as, int cmode, MPI_Info info);
ProgramFile open_as_program(const OpenedAs &as, MPI_Info info);

/// Returns when the servers have nothing left to write of the file that goes by this name, or with an error in the log
/// if they do not answer. Only if the session is connected().
void settle(const OpenedAs &as);

/// The file that native PnetCDF has just opened for this process, under whichever of its names.
staging::FileIdentity identity_of_open(const OpenedAs &as);

/// A file that native PnetCDF has open. It may open the name again at any time, which `named` may keep: that lives as
/// long.
struct NativeHandle {
  int id = -1;
  nessie::Fd named;
};

/// If the file does not go by its name any more, or its user may not open it again, has `handle` keep what the program
/// has open: a server lends it, as long as the servers have the file. False: it is to be had by its name, if at all.
bool borrow(File &file, int omode, NativeHandle &handle);

/// Whether the program's name means one file, to PnetCDF as to the system.
bool has_plain_name(const OpenedAs &as);

/// A name by which native PnetCDF can open `file` once more on this process; empty: there is none.
std::string name_to_open(const File &file, int omode, NativeHandle &handle);

/// Gives this child of fork() a handle of its own at the servers on what its parent has open. False, and said in the
/// log: it cannot have one.
bool inherit(File &file);

}  // namespace interpose
