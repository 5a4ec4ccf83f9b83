// SPDX-License-Identifier: BSD-3-Clause
#include <service/log/impl.hpp>

#include <base/crc32c.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nessie::service {

using namespace log_format;

namespace {

constexpr std::size_t kMostWriters = 4;
/// Nobody tells when the process's budget has room.
constexpr std::chrono::milliseconds kLookForRoom{50}, kLookForDisk{200};

bool is_full(const Status &status) { return status.code() == Code::kIo && status.error().cause == ENOSPC; }

std::size_t sum_of(std::span<const std::span<const std::byte>> parts) {
  std::size_t sum = 0;
  for (const auto &part : parts) sum += part.size();
  return sum;
}

Error too_large(const char *what, std::size_t has, std::size_t most) {
  return {Code::kTooLarge, fmt::format("{} of {} bytes does not fit a log, which takes {}: split it", what, has, most)};
}

}  // namespace

// --- blocks -----------------------------------------------------------------------------------------------------------

Log::Impl::Impl(nssi::Runtime &its_runtime, Budget &budget, std::shared_ptr<LogStore> its_store,
                const LogOptions &options, RecoveredLog recovered)
    : runtime(its_runtime),
      store(std::move(its_store)),
      segment_bytes(store->segment_bytes()),
      id(recovered.id),
      patience(options.patience),
      waits_for_room(options.waits_for_room),
      blocks(budget, options),
      changed(runtime),
      next(recovered.next),
      before(recovered.end),
      synced(recovered.end),
      segments(std::move(recovered.segments)) {
  for (const auto &[number, segment] : segments)
    if (segment.live.empty()) dead.insert(number);
}

Result<std::unique_ptr<Log::Impl::Block>> Log::Impl::take_block(bool is_bulk) {
  while (status.ok()) {
    if (auto block = blocks.try_take(is_bulk)) return block;
    if (!room.ok()) return room.error();
    const auto waited = changed.wait(Deadline::in(kLookForRoom));
    if (!waited.ok() && waited.code() != Code::kTimedOut) return waited.error();
  }
  return status.error();
}

void Log::Impl::give_back(std::unique_ptr<Block> block) {
  blocks.give_back(std::move(block));
  changed.notify_all();
}

/// Where a block begins that has so many bytes at least.
Lsn Log::Impl::place_for(std::size_t size_bytes) const {
  const auto segment_end = (next / segment_bytes + 1) * segment_bytes;
  return segment_end - next < size_bytes ? segment_end : next;
}

void Log::Impl::begin(Block &block, std::size_t least_bytes) {
  block.lsn = place_for(least_bytes);
  block.used_bytes = kBlockHeaderBytes;
  block.most_bytes = std::min<std::size_t>(blocks.block_bytes(), segment_bytes - block.lsn % segment_bytes);
}

void Log::Impl::seal(std::unique_ptr<Block> block) {
  const BlockHeader header{block->is_bulk, false, id, block->lsn, block->used_bytes, before, synced};
  encode(header, block->memory.get());
  std::memset(block->memory.get() + block->used_bytes, 0, header.end() - header.lsn - block->used_bytes);
  unwritten.emplace(header.lsn, before);
  next = before = segments[header.lsn / segment_bytes].end = header.end();
  sealed.push_back(std::move(block));
}

void Log::Impl::note(const LogRange &record) {
  const auto number = record.begin / segment_bytes;
  segments[number].live.add(interval_of(record));
  dead.erase(number);
}

// --- writing ----------------------------------------------------------------------------------------------------------

void Log::Impl::wake_writer() {
  const bool is_needed = sealed.empty() ? writers == 0 && filling != nullptr : writers < kMostWriters;
  if (!is_needed) return;
  ++writers;
  runtime.spawn([self = shared_from_this()] { self->write_blocks(); });
}

void Log::Impl::write_blocks() {
  while (std::shared_ptr<Block> block = next_to_write()) {
    ++under_way;
    const auto result = write(block);
    --under_way;
    if (!result.ok()) {  // the store may have the memory still
      end_with(result);
      continue;
    }
    note_written(block->lsn);
    give_back(std::make_unique<Block>(std::move(*block)));
  }
  --writers;
}

