// SPDX-License-Identifier: BSD-3-Clause
// Thousands of random schedules of faults: two parties of this process, one thread, a clock that the test moves, and a
// network that loses, doubles, delays, overtakes, fails transfers, breaks, falls silent, or loses a whole party.
// Whatever happens: every message arrives once, in order and whole; every transfer moves the right bytes; every atomic
// operation is carried out once; or there is a typed error. And nothing hangs, in simulated time or in turns.
//
// NESSIE_SCHEDULE=<number> runs one schedule alone; NESSIE_SCHEDULES=<count> so many.
#include "nnti/channel/transport.hpp"
#include "nnti/conformance/tools_testing.hpp"
#include "nnti/transport/atomics.hpp"
#include "nnti/transports/faulty/transport.hpp"
#include "nnti/transports/faulty/transport_impl.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <set>

namespace nnti {
namespace {

using namespace std::chrono_literals;
using faulty::Dice;
using test::Bytes;

constexpr std::uint64_t kSchedules = test::kSanitized ? 1'000 : 10'000;
constexpr std::uint64_t kMostTurns = 300'000;
constexpr auto kMostTime = 120s;  ///< simulated; restoring a connection, silence and lingering take seconds each
constexpr PeerId kPeer{1};

// --- time -------------------------------------------------------------------------------------------------------------

nessie::Clock::time_point simulated_now{1h};

nessie::TimeSource simulated_time() {
  return {[] { return simulated_now; }, [](nessie::Clock::duration time) { simulated_now += time; }};
}

// --- what is moved ------------------------------------------------------------------------------------------------------

std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 14695981039346656037u;
  for (auto byte : bytes) sum = (sum ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211u;
  return sum;
}

Bytes random_bytes(Dice &dice, std::size_t size_bytes) {
  Bytes bytes(size_bytes);
  for (auto &byte : bytes) byte = static_cast<std::byte>(dice.next());
  return bytes;
}

constexpr std::size_t kSlotBytes = 512, kSlots = 16;  ///< the first half of the slots is put to, the other only read
constexpr std::uint32_t kNoSlot = ~0u;

/// The beginning of every message. What follows is padding.
struct Head {
  std::uint64_t checksum = 0;  ///< of all that follows
  std::uint64_t number = 0;
  std::uint64_t slot_checksum = 0;  ///< what a put has left in the receiver's slot, before this was sent
  std::uint32_t slot = kNoSlot;
  std::uint32_t zero = 0;
};

class Ended : public Completion {
 public:
  void on_complete(Status result) override {
    ++times;
    status = std::move(result);
  }
  int times = 0;
  Status status;

 protected:
  ~Ended() = default;
};

struct Transfer final : Ended {
  bool get = false, told = false;
  std::uint32_t slot = 0;
  Bytes local;
};

struct Addition final : Ended {
  std::uint64_t previous = 0;
};

// --- a party ------------------------------------------------------------------------------------------------------------

/// One endpoint's worth: a channel over a faulty network, what it sends and what it must receive.
class Party final : TransportEvents {
 public:
  Party(nessie::Config config, bool listens, std::uint64_t seed) : config_(std::move(config)), dice_(seed) {
    config_.set("nnti.faulty.seed", std::to_string(dice_.next() >> 32));
    const auto opener = [this](const TransportOptions &options) {
      auto opened = faulty::open(options);
      if (opened.ok()) network_ = static_cast<faulty::FaultyTransport *>(opened->get());
      return opened;
    };
    auto opened = channel::open({credential_, config_, *this, poller_, listens, "faulty+inproc", simulated_time()},
                                Reliability::kLossy, opener);
    EXPECT_TRUE(opened.ok()) << opened.error().to_string();
    transport = std::move(*opened);
    memory_ = random_bytes(dice_, kSlots * kSlotBytes);
    buffer_ = registered(memory_, Rights::kReadWrite);
    counter_buffer_ = registered(std::as_writable_bytes(std::span(&counter, 1)), Rights::kRemoteAtomic);
  }

  /// The transport ends what is under way, and says so.
  ~Party() {
    buffer_.reset();
    counter_buffer_.reset();
    transport.reset();
  }

