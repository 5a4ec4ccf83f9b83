// SPDX-License-Identifier: BSD-3-Clause
// The program's memory, however it is laid out, and the contiguous external data that travel.
#pragma once

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/conversion.hpp>
#include <interpose/pnetcdf/engine/variable.hpp>
#include <services/staging/piece.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace interpose {

/// Uninitialised bytes that free themselves.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size_bytes) : bytes_(new std::byte[size_bytes]), size_(size_bytes) {}
  std::byte *data() { return bytes_.get(); }
  std::span<std::byte> span() { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

/// Where an access's elements lie in memory: one after the other, through an MPI datatype, through an imap, or both.
class MemoryLayout {
 public:
  MemoryLayout() = default;
  MemoryLayout(MemoryLayout &&other) noexcept;
  MemoryLayout &operator=(MemoryLayout &&other) noexcept;
  ~MemoryLayout();

  /// Understands `memory` for an access of `count`, an array of the variable's dimensions, and maybe an imap.
  /// NC_EIOMISMATCH, NC_EUNSPTETYPE, NC_EMULTITYPES, NC_EINTOVERFLOW, NC_EMAX_REQ, in native PnetCDF's order.
  /// `elements` is the number of elements of the access.
  int decode(const Memory &memory, const Variable &variable, int format, std::int64_t elements);
  /// For varm: takes element (i, j, …) of the access from element i*imap[0] + j*imap[1] + … of the memory.
  int map(std::span<const MPI_Offset> imap, std::span<const std::int64_t> count);
  /// Makes the layout independent of what the program may free before a read is delivered.
  void keep_datatype();

  std::int64_t elements() const { return elements_; }
  /// The memory itself is the external data.
  bool is_external() const { return contiguous_ && imap_.empty() && !convert_; }
  std::byte *address() const { return static_cast<std::byte *>(address_); }

  /// Packs and converts into `external`. NC_NOERR or NC_ERANGE, or a code with which nothing was packed.
  int pack(std::span<std::byte> external, const Variable &variable, std::span<const std::byte> fill) const;
  /// The way back.
  int unpack(std::span<std::byte> external, const Variable &variable) const;

 private:
  const void *gather(Buffer &packed) const;
  void scatter(const void *contiguous) const;

  void *address_ = nullptr;
  Element element_ = Element::kOther;
  bool contiguous_ = true, convert_ = false, owns_datatype_ = false;
  int datatype_count_ = 0;
  MPI_Datatype datatype_ = MPI_DATATYPE_NULL;
  std::int64_t elements_ = 0;
  std::vector<std::int64_t> imap_, count_;
};

}  // namespace interpose
