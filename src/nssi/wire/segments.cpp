// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/wire/segments.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace nssi {

namespace {

constexpr std::size_t kKeptSegments = 256;

}  // namespace

// --- PartList ---------------------------------------------------------------------------------------------------------

std::unique_ptr<PartList> PartList::of(const CallOptions &options) {
  if (options.parts.empty()) return nullptr;
  auto list = std::make_unique<PartList>();
  Indices indices;
  for (const auto &part : options.parts) {
    list->fault_ = list->add(part, part.buffer != nullptr ? part.buffer : options.data, indices);
    if (!list->fault_.ok()) break;
  }
  return list;
}

Status PartList::add(const Part &part, const nnti::RegisteredBuffer *buffer, Indices &indices) {
  if (buffer == nullptr || !buffer->valid())
    return Error{Code::kInvalidArgument,
                 "a part of the data has no registered buffer; give it one, or the call `data`"};
  const std::uint64_t whole = buffer->bytes().size();
  const bool is_rest = part.size_bytes == Part::kRest && part.offset <= whole;
  const auto size_bytes = is_rest ? whole - part.offset : part.size_bytes;
  if (part.offset > whole || size_bytes > whole - part.offset)
    return Error{Code::kOutOfRange, fmt::format("{} bytes at {} are not within the registered buffer of {}", size_bytes,
                                                part.offset, whole)};
  if (size_bytes != 0) append(part.offset, size_bytes, index_of(buffer, indices));
  if (segments_.size() <= wire::kMostSegments) return {};
  return Error{Code::kInvalidArgument,
               fmt::format("a call's data have more than {} parts; make several calls, or gather the data first",
                           wire::kMostSegments)};
}

std::uint32_t PartList::index_of(const nnti::RegisteredBuffer *buffer, Indices &indices) {
  const auto [known, is_new] = indices.try_emplace(buffer, static_cast<std::uint32_t>(buffers_.size()));
  if (is_new) buffers_.push_back(buffer);
  return known->second;
}

void PartList::append(std::uint64_t offset, std::uint64_t size_bytes, std::uint32_t index) {
  if (!segments_.empty()) {
    auto &last = segments_.back();
    if (last.buffer == index && last.offset + last.size_bytes == offset) return void(last.size_bytes += size_bytes);
  }
  segments_.push_back({index, offset, size_bytes});
}

bool PartList::is_beginning() const { return segments_.empty() || (segments_.size() == 1 && segments_[0].offset == 0); }

std::size_t PartList::list_bytes() const {
  return is_beginning() ? 0 : wire::list_bytes(buffers_.size(), segments_.size());
}

Status PartList::describe_for(PeerId peer, wire::Request &request, std::span<std::byte> list) const {
  wire::Segments described;
  for (const auto *buffer : buffers_) {
    auto remote = buffer->describe_for(peer);
    if (!remote.ok()) return remote.error();
    described.buffers.push_back({*remote});
  }
  if (segments_.empty()) return {};
  if (is_beginning()) {
    described.buffers[0].remote.size_bytes = segments_[0].size_bytes;
    request.data = described.buffers[0];
    return {};
  }
  described.segments = segments_;
  (void)xdr::encode_to(described, list);
  return {};
}

// --- SegmentMap -------------------------------------------------------------------------------------------------------

Status SegmentMap::read(std::span<const std::byte> list) {
  wire::Segments segments;
  if (auto status = wire::decode_segments(list, segments); !status.ok()) return status;
  list_ = std::move(segments);
  ends_.clear();
  std::uint64_t end = 0;
  for (const auto &segment : list_.segments) ends_.push_back(end += segment.size_bytes);
  return {};
}

void SegmentMap::clear() {
  if (ends_.capacity() > kKeptSegments) ends_ = {};
  list_ = {};
  ends_.clear();
}

std::size_t SegmentMap::index_at(std::uint64_t offset) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
}

Status SegmentMap::check_rights(std::uint64_t offset, std::uint64_t size_bytes, nnti::Rights needed) const {
  bool all = true;
  for_each_piece(offset, size_bytes, [&](const nnti::RemoteBuffer &buffer, auto...) {
    all = all && (buffer.rights | needed) == buffer.rights;
  });
  if (all) return {};
  return Error{Code::kRefused, needed == nnti::Rights::kRemoteRead ? "a part of the data may not be read by peers"
                                                                   : "a part of the data may not be written by peers"};
}

}  // namespace nssi
