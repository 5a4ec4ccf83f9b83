// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/send.hpp"

#include <fmt/core.h>

namespace nessie::streams::sinks {

namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::chrono::milliseconds kLook{200};      ///< whether to stop
constexpr std::chrono::milliseconds kAttempt{5000};  ///< to connect

/// What another connection may mend.
bool may_pass(Code code) { return code == Code::kPeerLost || code == Code::kBadMessage; }

Error told_to_stop() { return {Code::kCancelled, "it was told to stop"}; }

}  // namespace

Status Sender::take(Step &step) {
  const auto image = images_.make(step);
  if (!image.ok()) return image.error();
  auto sent = deliver({false, step.number(), image->bytes.size(), image->checksum}, image->bytes);
  if (sent.ok()) wanted_ = step.number() + 1;
  return sent;
}

Status Sender::finish() {
  const auto before = connections_;
  auto told = deliver({true, wanted_, 0, 0}, {});
  socket_.reset();
  const bool was_there = before > 0 || connections_ > before;
  return was_there && (told.code() == Code::kPeerLost || told.code() == Code::kTimedOut) ? Status() : told;
}

Status Sender::deliver(const Head &head, std::span<const std::byte> image) {
  Retry retry(head.is_end ? std::min(options_.patience, kAttempt) : options_.patience);
  for (;;) {
    auto sent = socket_ ? Status() : connect();
    if (sent.ok()) sent = send_once(head, image);
    if (sent.ok()) return sent;
    socket_.reset();
    if (options_.stop()) return told_to_stop();
    if (!may_pass(sent.code())) return sent;
    if (!retry.wait(options_.stop)) return options_.stop() ? Status(told_to_stop()) : sent;
  }
}

Status Sender::connect() {
  auto socket = connect_to(options_.to, Deadline::in(std::min(options_.patience, kAttempt)));
  if (!socket.ok()) return Error{Code::kPeerLost, socket.error().message, Scope::kPeer, socket.error().cause};
  socket_ = *std::move(socket);
  ++connections_;
  return send_all(socket_, encode(Opening{options_.origin.stream, options_.origin.identity}), Deadline::in(kAttempt));
}

Status Sender::send_once(const Head &head, std::span<const std::byte> image) {
  if (auto sent = send_all(socket_, encode(head), Deadline::in(options_.patience)); !sent.ok()) return sent;
  while (!image.empty()) {
    const auto piece = image.first(std::min(image.size(), kPiece));
    rate_.spend(piece.size(), options_.stop);
    if (options_.stop()) return told_to_stop();
    if (auto sent = send_all(socket_, piece, Deadline::in(options_.patience)); !sent.ok()) return sent;
    image = image.subspan(piece.size());
  }
  const auto answer = receive_answer();
  if (!answer.ok()) return answer.error();
  if (!answer->is_safe)
    return Error{Code::kRefused, fmt::format("the receiver cannot take step {}: {}", head.number, answer->text),
                 Scope::kPeer};
  if (answer->number == head.number) return {};
  return Error{Code::kBadMessage, fmt::format("the receiver answers to {}, not to {}", answer->number, head.number),
               Scope::kPeer};
}

Result<Answer> Sender::receive_answer() {
  const auto deadline = Deadline::in(options_.patience);
  for (auto there = await_readable(socket_, Deadline::in(kLook)); !there.ok();
       there = await_readable(socket_, Deadline::in(kLook))) {
    if (options_.stop()) return told_to_stop();
    if (there.code() != Code::kTimedOut || deadline.passed()) return there.error();
  }
  Bytes bytes(kAnswerBegin);
  if (auto got = receive_all(socket_, bytes, deadline); !got.ok()) return got.error();
  const auto rest = rest_of_answer(bytes);
  if (!rest.ok()) return rest.error();
  bytes.resize(kAnswerBegin + *rest);
  if (auto got = receive_all(socket_, std::span(bytes).subspan(kAnswerBegin), deadline); !got.ok()) return got.error();
  return decode_answer(bytes);
}

}  // namespace nessie::streams::sinks
