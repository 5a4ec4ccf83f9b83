// SPDX-License-Identifier: BSD-3-Clause
// nnti-protocols: messages of 1 KiB to 16 MiB from one process to another, through nnti::Context, by each of the
// protocols that it has, whatever it would choose itself; beside MPI's.
#include "comparison.hpp"
#include "machine.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

#include <nnti/context.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace bench {
namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Status;
using nnti::Purpose;

constexpr std::uint64_t kMostPushed = 8192 - 48;  ///< of a context's message; the rest of 8192 bytes is its own
constexpr std::uint64_t kLargest = 16 << 20;
constexpr std::uint64_t kPieces = 64;  ///< that are under way at once, without rendezvous
constexpr auto kSilence = std::chrono::seconds(30);
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kLimit = std::chrono::seconds(300);

struct Protocol {
  const char *mode;
  std::uint64_t most;  ///< bytes of a message that it is tried with
  std::vector<std::pair<const char *, const char *>> settings;
  bool keeps = true;       ///< the message stays registered between sends
  bool in_pieces = false;  ///< the application cuts the message, and puts it together again
};

std::vector<Protocol> protocols() {
  const std::pair<const char *, const char *> nothing_pushed{"nnti.eager_max", "0"},
      only_read{"nnti.rendezvous.write_from", "never"}, written{"nnti.rendezvous.write_from", "0"};
  return {
      {"eager", kMostPushed, {}},
      {"no-rendezvous", kLargest, {}, true, true},
      {"read", kLargest, {nothing_pushed, only_read}},
      {"read-not-kept", kLargest, {nothing_pushed, only_read, {"nnti.registration_cache.regions", "0"}}, false},
      {"written", kLargest, {nothing_pushed, written, {"nnti.rendezvous.read_percent", "0"}}},
      {"read-and-written", kLargest, {nothing_pushed, written, {"nnti.rendezvous.read_percent", "50"}}},
      {"default", kLargest, {}},
  };
}

nnti::Result<std::shared_ptr<nnti::Context>> open(const Options &options, const Protocol &protocol, bool listen) {
  nnti::ContextOptions wanted;
  static_cast<nnti::EndpointOptions &>(wanted) = options.endpoint(listen, "1000000");  // polls
  for (const auto &[key, value] : protocol.settings) wanted.config.set(key, value);
  return nnti::Context::open(std::move(wanted));
}

Error silent() { return {Code::kTimedOut, "the other side of the workload fell silent"}; }

// --- the side that receives -------------------------------------------------------------------------------------------

class Receiver {
 public:
  Receiver(nnti::Context &context, const Protocol &protocol) : context_(context), protocol_(protocol) {}
  Status open();
  /// Takes what comes until the sender has left.
  Status serve();

 private:
  Status take(const nnti::Event &event);
  Status take_piece(const nnti::Event &event);
  Status answer(const nnti::Event &event);

  nnti::Context &context_;
  const Protocol &protocol_;
  PageAligned<std::byte> memory_ = PageAligned<std::byte>(kLargest, std::byte{1}), whole_;
  std::uint64_t put_together_ = 0, word_ = 0;
  nnti::BufferHandle queue_, answer_;
};

Status Receiver::open() {
  const auto size = protocol_.in_pieces ? kMostPushed : kLargest;
  auto queue =
      context_.register_memory(memory_.data(), size, protocol_.in_pieces ? kPieces : 1, Purpose::kReceiveQueue);
  auto answer = context_.register_memory(&word_, sizeof word_, 1, Purpose::kSendSource);
  if (!queue.ok() || !answer.ok()) return queue.ok() ? answer.error() : queue.error();
  queue_ = *queue;
  answer_ = *answer;
  if (protocol_.in_pieces) whole_.assign(kLargest, std::byte{1});
  return {};
}

Status Receiver::serve() {
  std::shared_ptr<const nnti::PeerInfo> sender;
  for (const auto watchdog = Deadline::in(kLimit); !watchdog.passed();) {
    auto event = context_.wait(queue_.local(), Purpose::kNone, Deadline::in(kLook));
    if (!event.ok() && event.code() != Code::kTimedOut) return event.error();
    if (!event.ok() && sender && !context_.find_peer(sender->process)) return {};
    if (!event.ok()) continue;
    sender = event->peer;
    if (auto status = take(*event); !status.ok()) return status;
  }
  return silent();
}

