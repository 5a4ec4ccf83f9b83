// SPDX-License-Identifier: BSD-3-Clause
#include <service/log/format.hpp>
#include <service/log/reader.hpp>
#include <service/log/recovery.hpp>

#include <base/random.hpp>

#include <algorithm>
#include <vector>

namespace nessie::service {
namespace {

using log_format::BlockHeader;

/// What a block may lie in: no hole.
std::vector<LogRange> joined(std::vector<LogRange> ranges) {
  std::vector<LogRange> runs;
  for (const auto &range : ranges)
    if (!runs.empty() && runs.back().end >= range.begin)
      runs.back().end = std::max(runs.back().end, range.end);
    else if (range.size() > 0)
      runs.push_back(range);
  return runs;
}

class Recovery {
 public:
  Recovery(nssi::Runtime &runtime, const std::shared_ptr<LogStore> &store)
      : runtime_(runtime), store_(store), runs_(joined(store->contents())) {
    auto segments = runs_;
    for (auto &[begin, end] : segments) {
      begin = begin / segment_bytes() * segment_bytes();
      end = log_format::round_up(end, segment_bytes());
    }
    segment_runs_ = joined(std::move(segments));
  }

  Result<RecoveredLog> recover() {
    for (const auto &run : runs_)
      if (auto status = find_headers(run); !status.ok()) return status.error();
    leave_out_what_does_not_count();
    if (auto status = find_end(); !status.ok()) return status.error();
    note_segments();
    return std::move(log_);
  }

 private:
  std::uint64_t segment_bytes() const { return store_->segment_bytes(); }

  Status find_headers(const LogRange &run) {
    LogReader reader(runtime_, store_, LogReader::Way::kHops);
    for (auto at = log_format::round_up(run.begin, kLogAlignment); at < run.end;) {
      const auto bytes = reader.view(at, kLogAlignment);
      if (!bytes.ok()) return bytes.error();
      const auto header = log_format::decode_block(*bytes, at, segment_bytes());
      if (header) blocks_.push_back(*header);
      at = header ? header->end() : at + kLogAlignment;
    }
    return {};
  }

  /// The log that counts is the last one's.
  void leave_out_what_does_not_count() {
    synced_ = store_->written_before();
    log_.id = blocks_.empty() ? random_u64() : blocks_.back().log_id;
    std::erase_if(blocks_, [&](const BlockHeader &block) { return block.log_id != log_.id; });
    for (const auto &block : blocks_) synced_ = std::max(synced_, block.synced);
    std::erase_if(blocks_, [](const BlockHeader &block) { return block.is_erased; });
  }

  Status find_end() {
    LogReader reader(runtime_, store_, LogReader::Way::kAhead);
    std::size_t count = 0;
    for (; count < blocks_.size(); ++count) {
      const auto &block = blocks_[count];
      const auto expected = std::max(log_.end, released_before(block.lsn));
      if (block.before > std::max(expected, synced_)) break;
      if (block.end() > synced_) {
        const auto bytes = reader.view(block.lsn, block.used_bytes);
        if (!bytes.ok()) return bytes.error();
        if (bytes->size() < block.used_bytes || !log_format::is_whole(block, *bytes)) break;
      }
      log_.end = block.end();
    }
    log_.cut.assign(blocks_.begin() + static_cast<std::ptrdiff_t>(count), blocks_.end());
    blocks_.resize(count);
    log_.end = std::max(log_.end, synced_);
    return {};
  }

  /// Where the segments begin that lie in front of `at` without one missing. A hole within a segment was not released.
  Lsn released_before(Lsn at) const {
    return std::ranges::find_if(segment_runs_, [&](const LogRange &run) { return at < run.end; })->begin;
  }

  void note_segments() {
    log_.next = log_.end;
    for (const auto &run : runs_) {
      log_.next = std::max(log_.next, run.end);
      for (auto number = run.begin / segment_bytes(); number * segment_bytes() < run.end; ++number)
        log_.segments[number];
    }
    log_.next = log_format::round_up(log_.next, segment_bytes());
    for (const auto &block : blocks_) {
      auto &segment = log_.segments[block.lsn / segment_bytes()];
      segment.live.add(interval_of(block.records()));
      segment.end = block.end();
    }
  }

  nssi::Runtime &runtime_;
  const std::shared_ptr<LogStore> store_;
  const std::vector<LogRange> runs_;
  std::vector<LogRange> segment_runs_;  ///< of whole segments
  std::vector<BlockHeader> blocks_;
  Lsn synced_ = 0;  ///< all before this was synced, or is known to have been written
  RecoveredLog log_;
};

}  // namespace

Result<RecoveredLog> recover_log(nssi::Runtime &runtime, const std::shared_ptr<LogStore> &store) {
  return Recovery(runtime, store).recover();
}

}  // namespace nessie::service