/// Until there is room for it, or nobody wants it any more.
Status Log::Impl::write(const std::shared_ptr<Block> &block) {
  const std::span<const std::byte> bytes(block->memory.get(), round_up(block->used_bytes, kLogAlignment));
  for (bool was_full = false;; was_full = true) {
    auto result = carry_out("write", [this, block, bytes] { return store->write(block->lsn, bytes); });
    if (was_full && result.ok()) room = {};
    if (!is_full(result) || !waits_for_room || !status.ok()) return result;
    room = result;
    changed.notify_all();
    runtime.sleep_until(Deadline::in(kLookForDisk));
  }
}

/// In a fiber of its own, which is left behind if the store does not end it in time.
Status Log::Impl::carry_out(const char *what, std::function<Status()> work) {
  struct Operation {
    explicit Operation(nssi::Runtime &runtime) : ended(runtime) {}
    nssi::Event ended;
    Status status;
  };
  auto operation = std::make_shared<Operation>(runtime);
  runtime.spawn([operation, work = std::move(work), self = shared_from_this()] {
    operation->status = work();
    operation->ended.set();
  });
  const auto waited = operation->ended.wait(Deadline::in(patience));
  if (waited.ok()) return operation->status;
  if (waited.code() != Code::kTimedOut) return waited;
  return Error{
      Code::kTimedOut,
      fmt::format("a {} of the log did not end within {} ms: see whether its disk is gone", what, patience.count()),
      Scope::kService};
}

/// Null: none, or none now.
std::unique_ptr<Log::Impl::Block> Log::Impl::next_to_write() {
  if (sealed.empty() && under_way == 0 && filling) seal(std::move(filling));
  if (sealed.empty()) return nullptr;
  auto block = std::move(sealed.front());
  sealed.pop_front();
  return block;
}

void Log::Impl::note_written(Lsn block) {
  unwritten.erase(block);
  store->note_written(end_of_written());
  newest_segment = std::max(newest_segment, block / segment_bytes);
  release_dead();
}

void Log::Impl::end_with(const Status &error) {
  if (status.ok()) status = error;
  for (; !sealed.empty(); sealed.pop_front()) blocks.give_back(std::move(sealed.front()));
  if (filling) {
    unwritten.emplace(filling->lsn, before);
    blocks.give_back(std::move(filling));
  }
  changed.notify_all();
}

Lsn Log::Impl::end_of_written() const { return unwritten.empty() ? before : unwritten.begin()->second; }

bool Log::Impl::is_written(Lsn until) const { return until <= end_of_written() || (unwritten.empty() && !filling); }

Status Log::Impl::await_written(Lsn until) {
  while (!is_written(until)) {
    if (!status.ok()) return status;
    if (!room.ok()) return room;
    if (auto waited = changed.wait(); !waited.ok()) return waited;
  }
  return {};
}

Status Log::Impl::await_synced(Lsn until) {
  if (auto written = await_written(until); !written.ok()) return written;
  until = std::min(until, end_of_written());
  while (synced < until) {
    if (!status.ok()) return status;
    begin_sync();
    if (auto waited = changed.wait(); !waited.ok()) return waited;
  }
  return {};
}

/// Nothing, if one is under way: whoever needs more begins another one when that has ended.
void Log::Impl::begin_sync() {
  if (is_syncing || !status.ok()) return;
  is_syncing = true;
  runtime.spawn([self = shared_from_this()] { self->sync(); });
}

void Log::Impl::sync() {
  const auto until = end_of_written();
  const auto result = carry_out("sync", [this] { return store->sync(); });
  is_syncing = false;
  if (!result.ok()) return end_with(result);
  synced = std::max(synced, until);
  release_dead();
  changed.notify_all();
}

Status Log::Impl::flush() {
  const auto written = await_written(end());
  if (!room.ok()) {
    end_with(room);
    while (under_way > 0)
      if (auto waited = changed.wait(Deadline::in(kLookForRoom)); waited.code() == Code::kCancelled) return waited;
  }
  if (!written.ok()) return written;
  while (is_syncing)
    if (auto waited = changed.wait(); !waited.ok()) return waited;
  return {};
}