  void meet(Party &other) { other_ = &other; }
  void connected(Connection &connection) {
    was_connected = true;
    peer_ = &connection;
    peer_->peer = kPeer;
  }
  bool is_connected() const { return peer_ != nullptr; }
  bool gone() const { return dead || closed || loss.has_value(); }
  /// As a killed process: says nothing more, and nobody looks at what it did not finish.
  void die() {
    dead = true;
    network_->die();
  }
  /// Leaves, if nothing of its own is pending.
  void close() {
    if (gone() || peer_ == nullptr || !idle()) return;
    closed = true;
    std::exchange(peer_, nullptr)->close();
  }
  /// Everything that it began has ended.
  bool idle() const {
    const auto ended = [](const Ended &operation) { return operation.times != 0; };
    return queue_.empty() && atomics_.size() == 0 && std::ranges::all_of(transfers_, ended) &&
           std::ranges::all_of(additions_, ended);
  }

  std::size_t turn() {
    if (dead) return 0;
    const auto events = transport->progress();
    while (peer_ != nullptr && !queue_.empty() && peer_->try_send(queue_.front().first, queue_.front().second))
      queue_.pop_front();
    tell_of_puts();
    return events;
  }

  std::size_t transfers() const { return transfers_.size(); }
  std::size_t additions() const { return additions_.size(); }
  std::uint64_t connections() const { return network_->connections_made(); }

  void do_something() {
    if (gone() || peer_ == nullptr) return;
    const auto what = dice_.below(10);
    if (what < 5) return send_numbered(kNoSlot, 0);
    if (what < 8) return transfer();
    add();
  }

  /// After the end of all: what this party began on the other.
  void check(bool nothing_was_lost);

  std::unique_ptr<Transport> transport;
  std::optional<Error> loss;
  bool dead = false, closed = false, was_connected = false;
  std::uint64_t sent = 0, received = 0;
  alignas(8) std::uint64_t counter = 0;
  std::string wrong;  ///< the first thing that was

 private:
  std::unique_ptr<TransportMemory> registered(std::span<std::byte> bytes, Rights rights) {
    auto memory = transport->register_memory({bytes, rights, -1});
    EXPECT_TRUE(memory.ok());
    return std::move(*memory);
  }
  std::span<std::byte> slot(std::uint32_t number) {
    return std::span(memory_).subspan(number * kSlotBytes, kSlotBytes);
  }
  void complain(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  }

  void accepted(Connection &connection) override {
    if (peer_ == nullptr && !gone()) return connected(connection);
    connection.close();
  }

  void lost(Connection &, Loss how, const Error &error) override {
    if (how != Loss::kGone) complain("a broken connection was shown");
    if (closed || loss) complain("lost twice, or after it was closed");
    for (const auto &transfer : transfers_)
      if (transfer.times == 0) complain("lost before a transfer ended");
    loss = error;
    peer_ = nullptr;
    queue_.clear();
    atomics_.abandon(kPeer, {Code::kPeerLost, error.message});
  }

  void message(Connection &, MessageKind kind, std::span<const std::byte> message) override {
    if (closed) complain("a message after the connection was closed");
    if (kind == MessageKind::kAtomicDone && !atomics_.on_answer(kPeer, message)) complain("an answer to nothing");
    if (kind == MessageKind::kAtomic) send(MessageKind::kAtomicDone, answer_atomic(*transport, message));
    if (kind != MessageKind::kUser) return;
    check_message(message);
    if (depth_ > 2 || !dice_.chance(0.1)) return;
    ++depth_;
    do_something();
    transport->progress();
    --depth_;
  }

  void check_message(std::span<const std::byte> message) {
    Head head;
    if (message.size() < sizeof head) return complain("a message was cut short");
    std::memcpy(&head, message.data(), sizeof head);
    if (head.number != received++) complain(fmt::format("message {} instead of {}", head.number, received - 1));
    if (head.checksum != checksum(message.subspan(sizeof head.checksum))) complain("a message is not whole");
    if (head.slot == kNoSlot) return;
    if (checksum(slot(head.slot)) != head.slot_checksum) complain("a put is not visible before the message after it");
    other_->busy_[head.slot] = false;
  }

  void send(MessageKind kind, Bytes bytes) {
    if (peer_ == nullptr) return;
    if (queue_.empty() && peer_->try_send(kind, bytes)) return;
    queue_.emplace_back(kind, std::move(bytes));
  }

