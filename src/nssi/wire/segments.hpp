// SPDX-License-Identifier: BSD-3-Clause
// Data that are not one whole buffer: parts of registered buffers, which a handler sees as one range. The caller's side
// (PartList) and the server's (SegmentMap); README.md says how the list between them is written.
#pragma once

#include <nssi/nssi.hpp>
#include <nssi/wire/wire.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace nssi {

/// What a call's parts come to. Empty ones are left out; those that follow each other in memory are joined.
class PartList {
 public:
  /// Null: the options name no parts.
  static std::unique_ptr<PartList> of(const CallOptions &options);
  /// kInvalidArgument, kOutOfRange: the parts are none; the call cannot be made.
  const Status &fault() const { return fault_; }
  /// Of the encoded list, for every peer; 0: the data are the beginning of one buffer, and need no list.
  std::size_t list_bytes() const;
  /// Says where the data are for `peer`: in `request`, as one buffer, or in `list`, of list_bytes(). Errors as
  /// nnti::RegisteredBuffer::describe_for.
  Status describe_for(PeerId peer, wire::Request &request, std::span<std::byte> list) const;

 private:
  using Indices = std::unordered_map<const nnti::RegisteredBuffer *, std::uint32_t>;
  Status add(const Part &part, const nnti::RegisteredBuffer *buffer, Indices &indices);
  std::uint32_t index_of(const nnti::RegisteredBuffer *buffer, Indices &indices);
  void append(std::uint64_t offset, std::uint64_t size_bytes, std::uint32_t index);
  bool is_beginning() const;

  std::vector<const nnti::RegisteredBuffer *> buffers_;
  std::vector<wire::Segment> segments_;
  Status fault_;
};

/// Where the bytes of a request's data are at its caller.
class SegmentMap {
 public:
  /// kBadMessage: that is no list; nothing has changed.
  Status read(std::span<const std::byte> list);
  void clear();
  bool empty() const { return list_.segments.empty(); }
  std::uint64_t size_bytes() const { return empty() ? 0 : ends_.back(); }
  std::size_t count() const { return list_.segments.size(); }
  /// kRefused: not all that data[offset, offset+size_bytes) touches gives that right.
  Status check_rights(std::uint64_t offset, std::uint64_t size_bytes, nnti::Rights needed) const;
  /// Calls use(buffer, offset in it, offset in the range, size in bytes) for each piece of data[offset,
  /// offset+size_bytes), which is within the data.
  template <class Use> void for_each_piece(std::uint64_t offset, std::uint64_t size_bytes, Use use) const {
    for (std::uint64_t done = 0, i = index_at(offset); done < size_bytes; ++i) {
      const auto &segment = list_.segments[i];
      const auto skipped = offset + done - (ends_[i] - segment.size_bytes);
      const auto piece_bytes = std::min(segment.size_bytes - skipped, size_bytes - done);
      use(list_.buffers[segment.buffer].remote, segment.offset + skipped, done, piece_bytes);
      done += piece_bytes;
    }
  }

 private:
  std::size_t index_at(std::uint64_t offset) const;

  wire::Segments list_;
  std::vector<std::uint64_t> ends_;  ///< of each segment, within the data
};

}  // namespace nssi