Status Receiver::take(const nnti::Event &event) {
  if (protocol_.in_pieces)
    if (auto status = take_piece(event); !status.ok()) return status;
  return context_.release(queue_.local(), event.element);
}

/// The last piece of a message is shorter than the others.
Status Receiver::take_piece(const nnti::Event &event) {
  std::memcpy(whole_.data() + put_together_, memory_.data() + event.offset, event.length);
  put_together_ += event.length;
  if (event.length == kMostPushed) return {};
  put_together_ = 0;
  return answer(event);
}

Status Receiver::answer(const nnti::Event &event) {
  nnti::RequestId request;
  auto status = context_.send(event.peer->process, answer_.local(), nullptr, &request);
  if (!status.ok()) return status;
  auto sent = context_.wait(request, Deadline::in(kSilence));
  return sent.ok() ? Status() : sent.error();
}

// --- the side that sends, and measures --------------------------------------------------------------------------------

class Sender {
 public:
  Sender(nnti::Context &context, nnti::ProcessId receiver, const Protocol &protocol)
      : context_(context), receiver_(receiver), protocol_(protocol) {}
  Status open();
  /// Microseconds of a message of that size, until it is in the receiver's memory.
  nnti::Result<double> measure(std::uint64_t size);

 private:
  nnti::Result<nnti::BufferId> message_of(std::uint64_t offset, std::uint64_t size);
  Status cut(std::uint64_t size);
  Status send_whole(std::uint64_t size);
  Status send_pieces();
  Status finish(nnti::RequestId request);

  nnti::Context &context_;
  nnti::ProcessId receiver_;
  const Protocol &protocol_;
  PageAligned<std::byte> memory_ = PageAligned<std::byte>(kLargest, std::byte{2});
  std::uint64_t answers_memory_ = 0;
  nnti::BufferHandle answers_;
  std::vector<nnti::BufferId> pieces_;  ///< of the message: one, unless it is cut
};

Status Sender::open() {
  auto answers = context_.register_memory(&answers_memory_, sizeof answers_memory_, 1, Purpose::kReceiveQueue);
  if (!answers.ok()) return answers.error();
  answers_ = *answers;
  return {};
}

nnti::Result<nnti::BufferId> Sender::message_of(std::uint64_t offset, std::uint64_t size) {
  auto made = context_.register_memory(memory_.data() + offset, size, 1, Purpose::kSendSource);
  if (!made.ok()) return made.error();
  return made->local();
}

/// Registers the message, in pieces that can be pushed if it is to go so; the last one is not a whole one.
Status Sender::cut(std::uint64_t size) {
  const auto most = protocol_.in_pieces ? kMostPushed : size;
  for (std::uint64_t at = 0; at < size; at += most) {
    auto piece = message_of(at, std::min(most, size - at));
    if (!piece.ok()) return piece.error();
    pieces_.push_back(*piece);
  }
  return {};
}

Status Sender::finish(nnti::RequestId request) {
  auto sent = context_.wait(request, Deadline::in(kSilence));
  if (!sent.ok()) return sent.error();
  return sent->code == Code::kOk ? Status() : Error{sent->code, "a message of the workload did not arrive"};
}

Status Sender::send_whole(std::uint64_t size) {
  auto message = protocol_.keeps ? nnti::Result<nnti::BufferId>(pieces_[0]) : message_of(0, size);
  if (!message.ok()) return message.error();
  nnti::RequestId request;
  auto status = context_.send(receiver_, *message, nullptr, &request);
  if (status.ok()) status = finish(request);
  if (!protocol_.keeps) (void)context_.unregister(*message).ok();
  return status;
}

