// SPDX-License-Identifier: BSD-3-Clause
// The calling role: threads that make calls of all kinds, to all servers, and end them in all ways. Each call is
// written down before it is made, and its outcome when it is known.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <mutex>
#include <random>
#include <utility>

#include "chaos.hpp"

namespace chaos {

namespace {

constexpr std::size_t kSlots = 12, kBufferBytes = 96 << 10;
constexpr milliseconds kNestedDeadline{1000}, kConnecting{2000};
/// Opening a transport is part of the first connection, and libfabric takes its time.
constexpr milliseconds kOpening{30000};

/// Whether an error says that the call was not carried out.
bool promises_nothing_was_done(const nssi::Error &error) {
  switch (error.code) {
    case Code::kNotFound:
    case Code::kUnsupported:
    case Code::kBusy:
    case Code::kUnavailable: return true;
    default: break;
  }
  for (const char *promise : {"it was not carried out", "had passed before it was sent", "was not started before"})
    if (error.message.find(promise) != std::string::npos) return true;
  return false;
}

/// Errors that nothing can cause that is done here.
bool is_strange(Code code) {
  switch (code) {
    case Code::kTimedOut:
    case Code::kPeerLost:
    case Code::kNotFound:
    case Code::kBusy:
    case Code::kUnavailable:
    case Code::kIo:
    case Code::kCancelled: return false;
    default: return true;
  }
}

/// A server, which may be started anew at another address.
struct Target {
  std::string url_file;
  std::uint8_t place = 0;
  std::atomic<std::uint64_t> peer{0};
  std::atomic<bool> is_lost{true};
  std::mutex connecting;
};

/// How often a callback came.
using Told = std::shared_ptr<std::atomic<int>>;

struct Slot {
  bool is_busy = false, is_lent = false;
  Record record;
  Deadline deadline = Deadline::never();
  std::uint64_t peer = 0, result_bytes = 0;
  Target *target = nullptr;
  Told told;
  bool must_be_told = false;
  nssi::Call call;
  Bytes memory;
  nnti::RegisteredBuffer buffer;
  bool is_watched = false;  ///< the memory is full of the canary
  std::byte canary{0};
};

class Client {
 public:
  Client(const std::string &transport, const std::string &journal, std::uint32_t id,
         const std::vector<std::string> &url_files)
      : id_(id), journal_(journal), watchdog_([this] { journal_.append({.kind = 'h'}); }), targets_(url_files.size()) {
    for (std::size_t i = 0; i < url_files.size(); ++i) {
      targets_[i].url_file = url_files[i];
      targets_[i].place = static_cast<std::uint8_t>(i);
    }
    nssi::RuntimeOptions options;
    options.endpoint.transports = {transport};
    options.endpoint.listen = false;
    auto opened = nssi::Runtime::open(std::move(options));
    if (!opened.ok()) throw std::runtime_error(opened.error().to_string());
    runtime_ = *std::move(opened);
    open_runtime_ = runtime_.get();
    runtime_->on_peer_lost([this](nssi::PeerId peer, const nssi::Error &) { lose(peer.value); });
  }

  void run();

  std::uint64_t next_number() { return std::uint64_t{id_} << 32 | ++last_; }
  /// Also while it is being destroyed, when fibers run to their ends.
  nssi::Runtime &runtime() { return *open_runtime_; }
  Journal &journal() { return journal_; }
  std::deque<Target> &targets() { return targets_; }
  void lose(std::uint64_t peer) {
    for (auto &target : targets_)
      if (target.peer.load() == peer) target.is_lost.store(true);
  }
  void connect(Target &target);
  void unregister(nnti::RegisteredBuffer buffer) {
    if (runtime_) open_runtime_->unregister_memory(std::move(buffer));
  }

