// SPDX-License-Identifier: BSD-3-Clause
// How a connection begins: both sides prove that they have the job's credential, as over a socket (bootstrap.hpp), but
// in frames. Nothing that a peer sends before its proof has been checked has any effect but an answer.
#include "nnti/transports/mpi/connection.hpp"

#include <base/log.hpp>

#include <algorithm>
#include <chrono>

namespace nnti::mpi {
namespace {

using namespace std::chrono_literals;

constexpr auto kHandshakeTime = 10s;
constexpr std::size_t kMaxRefusalBytes = 1024;

template <class T> std::span<const std::byte> raw(const T &value) { return std::as_bytes(std::span(&value, 1)); }

template <class T> std::optional<T> body_of(const Frame &frame) {
  T value;
  if (frame.body.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, frame.body.data(), sizeof value);
  return value;
}

FrameHeader header_of(FrameType type) {
  FrameHeader header{.type = type};
  return header;
}

Error bad_handshake() {
  return {Code::kBadMessage, "the peer's handshake is wrong; run the same Nessie on both sides", nessie::Scope::kPeer};
}

}  // namespace

void MpiConnection::knock() {
  nessie::random_bytes(nonce_);
  Hello hello;
  hello.port = address_.port;
  hello.reply_port = home_.port();
  hello.token = token_;
  hello.nonce = nonce_;
  if (!home_.post_bytes(*this, {address_.rank, kDoorTag}, raw(hello), {}))
    end_handshake(Error{Code::kPeerLost, "MPI cannot reach the peer's process", nessie::Scope::kPeer});
}

void MpiConnection::answer(const Hello &hello) {
  state_ = State::kAnswering;
  patience_ = Deadline::in(kHandshakeTime);
  their_token_ = hello.token;
  their_nonce_ = hello.nonce;
  nessie::random_bytes(nonce_);
  auto header = header_of(kChallenge);
  header.operation = token_;
  post(header, raw(Challenge{nonce_, home_.credential().prove("accept", nonce_, their_nonce_)}));
  home_.attend(*this);
}

void MpiConnection::handle_handshake(const Frame &frame) {
  const auto type = frame.header.type;
  if (state_ == State::kKnocking && type == kChallenge) return on_challenge(frame);
  if (state_ == State::kAnswering && type == kProof) return on_proof(frame);
  if (state_ == State::kProving && type == kWelcome) return end_handshake({});
  if (state_ < State::kAnswering && type == kRefusal) return on_refusal(frame);
  if (state_ == State::kOpen) return break_with(bad_handshake());
  end_handshake(bad_handshake());
}

void MpiConnection::on_challenge(const Frame &frame) {
  const auto challenge = body_of<Challenge>(frame);
  if (!challenge || frame.header.operation == 0) return end_handshake(bad_handshake());
  their_token_ = frame.header.operation;
  if (!home_.credential().check(challenge->proof, "accept", challenge->nonce, nonce_))
    return end_handshake(Error{Code::kRefused, nessie::kPeerHasAnotherCredential});
  state_ = State::kProving;
  post(header_of(kProof), raw(home_.credential().prove("connect", nonce_, challenge->nonce)));
}

void MpiConnection::on_proof(const Frame &frame) {
  const auto proof = body_of<nessie::Proof>(frame);
  if (!proof) return end_handshake(bad_handshake());
  if (!home_.credential().check(*proof, "connect", their_nonce_, nonce_)) {
    nessie::log::warning("mpi: refused a peer with another credential");
    refuse(Code::kRefused, nessie::kCredentialsDiffer);
    return end_handshake(Error{Code::kRefused, "the credentials differ"});
  }
  post(header_of(kWelcome), {});
  state_ = State::kOpen;
  patience_.reset();
  home_.events().accepted(*this);
}

void MpiConnection::refuse(Code code, std::string_view why) {
  auto header = header_of(kRefusal);
  header.result = static_cast<std::uint32_t>(code);
  post(header, std::as_bytes(std::span(why)));
}

/// What it says is untrusted, and made printable.
void MpiConnection::on_refusal(const Frame &frame) {
  const auto body = frame.body.first(std::min(frame.body.size(), kMaxRefusalBytes));
  std::string why(reinterpret_cast<const char *>(body.data()), body.size());
  for (char &c : why)
    if (c < ' ' || c > '~') c = '?';
  const auto code = static_cast<Code>(frame.header.result);
  const bool known = code == Code::kUnsupported || code == Code::kBusy || code == Code::kPeerLost;
  end_handshake(Error{known ? code : Code::kRefused, std::move(why), nessie::Scope::kPeer});
}

/// The accepting side says nothing to who fails, and forgets it; the connecting side's Connecting asks for the outcome.
void MpiConnection::end_handshake(Status status) {
  const bool connects = state_ != State::kAnswering;
  state_ = status.ok() ? State::kOpen : State::kClosed;
  if (connects) handshake_ = std::move(status);
  if (state_ == State::kClosed) home_.attend(*this);
}

void MpiConnection::give_up() {
  if (state_ == State::kProving || state_ == State::kOpen) post(header_of(FrameType::kBye), {});
  state_ = State::kClosed;
  home_.attend(*this);
}

}  // namespace nnti::mpi