Status Sender::send_pieces() {
  std::vector<nnti::RequestId> requests(pieces_.size());
  std::size_t sent = 0, finished = 0;
  for (; finished < pieces_.size(); ++finished) {
    for (; sent < pieces_.size() && sent < finished + kPieces; ++sent)
      if (auto status = context_.send(receiver_, pieces_[sent], nullptr, &requests[sent]); !status.ok()) return status;
    if (auto status = finish(requests[finished]); !status.ok()) return status;
  }
  auto answer = context_.wait(answers_.local(), Purpose::kNone, Deadline::in(kSilence));
  if (!answer.ok()) return answer.error();
  return context_.release(answers_.local(), answer->element);
}

nnti::Result<double> Sender::measure(std::uint64_t size) {
  Status outcome = cut(size);
  const double us = typical_us(transfers_per_batch(size), [&](bool) {
    if (outcome.ok()) outcome = protocol_.in_pieces ? send_pieces() : send_whole(size);
  });
  for (const auto piece : pieces_) (void)context_.unregister(piece).ok();
  pieces_.clear();
  if (!outcome.ok()) return outcome.error();
  return us;
}

// --- the workload -----------------------------------------------------------------------------------------------------

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {4 << 10, 1 << 20};
  return options.quick ? sizes_between(4 << 10, kLargest, 16) : sizes_between(1 << 10, kLargest, 2);
}

class Protocols final : public Comparison {
 public:
  Protocols(const Options &options, Report &report)
      : Comparison(options, report, {"bandwidth_MBps", "MB/s"}), sizes_(sizes_for(options)) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Status receive(const Protocol &protocol, Board &board);
  Status send(const Protocol &protocol, Board &board);

  std::vector<Rival> rivals_ = rivals_here(network_);
  std::vector<std::uint64_t> sizes_;
};

constexpr int kSender = 0, kReceiver = 1, kMembers = 2;

Status Protocols::receive(const Protocol &protocol, Board &board) {
  auto context = open(options_, protocol, true);
  if (!context.ok()) return context.error();
  Receiver receiver(**context, protocol);
  if (auto status = receiver.open(); !status.ok()) return status;
  board.publish_address(kReceiver, (*context)->url());
  auto status = receiver.serve();
  (*context)->close();
  return status;
}

Status Protocols::send(const Protocol &protocol, Board &board) {
  auto context = open(options_, protocol, false);
  if (!context.ok()) return context.error();
  auto peer = std::shared_ptr<const nnti::PeerInfo>();
  if (auto connected = (*context)->connect(board.address_of(kReceiver), Deadline::in(kSilence)); connected.ok())
    peer = *connected;
  else
    return connected.error();
  Sender sender(**context, peer->process, protocol);
  auto status = sender.open();
  if (status.ok() && std::string_view(protocol.mode) == "default")
    if (auto known = (*context)->rendezvous_with(peer->process, Deadline::in(kSilence)); !known.ok())
      status = known.error();
  for (std::size_t i = 0; i < sizes_.size() && sizes_[i] <= protocol.most && status.ok(); ++i) {
    auto us = sender.measure(sizes_[i]);
    if (us.ok())
      board.lane(kSender).leave(protocol.mode, sizes_[i], megabytes_per_s(*us, sizes_[i]));
    else
      status = us.error();
  }
  (*context)->close();
  return status;
}

Status Protocols::measure() {
  for (const auto &protocol : protocols()) {
    const auto duty = [&](Board &board, int member) {
      Pin pin(member);
      return member == kSender ? send(protocol, board) : receive(protocol, board);
    };
    auto status = add(run_crew(kMembers, housing_for(options_.transport), kLimit, duty));
    if (!status.ok()) return status;
  }
  return ask(rivals_, {}, {{"transfer", sizes_, "send", megabytes_per_s}});
}

void Protocols::add_ratios() {
  for (auto size : sizes_)
    for (const auto &protocol : protocols()) {
      const auto mine = ours(protocol.mode, size);
      for (const auto &rival : rivals_) compare(mine, theirs(rival, "send", size));
      if (protocol.mode != std::string_view("read")) compare(mine, ours("read", size));
    }
}

}  // namespace

Status nnti_protocols(const Options &options, Report &report) {
  report.note("Eager messages end at 8144 bytes; shm registers nothing with a network, so that there nothing is kept.");
  return Protocols(options, report).run(options.repetitions(5, 1), "protocols of messages");
}

}  // namespace bench