  void send_numbered(std::uint32_t of_slot, std::uint64_t slot_checksum) {
    auto bytes = random_bytes(dice_, sizeof(Head) + dice_.below(dice_.chance(0.1) ? 3000 : 100));
    Head head{0, sent++, slot_checksum, of_slot, 0};
    std::memcpy(bytes.data(), &head, sizeof head);
    head.checksum = checksum(std::span(bytes).subspan(sizeof head.checksum));
    std::memcpy(bytes.data(), &head, sizeof head.checksum);
    send(MessageKind::kUser, std::move(bytes));
  }

  void transfer() {
    auto &transfer = transfers_.emplace_back();
    transfer.get = dice_.chance(0.5);
    transfer.slot = static_cast<std::uint32_t>(dice_.below(kSlots / 2) + (transfer.get ? kSlots / 2 : 0));
    if (!transfer.get && std::exchange(busy_[transfer.slot], true)) return transfers_.pop_back();
    const auto remote = other_->buffer_->describe();
    const auto offset = transfer.slot * kSlotBytes;
    transfer.local = transfer.get ? Bytes(kSlotBytes) : random_bytes(dice_, kSlotBytes);
    if (transfer.get) return peer_->get(remote, offset, transfer.local, transfer);
    peer_->put(remote, offset, transfer.local, transfer);
  }

  void tell_of_puts() {
    for (auto &transfer : transfers_) {
      if (transfer.get || transfer.times == 0 || !transfer.status.ok() || std::exchange(transfer.told, true)) continue;
      if (!gone()) send_numbered(transfer.slot, checksum(transfer.local));
    }
  }

  void add() {
    auto &addition = additions_.emplace_back();
    const AtomicOperation add_one{AtomicOperation::Kind::kFetchAdd, 1, 0};
    send(MessageKind::kAtomic,
         atomics_.ask(kPeer, other_->counter_buffer_->describe(), 0, add_one, addition.previous, addition));
  }

  nessie::Credential credential_;
  Poller poller_;
  nessie::Config config_;
  Dice dice_;
  Party *other_ = nullptr;
  Connection *peer_ = nullptr;
  faulty::FaultyTransport *network_ = nullptr;
  Bytes memory_;
  std::unique_ptr<TransportMemory> buffer_, counter_buffer_;
  std::deque<std::pair<MessageKind, Bytes>> queue_;
  std::list<Transfer> transfers_;
  std::list<Addition> additions_;
  PendingAtomics atomics_;
  std::array<bool, kSlots> busy_{};
  int depth_ = 0;
};

void Party::check(bool nothing_was_lost) {
  std::set<std::uint64_t> previous;
  for (const auto &operation : additions_) {
    if (operation.times > 1) complain("an atomic operation ended twice");
    if (operation.times == 1 && operation.status.ok() && !previous.insert(operation.previous).second)
      complain("two atomic operations saw the same word");
    if (operation.times == 1 && !operation.status.ok() &&
        (nothing_was_lost || operation.status.code() != Code::kPeerLost))
      complain("an atomic operation failed: " + operation.status.error().to_string());
  }
  if (nothing_was_lost && other_->counter != additions_.size()) complain("atomic operations were lost, or done twice");
  if (other_->counter < previous.size() || other_->counter > additions_.size()) complain("the count cannot be");
  for (const auto &operation : transfers_) {
    if (operation.times > 1) complain("a transfer ended twice");
    if (operation.times == 1 && !operation.status.ok() &&
        (nothing_was_lost || operation.status.code() != Code::kPeerLost))
      complain("a transfer failed: " + operation.status.error().to_string());
    if (operation.get && operation.times == 1 && operation.status.ok() &&
        !std::ranges::equal(operation.local, other_->slot(operation.slot)))
      complain("a get read something else");
  }
}

// --- a schedule ---------------------------------------------------------------------------------------------------------

/// What may happen in a schedule, drawn from its number.
struct Plan {
  nessie::Config config;
  std::string text;
  bool breaks = false, silence = false, silence_for_ever = false;
  int actions = 0;
  enum class End { kNone, kDeath, kClose } end = End::kNone;
  int end_after = 0;
  bool may_lose() const { return silence || end != End::kNone; }
};

Plan make_plan(Dice &dice) {
  Plan plan;
  const auto set = [&](std::string_view key, const std::string &value) {
    plan.config.set(key, value);
    plan.text += fmt::format(" {}={}", key, value);
  };
  const auto sometimes = [&](std::string_view fault, double most, std::string_view extent = "") {
    if (!dice.chance(0.5)) return false;
    const auto probability = most * static_cast<double>(1 + dice.below(100)) / 100;
    set(fmt::format("nnti.faulty.{}", fault), fmt::format("{:.6f}{}", probability, extent));
    return true;
  };
  (void)sometimes("loss", 0.1);
  (void)sometimes("duplicate", 0.2);
  (void)sometimes("delay", 0.3, dice.chance(0.5) ? ":30" : ":20ms");
  (void)sometimes("reorder", 0.3);
  (void)sometimes("transient", 0.3);
  plan.breaks = sometimes("break", 0.02, dice.chance(0.5) ? ":200ms" : ":50");
  plan.silence_for_ever = dice.chance(0.1);
  if (dice.chance(0.3)) plan.silence = sometimes("silent", 0.003, plan.silence_for_ever ? ":forever" : ":500ms");
  set("nnti.reconnect", "10s");  // so long that breaks alone do not end a connection
  set("nnti.peer_timeout", "3s");
  set("nnti.heartbeat", "200ms");
  if (dice.chance(0.3)) set("nnti.channel.messages", std::to_string(1 + dice.below(20)));
  plan.actions = static_cast<int>(5 + dice.below(100));
  if (dice.chance(0.2)) plan.end = dice.chance(0.5) ? Plan::End::kDeath : Plan::End::kClose;
  plan.end_after = static_cast<int>(dice.below(static_cast<std::uint64_t>(plan.actions)));
  plan.text += fmt::format(" actions={} end={} after {}", plan.actions, static_cast<int>(plan.end), plan.end_after);
  return plan;
}

class Schedule {
 public:
  /// In the middle, nobody makes progress for as long as `stop`, as on a machine that was suspended.
  explicit Schedule(std::uint64_t number, nessie::Clock::duration stop = {})
      : stop_(stop),
        dice_(number * 7919 + 1),
        plan_(make_plan(dice_)),
        server_(plan_.config, true, dice_.next()),
        client_(plan_.config, false, dice_.next()) {
    server_.meet(client_);
    client_.meet(server_);
  }

