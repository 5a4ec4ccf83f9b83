// SPDX-License-Identifier: BSD-3-Clause
// A log's store for tests: a disk in memory, that knows what was synced, and can lose the rest.
#pragma once

#include <nssi/nssi.hpp>
#include <service/log/store.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace nessie::service::testing {

/// What outlives a process. On one thread.
struct MemoryDisk {
  using Bytes = std::vector<std::byte>;
  struct Write {
    Lsn at = 0;
    Bytes bytes;
    bool has_ended = false;
  };

  explicit MemoryDisk(std::uint64_t its_segment_bytes = 64 << 10) : segment_bytes(its_segment_bytes) {}

  std::uint64_t segment_bytes;
  std::map<std::uint64_t, Bytes> segments;  ///< as this process sees them
  std::map<std::uint64_t, Bytes> durable;   ///< what of them, and of those removed, outlives a power failure
  std::vector<std::shared_ptr<Write>> unsynced;
  std::size_t writes = 0, syncs = 0;
  std::uint64_t written_bytes = 0, read_bytes = 0;

  /// It outlives a power failure from now on.
  void make_segment(std::uint64_t number) {
    if (!segments.contains(number)) durable[number] = segment(number);
  }
  Bytes &segment(std::uint64_t number) {
    auto &bytes = segments[number];
    bytes.resize(segment_bytes);
    return bytes;
  }
  std::byte &at(Lsn position) { return segment(position / segment_bytes)[position % segment_bytes]; }
  static void put(std::map<std::uint64_t, Bytes> &into, std::uint64_t segment_bytes, Lsn at,
                  std::span<const std::byte> bytes) {
    auto &segment = into[at / segment_bytes];
    segment.resize(segment_bytes);
    std::ranges::copy(bytes, segment.begin() + static_cast<std::ptrdiff_t>(at % segment_bytes));
  }

  /// What is there after a power failure now: of what was not synced, each write whole, or not at all, or some of its
  /// sectors; segments that were removed since, or not.
  MemoryDisk after_power_cut(std::mt19937 &random) const {
    MemoryDisk disk(segment_bytes);
    const auto coin = [&] { return random() % 2 == 0; };
    for (const auto &[number, bytes] : durable)
      if (segments.contains(number) || coin()) disk.segments[number] = bytes;
    for (const auto &write : unsynced) {
      const auto how = random() % 3;
      if (!disk.segments.contains(write->at / segment_bytes)) continue;
      for (std::size_t sector = 0; sector < write->bytes.size() && how != 0; sector += 512)
        if (how == 1 || coin())
          put(disk.segments, segment_bytes, write->at + sector, std::span(write->bytes).subspan(sector, 512));
    }
    disk.durable = disk.segments;
    return disk;
  }

  /// What is there after the process was killed now: of what was on its way, a part, or all.
  MemoryDisk after_kill(std::mt19937 &random) const {
    MemoryDisk disk(segment_bytes);
    disk.segments = segments;
    disk.durable = durable;
    for (const auto &write : unsynced) {
      auto left = *write;
      if (!write->has_ended) left.bytes.resize(random() % (write->bytes.size() / 512 + 1) * 512);
      if (!std::exchange(left.has_ended, true)) put(disk.segments, segment_bytes, left.at, left.bytes);
      disk.unsynced.push_back(std::make_shared<Write>(std::move(left)));
    }
    return disk;
  }
};

class MemoryStore final : public LogStore {
 public:
  MemoryStore(nssi::Runtime &runtime, MemoryDisk &disk) : runtime_(runtime), disk_(disk) {}

  /// What becomes of a write, or sync, before it is done: it may wait, and fail.
  std::function<Status(Lsn)> on_write = [](Lsn) { return Status(); };
  std::function<Status()> on_sync = [] { return Status(); };

  std::vector<LogRange> contents() const override {
    std::vector<LogRange> ranges;
    for (const auto &[number, bytes] : disk_.segments)
      ranges.push_back({number * disk_.segment_bytes, number * disk_.segment_bytes + bytes.size()});
    return ranges;
  }
  Result<std::size_t> read(Lsn at, std::span<std::byte> into) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const auto segment = disk_.segments.find((at + done) / disk_.segment_bytes);
      const auto offset = (at + done) % disk_.segment_bytes;
      if (segment == disk_.segments.end() || offset >= segment->second.size()) break;
      const auto part = std::min<std::size_t>(into.size() - done, segment->second.size() - offset);
      std::memcpy(into.data() + done, segment->second.data() + offset, part);
      done += part;
    }
    disk_.read_bytes += done;
    runtime_.sleep_until(Deadline::now());
    return done;
  }
  std::uint64_t segment_bytes() const override { return disk_.segment_bytes; }
  Status write(Lsn at, std::span<const std::byte> block) override {
    auto write = std::make_shared<MemoryDisk::Write>(MemoryDisk::Write{at, {block.begin(), block.end()}});
    disk_.make_segment(at / disk_.segment_bytes);
    disk_.unsynced.push_back(write);
    ++disk_.writes;
    if (auto status = on_write(at); !status.ok()) return status;
    runtime_.sleep_until(Deadline::now());
    MemoryDisk::put(disk_.segments, disk_.segment_bytes, at, write->bytes);
    disk_.written_bytes += block.size();
    write->has_ended = true;
    return {};
  }
  void note_written(Lsn) override {}
  Lsn written_before() const override { return 0; }
  Status sync() override {
    ++disk_.syncs;
    std::vector<std::shared_ptr<MemoryDisk::Write>> covered;
    std::vector<std::uint64_t> removed;
    for (const auto &write : disk_.unsynced)
      if (write->has_ended) covered.push_back(write);
    for (const auto &[number, bytes] : disk_.durable)
      if (!disk_.segments.contains(number)) removed.push_back(number);
    if (auto status = on_sync(); !status.ok()) return status;
    runtime_.sleep_until(Deadline::now());
    for (const auto number : removed) disk_.durable.erase(number);
    for (const auto &write : covered) {
      if (disk_.durable.contains(write->at / disk_.segment_bytes))
        MemoryDisk::put(disk_.durable, disk_.segment_bytes, write->at, write->bytes);
      std::erase(disk_.unsynced, write);
    }
    return {};
  }
  void release(const LogRange &range) override {
    for (auto at = disk_.segments.begin(); at != disk_.segments.end();) {
      const auto begin = at->first * disk_.segment_bytes, end = begin + disk_.segment_bytes;
      at = range.begin <= begin && end <= range.end ? disk_.segments.erase(at) : std::next(at);
    }
  }
  std::uint64_t held_bytes() const override { return disk_.segments.size() * disk_.segment_bytes; }
  std::string where(Lsn at) const override {
    return "byte " + std::to_string(at % disk_.segment_bytes) + " of segment " +
           std::to_string(at / disk_.segment_bytes);
  }

 private:
  nssi::Runtime &runtime_;
  MemoryDisk &disk_;
};

}  // namespace nessie::service::testing
