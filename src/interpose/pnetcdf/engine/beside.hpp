// SPDX-License-Identifier: BSD-3-Clause
// Native handles beside staged ones on the same file: what native PnetCDF reads has to be in the file before, and what
// it writes is not to be written over by what was put before, nor hidden by copies.
#pragma once

#include <interpose/pnetcdf/engine/file.hpp>

namespace interpose {

/// Returns when the servers hold nothing of the file that was put before. Costs a look at memory, as long as the file
/// is staged by nobody.
void settle_beside(const File &file);

/// The same, before native PnetCDF writes: then the servers keep no pages of the file for readers any more.
void begin_beside(const File &file);

/// Tells those who keep copies of what they read that native PnetCDF has written to the file.
void note_beside(const File &file);

/// Has native PnetCDF carry out `call`, which reads from the file, and returns its code.
template <class Call> int read_natively(const File &file, const Call &call) {
  settle_beside(file);
  return call();
}

/// Has native PnetCDF carry out `call`, which may write to the file, and returns its code.
template <class Call> int write_natively(const File &file, const Call &call) {
  begin_beside(file);
  const int error = call();
  note_beside(file);
  return error;
}

}  // namespace interpose
