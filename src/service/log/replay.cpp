// SPDX-License-Identifier: BSD-3-Clause
// Reading a log: all of it in order, or one record.
#include <service/log/impl.hpp>

#include <base/crc32c.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace nessie::service {

using namespace log_format;

namespace {

/// What is read, all before its end was written.
struct Written {
  nssi::Runtime &runtime;
  const std::shared_ptr<LogStore> store;
  const std::uint64_t log_id;
  const std::map<std::uint64_t, LogSegment> &segments;
  const Lsn end;
  const std::function<void(const LogRange &)> release;
};

/// One replay.
class LogWalk {
 public:
  LogWalk(const Written &log, Lsn from, const Log::Visitor &visitor)
      : log_(log),
        segment_bytes_(log.store->segment_bytes()),
        from_(from),
        end_(log.end),
        visitor_(visitor),
        reader_(log.runtime, log.store, visitor.skims ? LogReader::Way::kHops : LogReader::Way::kAhead) {}

  Status walk() {
    for (auto at = go_to(from_ / segment_bytes_ * segment_bytes_); at < end_; at = go_to(at)) {
      const auto next = look_at(at);
      if (!next.ok()) return next.error();
      at = *next;
    }
    tell_of_missing(end_);
    return {};
  }

 private:
  /// From `at` on, where there is something.
  Lsn go_to(Lsn at) {
    for (;;) {
      const auto segment = log_.segments.lower_bound(at / segment_bytes_);
      if (segment == log_.segments.end()) return end_;
      const auto begin = segment->first * segment_bytes_;
      if (begin > at || at % segment_bytes_ == 0) expect_in(begin);
      at = std::max(at, begin);
      if (at < segment->second.end) return at;
      at = begin + segment_bytes_;
    }
  }

  /// A segment that others, which are gone, lie in front of.
  void expect_in(Lsn segment) {
    const auto number = segment / segment_bytes_;
    if (number == 0 || !log_.segments.contains(number - 1)) expected_ = std::max(expected_, segment);
  }

  /// Where to go on.
  Result<Lsn> look_at(Lsn at) {
    const auto front = reader_.view(at, kLogAlignment);
    if (!front.ok()) return front.error();
    const auto block = decode_block(*front, at, segment_bytes_);
    if (!block) return at + kLogAlignment;
    if (block->is_erased || block->log_id != log_.log_id) return block->end();
    tell_of_missing(block->before);
    expected_ = block->end();
    if (!is_wanted(block->records())) return expected_;
    const auto bytes = reader_.view(at, is_skimmed(*block) ? kLogAlignment : block->used_bytes);
    if (!bytes.ok()) return bytes.error();
    if (auto status = visit(*block, bytes->first(std::min<std::size_t>(bytes->size(), size_of(*block)))); !status.ok())
      return status.error();
    return block->end();
  }

  bool is_skimmed(const BlockHeader &block) const { return visitor_.skims && block.is_bulk; }
  std::size_t size_of(const BlockHeader &block) const { return is_skimmed(block) ? kLogAlignment : block.used_bytes; }

  Status visit(const BlockHeader &block, std::span<const std::byte> bytes) {
    Records records(block, bytes);
    while (const auto record = records.next()) {
      if (record->at.end <= from_ || record->at.begin >= end_ || !is_wanted(record->at)) continue;
      if (!record->is_right || (!is_skimmed(block) && !records.is_data_right(*record))) {
        tell_of(record->at, "the checksum of a record is wrong");
        continue;
      }
      const auto &header = record->header;
      if (auto status = visitor_.on_record(
              {header.kind, record->at, records.head_of(*record), records.data_of(*record), header.data_bytes});
          !status.ok())
        return status;
    }
    return {};
  }

  bool is_wanted(const LogRange &range) const {
    const auto segment = log_.segments.find(range.begin / segment_bytes_);
    return segment != log_.segments.end() && segment->second.live.overlaps(interval_of(range));
  }

  /// Of blocks before one that says where the one before it ended.
  void tell_of_missing(Lsn before) {
    const auto begin = std::max(expected_, from_);
    if (begin < before) tell_of({begin, before}, "a block cannot be read");
  }

  void tell_of(const LogRange &range, const char *what) {
    if (visitor_.on_damage) visitor_.on_damage({range, fmt::format("{}: {}", log_.store->where(range.begin), what)});
    log_.release(range);
  }