 private:
  const std::uint32_t id_;
  std::atomic<std::uint32_t> last_{0};
  Journal journal_;
  Watchdog watchdog_;
  std::deque<Target> targets_;
  std::unique_ptr<nssi::Runtime> runtime_;
  nssi::Runtime *open_runtime_ = nullptr;
};

/// If somebody else is at it, or there is no server, it stays lost for now.
void Client::connect(Target &target) {
  const std::unique_lock lock(target.connecting, std::try_to_lock);
  if (!lock.owns_lock() || !target.is_lost.load()) return;
  std::string url;
  std::getline(std::ifstream(target.url_file) >> std::ws, url);
  if (url.empty()) return;
  auto peer = runtime_->connect(url, Deadline::in(kConnecting));
  if (!peer.ok()) return;
  target.is_lost.store(false);
  target.peer.store(peer->value);
}

/// One thread's calls.
class Worker {
 public:
  Worker(Client &client, std::uint64_t seed, Watchdog::Due &due) : client_(client), random_(seed), due_(due) {
    for (auto &slot : slots_) slot.memory.resize(kBufferBytes);
  }
  void run() {
    while (!is_told_to_end.load()) step();
  }
  /// Of all calls; the runtime may be gone.
  void end_all() {
    for (auto &slot : slots_)
      if (slot.is_busy) wait(slot);
    for (auto &slot : slots_) check_canary(slot);
  }
  /// When the runtime is gone.
  void check_callbacks() {
    for (auto &[number, told] : to_be_told_)
      if (told->load() != 1) client_.journal().append({.number = number, .kind = 'b'});
  }

 private:
  bool chance(unsigned percent) { return random_() % 100 < percent; }
  std::uint64_t up_to(std::uint64_t most) { return random_() % (most + 1); }

  void step();
  void begin(Slot &slot);
  void begin_with(Slot &slot, Op op, nssi::CallOptions options, const Head &head);
  void lend(Slot &slot, Op op, nssi::CallOptions &options);
  void add_callback(Slot &slot, nssi::CallOptions &options);
  void call_from_callback(Target &target);
  void end(Slot &slot);
  void wait(Slot &slot);
  void wait_for_any();
  void drop(Slot &slot);
  void conclude(Slot &slot, const nssi::Status &status, std::int64_t began_us);
  bool is_right(const Slot &slot) const;
  void retire(Slot &slot);
  void check_canary(Slot &slot);
  std::uint64_t some_bytes();
  Deadline some_deadline();

  Client &client_;
  std::mt19937_64 random_;
  Watchdog::Due &due_;
  std::array<Slot, kSlots> slots_;
  std::deque<std::pair<std::uint64_t, Told>> to_be_told_;
};

/// While there is one, its thread must be back in time.
class Watched {
 public:
  Watched(Watchdog::Due &due, Deadline deadline) : due_(due) {
    const auto grace = kGrace.count() * 1000;
    const auto when = std::chrono::duration_cast<std::chrono::microseconds>(deadline.when().time_since_epoch()).count();
    due_.store(std::max(when, now_us()) + grace);
  }
  ~Watched() { due_.store(0); }
  Watched(const Watched &) = delete;

