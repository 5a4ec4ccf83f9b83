// SPDX-License-Identifier: BSD-3-Clause
// A native PnetCDF file of this process alone, in memory, that holds a staged file's header and none of its data.
// Definitions and inquiries go to it, so that native PnetCDF itself checks and answers them.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace interpose {

class Mirror {
 public:
  /// Arguments of ncmpi__enddef().
  using Layout = std::array<std::int64_t, 4>;

  Mirror() = default;
  Mirror(const Mirror &) = delete;
  Mirror &operator=(const Mirror &) = delete;
  ~Mirror() { drop(); }

  /// Makes an empty file in define mode. False: PnetCDF refuses the cmode, or this process cannot have a mirror, for
  /// want of memory, descriptors, or room in PnetCDF's table.
  bool create(int cmode, MPI_Info info);
  /// Opens `header` in data mode. Replaces what was there, also on failure. False: this process cannot have a mirror.
  bool open(std::span<const std::byte> header, int omode, MPI_Info info);
  /// Ends define mode natively. Only for a file that has no data to be moved or filled.
  void end_define(const Layout &layout);
  /// The header, since end_define(): where the file has the same, to the byte, there is no need to open it again.
  /// Empty: the mirror must be opened or dropped.
  std::span<const std::byte> header();
  /// After end_define(): the file has not left define mode, and the mirror goes back. It has no header() any more.
  void redefine();
  /// Forgets it; nothing is written anywhere.
  void drop();

  /// The native id, or -1.
  int id() const { return id_; }

 private:
  bool map(std::size_t size_bytes);

  enum class Ended { kNot, kWell, kBadly, kOnceBefore };

  int id_ = -1;
  Ended ended_ = Ended::kNot;          ///< define mode of a file that was created
  std::span<const std::byte> mapped_;  ///< of a file that was created: what PnetCDF writes there
};

}  // namespace interpose