  const Written &log_;
  const std::uint64_t segment_bytes_;
  const Lsn from_, end_;
  const Log::Visitor &visitor_;
  LogReader reader_;
  Lsn expected_ = 0;
};

}  // namespace

Status Log::Impl::replay(Lsn from, const Visitor &visitor) {
  const auto until = end();
  if (auto written = await_written(until); !written.ok()) return written;
  blocks.account().take(LogReader::memory_bytes());
  const Written written_log{runtime,
                            store,
                            id,
                            segments,
                            std::min(until, end_of_written()),
                            [this](const LogRange &range) { release(range); }};
  auto result = LogWalk(written_log, from, visitor).walk();
  blocks.account().give_back(LogReader::memory_bytes());
  return result;
}

Status Log::look(nssi::Runtime &runtime, std::shared_ptr<LogStore> store, const Visitor &visitor) {
  const auto found = recover_log(runtime, store);
  if (!found.ok()) return found.error();
  const Written written{runtime, store, found->id, found->segments, found->end, [](const LogRange &) {}};
  return LogWalk(written, 0, visitor).walk();
}

namespace {

/// Of a record that is known, what is read of it.
class OneRecord {
 public:
  OneRecord(LogStore &store, std::uint64_t log_id, const LogRange &at) : store_(store), log_id_(log_id), at_(at) {}

  Status read(std::span<std::byte> data) {
    const auto first = at_.begin / kLogAlignment * kLogAlignment;
    const auto most = round_up(at_.end, kLogAlignment) - first;
    std::size_t size_bytes = std::min<std::uint64_t>(most, kFrontBytes);
    if (auto status = fill(first, size_bytes); !status.ok()) return status;
    const auto record = find(first);
    if (!record || record->data_bytes != data.size()) return wrong();
    if (auto status = copy(first + data_at_, data); !status.ok()) return status;
    return crc32c(data) == record->data_checksum ? Status() : wrong();
  }

 private:
  /// A head has up to 64 KiB.
  static constexpr std::size_t kFrontBytes =
      2 * kLogAlignment + round_up(kRecordHeaderBytes + kMostHeadBytes, kLogAlignment);

  Status fill(Lsn first, std::size_t size_bytes) {
    memory_ = allocate_pages(size_bytes);
    if (!memory_) return Error{Code::kNoMemory, "there is no memory to read a record with: try again"};
    const auto got = store_.read(first, {memory_.get(), size_bytes});
    if (!got.ok()) return got.error();
    bytes_ = {memory_.get(), *got};
    return {};
  }

  std::optional<RecordHeader> find(Lsn first) {
    auto at = at_.begin - first;
    const auto block = at == 0 ? decode_block(bytes_, first, ~std::uint64_t{0}) : std::nullopt;
    if (block) at += kBlockHeaderBytes;
    if (at > bytes_.size()) return std::nullopt;
    const auto record = decode_record(bytes_.subspan(at), log_id_, first + at);
    if (record) data_at_ = block && block->is_bulk ? kLogAlignment : at + kRecordHeaderBytes + record->head_bytes;
    return record;
  }

  /// What has been read already is copied.
  Status copy(Lsn from, std::span<std::byte> data) {
    const auto there = std::min(data.size(), bytes_.size() - std::min(bytes_.size(), data_at_));
    if (there > 0) std::memcpy(data.data(), bytes_.data() + data_at_, there);
    const auto rest = data.subspan(there);
    if (rest.empty()) return {};
    const auto got = store_.read(from + there, rest);
    if (!got.ok()) return got.error();
    return *got == rest.size() ? Status() : wrong();
  }

  Status wrong() const {
    return Error{Code::kBadMessage,
                 fmt::format("{}: this is not the record that was appended there", store_.where(at_.begin))};
  }

  LogStore &store_;
  const std::uint64_t log_id_;
  const LogRange at_;
  Pages memory_;
  std::span<const std::byte> bytes_;
  std::size_t data_at_ = 0;
};

}  // namespace

Status Log::Impl::read(const LogRange &at, std::span<std::byte> data) {
  if (auto written = await_written(at.end); !written.ok()) return written;
  return OneRecord(*store, id, at).read(data);
}

}  // namespace nessie::service
