// SPDX-License-Identifier: BSD-3-Clause
// A native PnetCDF file of this process alone, in memory, that holds a staged file's header and none of its data.
// Definitions and inquiries go to it, so that native PnetCDF itself checks and answers them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace interpose {

class Mirror {
 public:
  Mirror() = default;
  Mirror(const Mirror &) = delete;
  Mirror &operator=(const Mirror &) = delete;
  ~Mirror() { drop(); }

  /// Makes an empty file in define mode. False: PnetCDF refuses the cmode, or this process cannot have a mirror, for
  /// want of memory, descriptors, or room in PnetCDF's table.
  bool create(int cmode, MPI_Info info);
  /// Opens `header` in data mode. Replaces what was there, also on failure. False: this process cannot have a mirror.
  bool open(std::span<const std::byte> header, int omode, MPI_Info info);
  /// Ends define mode natively and tells whether the header is `header` then, to the byte: there is no need to open it
  /// again. Only for a file that has no data to be moved or filled. If false, the mirror must be opened or dropped.
  bool keep_header(std::span<const std::byte> header, const std::int64_t (&layout)[4]);
  /// Forgets it; nothing is written anywhere.
  void drop();

  /// The native id, or -1.
  int id() const { return id_; }

 private:
  bool map(std::size_t size_bytes);

  int id_ = -1;
  std::span<const std::byte> mapped_;  ///< of a file that was created: what PnetCDF writes there
};

}  // namespace interpose