  /// Empty: all went well.
  std::string run() {
    begun_ = simulated_now;
    if (!connect()) return plan_.may_lose() ? (timed_out() ? "connecting hangs" : "") : "no connection" + why_;
    while (!finished()) {
      if (timed_out()) return "hangs: " + state();
      if (actions_ < plan_.actions && dice_.chance(0.3)) act();
      turn();
    }
    return verdict();
  }
  const std::string &plan() const { return plan_.text; }
  bool closes() const { return plan_.end == Plan::End::kClose; }
  const Party &server() const { return server_; }
  const Party &client() const { return client_; }
  bool connected() const { return client_.was_connected; }
  bool ended_early() const { return server_.gone() || client_.gone(); }
  std::uint64_t turns() const { return turns_; }

 private:
  bool timed_out() const { return turns_ > kMostTurns || simulated_now - begun_ > kMostTime; }

  void turn() {
    ++turns_;
    const auto events = server_.turn() + client_.turn();
    quiet_ = events == 0 ? quiet_ + 1 : 0;
    const auto most = quiet_ > 100 ? 20'000u : quiet_ > 10 ? 1'000u : 50u;
    simulated_now += std::chrono::microseconds(1 + dice_.below(most));
  }

  bool connect() {
    const auto url = nessie::Url::parse(server_.transport->url());
    auto connecting = client_.transport->connect(*url, Deadline::never());
    if (!connecting.ok()) return false;
    while (!timed_out()) {
      if (auto outcome = (*connecting)->advance()) {
        why_ = outcome->ok() ? "" : ": " + outcome->error().to_string();
        if (outcome->ok()) client_.connected(***outcome);
        return outcome->ok();
      }
      turn();
    }
    return false;
  }

  void act() {
    auto &party = dice_.chance(0.5) ? server_ : client_;
    party.do_something();
    if (actions_ == plan_.actions / 2) simulated_now += stop_;
    if (actions_++ == plan_.end_after && plan_.end == Plan::End::kDeath) party.die();
    if (actions_ > plan_.end_after && plan_.end == Plan::End::kClose && !server_.gone() && !client_.gone())
      party.close();
  }