/// What was cut off; and what was not is synced.
Status Log::Impl::erase(std::vector<BlockHeader> cut) {
  if (segments.empty()) return {};
  return carry_out("first sync", [this, cut = std::move(cut)]() -> Status {
    const auto page = allocate_pages(kLogAlignment);
    if (!page) return Error{Code::kNoMemory, "there is no memory to open a log with: try again"};
    std::memset(page.get(), 0, kLogAlignment);
    for (auto header : cut) {
      header.is_erased = true;
      encode(header, page.get());
      if (auto written = store->write(header.lsn, {page.get(), kLogAlignment}); !written.ok()) return written;
    }
    return store->sync();
  });
}

// --- releasing --------------------------------------------------------------------------------------------------------

void Log::Impl::release(const LogRange &range) {
  for (auto at = segments.lower_bound(range.begin / segment_bytes);
       at != segments.end() && at->first * segment_bytes < range.end; ++at) {
    at->second.live.subtract(interval_of(range));
    if (at->second.live.empty()) dead.insert(at->first);
  }
  release_dead();
}

/// Those that nobody writes any more, and before whose end all is synced: otherwise what lies behind them could outlive
/// a power failure, and what lies before them not. The newest stays in any case, so that positions never begin anew.
void Log::Impl::release_dead() {
  while (!dead.empty()) {
    const auto number = *dead.begin();
    const LogRange segment{number * segment_bytes, (number + 1) * segment_bytes};
    if (number >= newest_segment || segment.end > end_of_written()) return;
    if (segment.end > synced) return begin_sync();
    dead.erase(number);
    segments.erase(number);
    store->release(segment);
  }
}

// --- Log --------------------------------------------------------------------------------------------------------------

