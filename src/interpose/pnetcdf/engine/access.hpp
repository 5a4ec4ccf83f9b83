// SPDX-License-Identifier: BSD-3-Clause
// What the hundreds of put and get functions come to: one description of an access, one function that carries it out.
#pragma once

#include <mpi.h>

namespace interpose {

class File;

enum class Direction { kPut, kGet };
enum class Shape { kVar, kVar1, kVarA, kVarS, kVarM, kVarN };
enum class Mode { kIndependent, kCollective, kNonblocking, kBuffered };

/// Instead of a bufcount: the function's name says the type of the elements, `type`; their number is that of the
/// access.
inline constexpr MPI_Offset kTyped = -1;

/// The program's memory. With MPI_DATATYPE_NULL, contiguous elements of the variable's own type.
struct Memory {
  void *address = nullptr;
  MPI_Offset count = kTyped;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

/// The arguments of a put or get, as the program gave them.
struct Access {
  Access(Direction direction, Shape shape, Mode mode, int varid)
      : direction(direction), shape(shape), mode(mode), varid(varid) {}

  Direction direction;
  Shape shape;
  Mode mode;
  int varid;
  const MPI_Offset *start = nullptr, *count = nullptr, *stride = nullptr, *imap = nullptr;
  int num = 0;                                                    ///< for varn
  MPI_Offset *const *starts = nullptr, *const *counts = nullptr;  ///< for varn
  Memory memory;
  int *request = nullptr;

  bool is_read() const { return direction == Direction::kGet; }
  bool is_collective() const { return mode == Mode::kCollective; }
  bool is_blocking() const { return mode == Mode::kIndependent || mode == Mode::kCollective; }
  bool is_flexible() const { return memory.count != kTyped; }
};

/// ncmpi_mput_var*, ncmpi_mget_var*: several accesses in one call.
struct MultiAccess {
  MultiAccess(Direction direction, Shape shape, Mode mode, int num, const int *varids)
      : direction(direction), shape(shape), mode(mode), num(num), varids(varids) {}

  Direction direction;
  Shape shape;
  Mode mode;
  int num;
  const int *varids;
  MPI_Offset *const *starts = nullptr, *const *counts = nullptr, *const *strides = nullptr, *const *imaps = nullptr;
  void *const *bufs = nullptr;
  const MPI_Offset *bufcounts = nullptr;  ///< nullptr: typed by element_type
  const MPI_Datatype *buftypes = nullptr;
  MPI_Datatype element_type = MPI_DATATYPE_NULL;
};

/// ncmpi_put_vard, ncmpi_get_vard: the program says where in the file by an MPI datatype.
struct FiletypeAccess {
  Direction direction;
  Mode mode;
  int varid;
  MPI_Datatype filetype;
  Memory memory;

  bool is_read() const { return direction == Direction::kGet; }
  bool is_collective() const { return mode == Mode::kCollective; }
};

/// Carries an access out, or posts it. Native PnetCDF's code. When a blocking one returns, its memory is the program's
/// again: what is read is there; what is written is where any later read finds it, though perhaps not in the file. A
/// posted one borrows its memory until it is waited for or cancelled. In a collective one that fails this rank has
/// still done its part, so that the others need not wait for it, unless the call is_over().
int transfer(File &file, const Access &access);
/// A collective call may find that the file is better left to native PnetCDF, which has it from now on, and has not
/// moved anything yet: this is no code of PnetCDF's.
inline constexpr int kLeftNative = 1;
int transfer(File &file, const MultiAccess &access);
int transfer(File &file, const FiletypeAccess &access);

}  // namespace interpose