  bool finished() const {
    if (server_.gone() || client_.gone()) return server_.gone() && client_.gone();
    return actions_ >= plan_.actions && server_.idle() && client_.idle() && server_.received == client_.sent &&
           client_.received == server_.sent;
  }

  std::string verdict() {
    const bool lost = server_.gone() || client_.gone();
    server_.check(!lost);
    client_.check(!lost);
    for (auto *party : {&server_, &client_}) {
      if (!party->wrong.empty()) return party->wrong;
      if (party->loss && party->loss->code != Code::kPeerLost) return "lost with " + party->loss->to_string();
      if (party->loss && !plan_.may_lose()) return "lost: " + party->loss->to_string();
    }
    if (!plan_.silence && server_.closed && !client_.closed && client_.received != server_.sent) return "close cut off";
    if (!plan_.silence && client_.closed && !server_.closed && server_.received != client_.sent) return "close cut off";
    return "";
  }

  std::string state() const {
    return fmt::format(
        "server sent {} received {} idle {} gone {}; client sent {} received {} idle {} gone {}; actions {}",
        server_.sent, server_.received, server_.idle(), server_.gone(), client_.sent, client_.received, client_.idle(),
        client_.gone(), actions_);
  }

  const nessie::Clock::duration stop_;
  Dice dice_;
  Plan plan_;
  Party server_, client_;
  nessie::Clock::time_point begun_;
  std::uint64_t turns_ = 0, quiet_ = 0;
  int actions_ = 0;
  std::string why_;
};

std::uint64_t from_environment(const char *name, std::uint64_t fallback) {
  const char *text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

/// What the schedules came to: that they all went well means little if nothing ever happened in them.
struct Tally {
  std::uint64_t schedules = 0, not_connected = 0, ended_early = 0, messages = 0, transfers = 0, additions = 0,
                connections = 0, turns = 0;
  void add(const Schedule &schedule) {
    ++schedules;
    turns += schedule.turns();
    not_connected += !schedule.connected();
    ended_early += schedule.ended_early();
    for (const auto *party : {&schedule.server(), &schedule.client()}) {
      messages += party->received;
      transfers += party->transfers();
      additions += party->additions();
      connections += party->connections();
    }
  }
};

void run(std::uint64_t number, Tally &tally) {
  Schedule schedule(number);
  const auto wrong = schedule.run();
  tally.add(schedule);
  ASSERT_EQ(wrong, "") << "schedule " << number << " of" << schedule.plan()
                       << "\nagain alone: NESSIE_SCHEDULE=" << number;
}

TEST(Schedules, OfFaultsLoseNothingDoubleNothingAndHangNever) {
  Tally tally;
  if (std::getenv("NESSIE_SCHEDULE") != nullptr) return run(from_environment("NESSIE_SCHEDULE", 0), tally);
  const auto count = from_environment("NESSIE_SCHEDULES", kSchedules);
  int failed = 0;
  for (std::uint64_t number = 0; number < count && failed < 5; ++number) {
    run(number, tally);
    failed += testing::Test::HasFatalFailure();
  }
  fmt::print(
      "{} schedules, {} turns: {} messages, {} transfers, {} atomic operations over {} connections; {} ended by "
      "death, silence or leaving, {} did not begin\n",
      tally.schedules, tally.turns, tally.messages, tally.transfers, tally.additions, tally.connections,
      tally.ended_early, tally.not_connected);
  if (count < 1000) return;
  EXPECT_GT(tally.connections, tally.schedules) << "no connection ever broke";
  EXPECT_GT(tally.ended_early, count / 100);
  EXPECT_LT(tally.ended_early + tally.not_connected, count / 2);
}

TEST(Schedules, InWhichTheWholeMachineStopsForAWhileLoseNoPeer) {
  for (std::uint64_t number = 0; number < kSchedules / 10; ++number) {
    Schedule schedule(number, 30s);   // ten times nnti.peer_timeout
    if (schedule.closes()) continue;  // who closes waits for five seconds, whoever was away
    ASSERT_EQ(schedule.run(), "") << "schedule " << number << " of" << schedule.plan();
  }
}

TEST(Schedules, AreTheSameEachTime) {
  for (std::uint64_t number = 0; number < 20; ++number) {
    Schedule first(number), second(number);
    (void)first.run();
    const auto turns = first.turns();
    (void)second.run();
    EXPECT_EQ(turns, second.turns()) << number;
  }
}

}  // namespace
}  // namespace nnti
