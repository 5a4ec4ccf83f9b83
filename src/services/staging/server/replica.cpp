// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/replica.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::service::kLogAlignment;
using nnti::Rights;
using Stub = STAGING::CURRENT::Client;

namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::milliseconds kLookForOwners{50};
constexpr std::uint64_t kLeastRoom = 8 << 20;  // of a log
/// Memory comes back by so much, or by a share of a log's room.
constexpr std::uint64_t kSegmentBytes = 8 << 20, kLeastSegmentBytes = 2 << 20, kShareOfSegment = 4;
constexpr std::uint64_t kLargestBlock = std::uint64_t{64} << 20;

}  // namespace

// --- what a server keeps for others -----------------------------------------------------------------------------------

void Replicas::Memory::operator()(std::byte *memory) const { std::free(memory); }

std::uint64_t Replicas::bytes_of(std::uint32_t log) const {
  const auto found = logs_.find(log);
  return found != logs_.end() ? found->second.bytes : 0;
}

void Replicas::give_back(std::uint32_t log, std::uint64_t bytes) {
  account_.give_back(bytes);
  if ((logs_[log].bytes -= bytes) == 0) logs_.erase(log);
}

Status Replicas::keep(nssi::Request &request, const BlockArgs &block) {
  if (block.bytes == 0 || block.bytes > kLargestBlock || block.bytes > request.data_bytes())
    return Error{Code::kInvalidArgument, "a block of a log is of another size than its buffer"};
  const Status no_memory = Error{Code::kNoMemory, "the server that keeps the second copy has no memory left for it"};
  const auto deadline = Deadline::in(kPatience);
  while (bytes_of(block.of) + block.bytes > std::max(most_bytes_, kLeastRoom))
    if (auto status = released_.wait(deadline); !status.ok()) return no_memory;
  // It was promised: other pools give back what they do not need, and are not waited for, as they may wait for this.
  if (!account_.try_take(block.bytes)) account_.take(block.bytes);
  auto &log = logs_[block.of];
  log.bytes += block.bytes;
  log.owner = request.caller();
  Block kept{
      std::unique_ptr<std::byte[], Memory>(static_cast<std::byte *>(std::aligned_alloc(kLogAlignment, block.bytes))),
      block.bytes};
  auto status = kept.memory ? request.get_data({kept.memory.get(), block.bytes}) : no_memory;
  if (status.ok()) std::swap(log.blocks[block.at], kept);
  if (kept.memory || !status.ok()) give_back(block.of, kept.size_bytes);  // of what was there before
  return status;
}

KeptResult Replicas::kept(const nssi::Request &request, std::uint32_t of) {
  KeptResult result;
  result.most_bytes = most_bytes_;
  const auto log = logs_.find(of);
  if (log == logs_.end()) return result;
  log->second.owner = request.caller();
  for (const auto &[at, block] : log->second.blocks)
    if (!result.parts.empty() && result.parts.back().end == at)
      result.parts.back().end += block.size_bytes;
    else
      result.parts.push_back({at, at + block.size_bytes});
  return result;
}

Result<std::uint64_t> Replicas::read(nssi::Request &request, const BlockArgs &wanted) const {
  const auto log = logs_.find(wanted.of);
  std::uint64_t done = 0;
  while (log != logs_.end() && done < wanted.bytes) {
    const auto at = wanted.at + done;
    const auto after = log->second.blocks.upper_bound(at);
    if (after == log->second.blocks.begin()) break;
    const auto &[begin, block] = *std::prev(after);
    if (at >= begin + block.size_bytes) break;
    const auto size = std::min(begin + block.size_bytes - at, wanted.bytes - done);
    if (auto status = request.put_data({block.memory.get() + (at - begin), size}, done); !status.ok())
      return status.error();
    done += size;
  }
  return done;
}

void Replicas::release(const BlockArgs &range) {
  const auto log = logs_.find(range.of);
  if (log == logs_.end()) return;
  auto &blocks = log->second.blocks;
  const auto end = range.at + range.bytes;
  std::uint64_t released = 0;
  for (auto at = blocks.lower_bound(range.at); at != blocks.end() && at->first + at->second.size_bytes <= end;) {
    released += at->second.size_bytes;
    at = blocks.erase(at);
  }
  give_back(range.of, released);
  released_.notify_all();
}

void Replicas::await_unneeded(const std::function<bool(nssi::PeerId)> &is_connected,
                              std::chrono::milliseconds patience) {
  auto deadline = Deadline::in(patience);
  while (!logs_.empty() && !deadline.passed()) {
    const auto has_owner = [&](const auto &log) { return is_connected(log.second.owner); };
    if (std::ranges::any_of(logs_, has_owner)) deadline = Deadline::in(patience);
    if (released_.wait(Deadline::in(kLookForOwners).earlier(deadline)).code() == Code::kCancelled) return;
  }
}