 private:
  Watchdog::Due &due_;
};

std::uint64_t Worker::some_bytes() {
  if (chance(60)) return up_to(200);
  if (chance(60)) return up_to(12000);
  return chance(90) ? up_to(150000) : up_to(1500000);
}

Deadline Worker::some_deadline() {
  if (chance(10)) return Deadline::in(milliseconds(up_to(20)));
  return Deadline::in(milliseconds(chance(30) ? 50 + up_to(450) : 1500 + up_to(4000)));
}

void Worker::step() {
  auto &slot = slots_[up_to(kSlots - 1)];
  if (slot.is_busy)
    end(slot);
  else
    begin(slot);
}

void Worker::begin(Slot &slot) {
  check_canary(slot);
  if (slot.is_watched && chance(80)) return;
  slot.is_watched = false;
  auto &target = client_.targets()[up_to(client_.targets().size() - 1)];
  if (target.is_lost.load()) {
    const Watched watched(due_, Deadline::in(kOpening));
    client_.connect(target);
  }
  if (target.peer.load() == 0) return;
  slot.target = &target;
  const auto op = chance(2) ? kMissing : static_cast<Op>(1 + up_to(kLast - 1));
  nssi::CallOptions options;
  options.idempotent = chance(20);
  options.one_way = (op == kNap || op == kPooledEcho || op == kShort) && chance(30);
  if (chance(15)) options.when_busy = nssi::CallOptions::WhenBusy::kFail;
  slot.deadline = some_deadline();
  options.deadline = slot.deadline;
  const Head head{client_.next_number(), some_bytes(), some_bytes()};
  begin_with(slot, op, std::move(options), head);
}

void Worker::begin_with(Slot &slot, Op op, nssi::CallOptions options, const Head &head) {
  slot.record = {.number = head.number, .kind = 'i', .op = static_cast<std::uint8_t>(op), .server = slot.target->place};
  slot.record.flags =
      static_cast<std::uint8_t>((options.idempotent ? kIdempotent : 0) | (options.one_way ? kOneWay : 0));
  if (options.when_busy == nssi::CallOptions::WhenBusy::kFail) slot.record.flags |= kNotWaiting;
  slot.result_bytes = head.result_bytes;
  lend(slot, op, options);
  slot.told = nullptr;
  if (chance(15)) add_callback(slot, options);
  client_.journal().append(slot.record);
  slot.peer = slot.target->peer.load();
  slot.is_busy = true;
  const Watched watched(due_, Deadline::now());
  slot.call = client_.runtime().call(
      {{slot.peer}, kInterface, 0}, op, sizeof head + head.padding_bytes,
      [&](std::span<std::byte> args) {
        std::memcpy(args.data(), &head, sizeof head);
        fill_pattern(head.number, args.subspan(sizeof head));
      },
      options);
  if (slot.told && !slot.must_be_told)
    slot.call.when_over([this, told = slot.told, target = slot.target] {
      told->fetch_add(1);
      call_from_callback(*target);
    });
}

void Worker::lend(Slot &slot, Op op, nssi::CallOptions &options) {
  const bool is_pull = op == kPull || op == kPooledPull || op == kBulkPull;
  if (!is_pull && op != kPush && op != kPooledPush) return;
  const auto rights = is_pull ? nnti::Rights::kRemoteRead : nnti::Rights::kRemoteWrite;
  auto buffer = client_.runtime().register_memory(slot.memory, rights);
  if (!buffer.ok()) throw std::runtime_error(buffer.error().to_string());
  slot.buffer = *std::move(buffer);
  options.data = &slot.buffer;
  slot.is_lent = true;
  slot.record.flags |= kHasData;
  if (is_pull) fill_pattern(slot.record.number, slot.memory);
}

/// One of two kinds: `on_over` comes always, when_over() not if the call was dropped.
void Worker::add_callback(Slot &slot, nssi::CallOptions &options) {
  slot.told = std::make_shared<std::atomic<int>>(0);
  slot.must_be_told = chance(60);
  if (!slot.must_be_told) return;
  options.on_over = [told = slot.told] { told->fetch_add(1); };
  to_be_told_.emplace_back(slot.record.number, slot.told);
  while (to_be_told_.size() > 1000 && to_be_told_.front().second->load() == 1) to_be_told_.pop_front();
}

/// A call within a fiber.
void Worker::call_from_callback(Target &target) {
  const Head head{client_.next_number(), 100, 100};
  Record record{.number = head.number, .kind = 'i', .op = kNap, .server = target.place};
  client_.journal().append(record);
  Bytes args(sizeof head + head.padding_bytes);
  std::memcpy(args.data(), &head, sizeof head);
  fill_pattern(head.number, std::span(args).subspan(sizeof head));
  nssi::CallOptions options;
  options.deadline = Deadline::in(kNestedDeadline);
  auto call = client_.runtime().call({{target.peer.load()}, kInterface, 0}, kNap, args, options);
  const auto status = call.wait();
  record.kind = 'o';
  record.code = static_cast<std::int32_t>(status.code());
  record.is_right = status.ok() ? call.view().size() == head.result_bytes && is_pattern(head.number, call.view())
                                : promises_nothing_was_done(status.error());
  client_.journal().append(record);
}

void Worker::end(Slot &slot) {
  const auto manner = up_to(99);
  if (manner < 55) return wait(slot);
  if (manner < 70) return wait_for_any();
  if (manner < 80) return drop(slot);
  const auto began_us = now_us();
  const Watched watched(due_, slot.deadline);
  if (manner < 90) {
    (void)slot.call.wait(Deadline::in(milliseconds(up_to(20)))).ok();
    if (slot.call.is_over()) conclude(slot, slot.call.wait(), began_us);
  } else if (slot.call.test()) {
    conclude(slot, slot.call.wait(), began_us);
  }
}

void Worker::wait(Slot &slot) {
  const auto began_us = now_us();
  const Watched watched(due_, slot.deadline);
  conclude(slot, slot.call.wait(), began_us);
}

void Worker::wait_for_any() {
  std::vector<nssi::Call> calls;
  std::vector<Slot *> slots;
  auto first = Deadline::never();
  for (auto &slot : slots_) {
    if (!slot.is_busy) continue;
    calls.push_back(std::move(slot.call));
    slots.push_back(&slot);
    first = first.earlier(slot.deadline);
  }
  const auto began_us = now_us();
  const Watched watched(due_, first);
  const auto place = nssi::wait_any(calls);
  for (std::size_t i = 0; i < calls.size(); ++i) slots[i]->call = std::move(calls[i]);
  if (place.ok()) conclude(*slots[*place], slots[*place]->call.wait(), began_us);
}

void Worker::drop(Slot &slot) {
  const auto began_us = now_us();
  {
    const Watched watched(due_, slot.deadline);
    slot.call = {};
  }
  slot.record.flags |= kDropped;
  conclude(slot, nssi::Error{Code::kCancelled, "dropped"}, began_us);
}

void Worker::conclude(Slot &slot, const nssi::Status &status, std::int64_t began_us) {
  auto &record = slot.record;
  const auto due_us =
      std::chrono::duration_cast<std::chrono::microseconds>(slot.deadline.when().time_since_epoch()).count();
  record.kind = 'o';
  record.code = static_cast<std::int32_t>(status.code());
  record.late_ms = static_cast<std::int32_t>(std::max<std::int64_t>(now_us() - std::max(due_us, began_us), 0) / 1000);
  record.is_right = status.ok() ? is_right(slot) : promises_nothing_was_done(status.error());
  if (!status.ok() && is_strange(status.code()))
    fmt::print(stderr, "call {:x} of operation {}, {} ms before its deadline: {}\n", record.number, record.op,
               (due_us - now_us()) / 1000, status.error().to_string());
  if (status.code() == Code::kPeerLost && status.error().scope == nessie::Scope::kPeer) client_.lose(slot.peer);
  client_.journal().append(record);
  retire(slot);
}

bool Worker::is_right(const Slot &slot) const {
  const auto result = slot.call.view();
  const auto number = slot.record.number;
  if ((slot.record.flags & kOneWay) != 0) return result.empty();
  if ((slot.record.flags & kHasData) == 0) return result.size() == slot.result_bytes && is_pattern(number, result);
  return result.size() == 1 && result[0] == std::byte{1} && is_pattern(number, slot.memory);
}

/// A service may still finish reading what it had begun to (src/nssi/README.md): that it may get other bytes is meant.
[[gnu::no_sanitize("thread")]] void fill_while_it_may_be_read(std::vector<std::byte> &memory, std::byte value) {
  for (std::size_t i = 0; i < memory.size(); ++i) static_cast<volatile std::byte &>(memory.data()[i]) = value;
}

/// The data buffer is ours again: nobody writes into it any more, also if it stays registered for a while.
void Worker::retire(Slot &slot) {
  slot.call = {};
  slot.is_busy = false;
  if (!slot.is_lent) return;
  slot.is_watched = true;
  slot.canary = static_cast<std::byte>(random_());
  fill_while_it_may_be_read(slot.memory, slot.canary);
}

void Worker::check_canary(Slot &slot) {
  const auto is_canary = [&](std::byte byte) { return byte == slot.canary; };
  if (slot.is_watched && !std::ranges::all_of(slot.memory, is_canary)) {
    auto record = slot.record;
    record.kind = slot.is_lent ? 'T' : 't';
    client_.journal().append(record);
  }
  slot.is_watched = std::exchange(slot.is_lent, false);
  if (!slot.is_watched) return;
  client_.unregister(std::move(slot.buffer));
  std::ranges::fill(slot.memory, slot.canary);
}

/// With one thread or several, and with or without one that does nothing but drive.
void Client::run() {
  const auto seed = mixed(id_);
  const bool is_driven = seed % 2 == 0, ends_abruptly = seed / 2 % 3 == 0;
  std::deque<Worker> workers;
  for (std::size_t i = 0; i < 1 + seed / 6 % 3; ++i) workers.emplace_back(*this, seed + i, watchdog_.watch());
  std::thread driver;
  if (is_driven) driver = std::thread([this] { runtime_->run(); });
  std::vector<std::thread> threads;
  for (auto &worker : workers) threads.emplace_back([&worker] { worker.run(); });
  for (auto &thread : threads) thread.join();
  if (!ends_abruptly)
    for (auto &worker : workers) worker.end_all();
  if (is_driven) {
    runtime_->stop();
    driver.join();
  }
  runtime_.reset();
  for (auto &worker : workers) worker.end_all();
  for (auto &worker : workers) worker.check_callbacks();
  journal_.append({.kind = 'e'});
}

}  // namespace

int call(const std::string &transport, const std::string &journal, std::uint32_t id,
         const std::vector<std::string> &url_files) {
  Client client(transport, journal, id, url_files);
  client.run();
  return 0;
}

}  // namespace chaos