Log::Log(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::~Log() = default;

Result<std::unique_ptr<Log>> Log::open(nssi::Runtime &runtime, Budget &budget, std::unique_ptr<LogStore> store,
                                       LogOptions options) {
  std::shared_ptr<LogStore> shared = std::move(store);
  auto recovered = recover_log(runtime, shared);
  if (!recovered.ok()) return recovered.error();
  auto cut = std::move(recovered->cut);
  auto impl = std::make_shared<Impl>(runtime, budget, std::move(shared), options, *std::move(recovered));
  if (auto erased = impl->erase(std::move(cut)); !erased.ok()) return erased.error();
  return std::unique_ptr<Log>(new Log(std::move(impl)));
}

std::size_t Log::most_record_bytes() const {
  const auto most = std::min<std::size_t>(impl_->blocks.block_bytes(), impl_->segment_bytes);
  return most - kBlockHeaderBytes - kRecordHeaderBytes;
}

std::size_t Log::most_bulk_bytes() const {
  return std::min<std::size_t>(impl_->blocks.block_bytes(), impl_->segment_bytes) - kLogAlignment;
}

Result<LogRange> Log::append(std::uint16_t kind, std::span<const std::byte> head,
                             std::span<const std::span<const std::byte>> data) {
  auto &log = *impl_;
  RecordHeader header{kind, static_cast<std::uint16_t>(head.size()), sum_of(data)};
  const auto both = head.size() + header.data_bytes;
  if (head.size() > kMostHeadBytes) return too_large("a head", head.size(), kMostHeadBytes);
  if (both > most_record_bytes()) return too_large("a record", both, most_record_bytes());
  const auto size_bytes = header.size_bytes();
  while (!log.filling || log.filling->used_bytes + size_bytes > log.filling->most_bytes) {
    if (log.filling) log.seal(std::move(log.filling));
    log.wake_writer();
    auto block = log.take_block(false);
    if (!block.ok()) return block.error();
    if (log.filling) {  // somebody else's, meanwhile
      log.give_back(*std::move(block));
      continue;
    }
    log.begin(**block, kBlockHeaderBytes + size_bytes);
    log.filling = *std::move(block);
  }
  const auto at = log.put(header, head, data);
  log.wake_writer();
  return at;
}

/// Behind the others of the block that is being filled.
LogRange Log::Impl::put(RecordHeader header, std::span<const std::byte> head,
                        std::span<const std::span<const std::byte>> data) {
  auto &block = *filling;
  auto *const record = block.memory.get() + block.used_bytes;
  auto *to = record + kRecordHeaderBytes;
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  to += head.size();
  for (const auto &part : data) {
    header.data_checksum = copy_crc32c(to, part.data(), part.size(), header.data_checksum);
    to += part.size();
  }
  std::memset(to, 0, static_cast<std::size_t>(record + header.size_bytes() - to));
  encode(header, id, block.lsn + block.used_bytes, record);
  const bool is_first = block.used_bytes == kBlockHeaderBytes;
  const LogRange at{block.lsn + (is_first ? 0 : block.used_bytes), block.lsn + block.used_bytes + header.size_bytes()};
  block.used_bytes += header.size_bytes();
  note(at);
  return at;
}

Result<Log::Bulk> Log::take_bulk() {
  auto block = impl_->take_block(true);
  if (!block.ok()) return block.error();
  return Bulk(*impl_, *std::move(block));
}

Result<LogRange> Log::append(std::uint16_t kind, std::span<const std::byte> head, Bulk bulk, std::size_t data_bytes,
                             std::optional<std::uint32_t> checksum) {
  auto &log = *impl_;
  if (!log.status.ok()) return log.status.error();
  if (head.size() > kMostBulkHead) return too_large("a bulk record's head", head.size(), kMostBulkHead);
  if (data_bytes > most_bulk_bytes()) return too_large("a bulk record", data_bytes, most_bulk_bytes());
  if (log.filling) log.seal(std::move(log.filling));
  auto block = std::move(bulk.block_);
  log.begin(*block, kLogAlignment + data_bytes);
  auto *const record = block->memory.get() + kBlockHeaderBytes;
  const std::span<const std::byte> data(block->memory.get() + kLogAlignment, data_bytes);
  std::memset(record, 0, kLogAlignment - kBlockHeaderBytes);
  if (!head.empty()) std::memcpy(record + kRecordHeaderBytes, head.data(), head.size());
  encode(RecordHeader{kind, static_cast<std::uint16_t>(head.size()), data_bytes, checksum ? *checksum : crc32c(data)},
         log.id, block->lsn + kBlockHeaderBytes, record);
  block->used_bytes = kLogAlignment + data_bytes;
  const LogRange at{block->lsn, block->lsn + block->used_bytes};
  log.note(at);
  log.seal(std::move(block));
  log.wake_writer();
  return at;
}

/// After the fiber that takes the block comes the one that carries the writing out.
void Log::begin_writing() {
  for (int turn = 0; turn < 2; ++turn) {
    const auto others_had_theirs = std::make_shared<nssi::Event>(impl_->runtime);
    impl_->runtime.spawn([others_had_theirs] { others_had_theirs->set(); });
    (void)others_had_theirs->wait();
  }
}

Status Log::await_written(Lsn until) { return impl_->await_written(until); }
Status Log::await_synced(Lsn until) { return impl_->await_synced(until); }
Status Log::flush() { return impl_->flush(); }
Lsn Log::end() const { return impl_->end(); }
void Log::release(const LogRange &range) { impl_->release(range); }
std::uint64_t Log::held_bytes() const { return impl_->store->held_bytes(); }
std::uint64_t Log::segment_bytes() const { return impl_->segment_bytes; }
Status Log::status() const { return impl_->status; }
Status Log::room() const { return impl_->room; }
Status Log::replay(Lsn from, const Visitor &visitor) { return impl_->replay(from, visitor); }
Status Log::read(const LogRange &at, std::span<std::byte> data) { return impl_->read(at, data); }

// --- Log::Bulk --------------------------------------------------------------------------------------------------------

Log::Bulk::Bulk(Log::Impl &log, std::unique_ptr<Block> block) : log_(&log), block_(std::move(block)) {}
Log::Bulk::Bulk(Bulk &&) noexcept = default;
Log::Bulk &Log::Bulk::operator=(Bulk &&other) noexcept {
  if (this == &other) return *this;
  if (block_) log_->give_back(std::move(block_));
  log_ = other.log_;
  block_ = std::move(other.block_);
  return *this;
}
Log::Bulk::~Bulk() {
  if (block_) log_->give_back(std::move(block_));
}
std::byte *Log::Bulk::data() const { return block_->memory.get() + kLogAlignment; }

}  // namespace nessie::service