// --- what a server has others keep --------------------------------------------------------------------------------------

namespace {

class Replica final : public LogStore {
 public:
  Replica(nssi::Runtime &runtime, const ReplicaOptions &options)
      : runtime_(runtime),
        of_(options.of),
        sharers_(options.sharers),
        url_(options.url),
        peer_(options.peer),
        stub_(runtime, options.peer) {}
  ~Replica() override { runtime_.disconnect(peer_); }

  Status drop() {
    auto asked = stub_.release_block_async({of_, 0, std::numeric_limits<std::uint64_t>::max()}, options());
    return asked.wait();
  }
  Status look() {
    auto asked = stub_.kept_async(of_, options());
    const auto kept = asked.wait();
    if (!kept.ok()) return kept.error();
    for (const auto &part : kept->parts) contents_.push_back({part.begin, part.end});
    most_bytes_ = std::max(kLeastRoom, kept->most_bytes / sharers_);
    segment_bytes_ = std::clamp(std::bit_floor(most_bytes_ / kShareOfSegment), kLeastSegmentBytes, kSegmentBytes);
    return {};
  }
  std::uint64_t most_bytes() const { return most_bytes_; }

  std::vector<LogRange> contents() const override { return contents_; }

  Result<std::size_t> read(Lsn at, std::span<std::byte> into) override {
    auto buffer = runtime_.register_memory(into, Rights::kRemoteWrite);
    if (!buffer.ok()) return failed(buffer.error());
    auto asked = stub_.read_block_async({of_, at, into.size()}, options(&*buffer));
    const auto read = asked.wait();
    if (!read.ok()) return failed(read.error());
    return static_cast<std::size_t>(*read);
  }

  std::uint64_t segment_bytes() const override { return segment_bytes_; }

  Status write(Lsn at, std::span<const std::byte> block) override {
    const std::span<std::byte> memory(const_cast<std::byte *>(block.data()), block.size());  // it is only read
    auto buffer = runtime_.register_memory(memory, Rights::kRemoteRead);
    if (!buffer.ok()) return failed(buffer.error());
    auto asked = stub_.keep_block_async({of_, at, block.size()}, options(&*buffer));
    const auto kept = asked.wait();
    if (!kept.ok()) return failed(kept.error());
    held_[at] = block.size();
    held_bytes_ += block.size();
    return {};
  }
  void note_written(Lsn) override {}
  Lsn written_before() const override { return 0; }  // memory that is there is whole
  /// What is in the memory of two is as safe as it gets here.
  Status sync() override { return {}; }
  void release(const LogRange &range) override {
    for (auto at = held_.lower_bound(range.begin); at != held_.end() && at->first < range.end; at = held_.erase(at))
      held_bytes_ -= at->second;
    runtime_.spawn([runtime = &runtime_, peer = peer_, of = of_, range] {
      auto asked = Stub(*runtime, peer).release_block_async({of, range.begin, range.size()}, options());
      (void)asked.wait();
    });
  }
  std::uint64_t held_bytes() const override { return held_bytes_; }
  std::string where(Lsn at) const override { return fmt::format("byte {} of the log at {}", at, url_); }

 private:
  static nssi::CallOptions options(const nnti::RegisteredBuffer *data = nullptr) {
    nssi::CallOptions options;
    options.deadline = Deadline::in(kPatience);
    options.data = data;
    return options;
  }
  Error failed(const Error &error) const {
    return {Code::kIo, fmt::format("the server {} cannot keep the second copy: {}", url_, error.message)};
  }

  nssi::Runtime &runtime_;
  const std::uint32_t of_, sharers_;
  const std::string url_;
  const nssi::PeerId peer_;
  Stub stub_;
  std::vector<LogRange> contents_;
  std::uint64_t most_bytes_ = 0, segment_bytes_ = 0;
  std::map<Lsn, std::uint64_t> held_;  ///< blocks
  std::uint64_t held_bytes_ = 0;
};

}  // namespace

Result<OpenedReplica> open_replica(nssi::Runtime &runtime, const ReplicaOptions &options) {
  auto replica = std::make_unique<Replica>(runtime, options);
  if (options.anew)
    if (auto status = replica->drop(); !status.ok()) return status.error();
  if (auto status = replica->look(); !status.ok()) return status.error();
  const auto most_bytes = replica->most_bytes();
  return OpenedReplica{std::move(replica), most_bytes};
}

}  // namespace staging
