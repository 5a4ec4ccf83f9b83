// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/sealing/connection.hpp"

#include <array>

namespace nnti::sealing {
namespace {

/// Roles of keys: who sends, and what.
constexpr std::string_view kRecords[] = {"seal records of accept", "seal records of connect"};
constexpr std::string_view kPuts[] = {"seal puts of accept", "seal puts of connect"};
constexpr std::string_view kGets[] = {"seal gets of accept", "seal gets of connect"};

Error lost_error(std::string_view why) { return {Code::kPeerLost, std::string(why), nessie::Scope::kPeer}; }

}  // namespace

SealedConnection::Keys::Keys(const nessie::Credential &credential, bool we_connected, const KeySource &source)
    : records_out(credential, kRecords[we_connected], source),
      records_in(credential, kRecords[!we_connected], source),
      puts_out(credential, kPuts[we_connected], source),
      puts_in(credential, kPuts[!we_connected], source),
      gets_out(credential, kGets[we_connected], source),
      gets_in(credential, kGets[!we_connected], source) {}

SealedConnection::SealedConnection(Host &transport, Connection &inner, bool we_connected)
    : transport_(transport),
      inner_(inner),
      we_connected_(we_connected),
      in_order_(inner.transport().reliability() != Reliability::kLossy) {
  nessie::random_bytes(ours_.salt);
  ours_.key = agreement_->public_key();
  pump();
}

std::string SealedConnection::explain() const { return inner_.explain() + "; sealed with AES-256-GCM"; }

// --- sending ----------------------------------------------------------------------------------------------------------

bool SealedConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (state_ == State::kEnded) return true;
  return waiting_.empty() && send_record(kind, message);
}

/// A number that was not sent is used again: nobody has seen what it sealed.
bool SealedConnection::send_record(MessageKind kind, std::span<const std::byte> message) {
  if (!keys_) return false;
  const auto kind_byte = static_cast<std::byte>(kind);
  record_.resize(kRecordOverhead + message.size());
  std::memcpy(record_.data(), &next_out_, sizeof next_out_);
  record_[sizeof next_out_] = kind_byte;
  const auto head = std::span(record_).first(sizeof next_out_ + 1);
  const auto body = std::span(record_).subspan(head.size(), message.size());
  const auto tag = keys_->records_out.seal(next_out_, head, message, body);
  std::memcpy(record_.data() + head.size() + body.size(), tag.data(), tag.size());
  if (!inner_.try_send(kRecord, record_)) return false;
  ++next_out_;
  return true;
}

void SealedConnection::tell(MessageKind kind, std::span<const std::byte> message) {
  if (state_ == State::kEnded || (waiting_.empty() && send_record(kind, message))) return;
  waiting_.push_back({kind, {message.begin(), message.end()}});
}

std::size_t SealedConnection::pump() {
  if (state_ == State::kEnded) return 0;
  std::size_t sent = 0;
  if (!opening_sent_) sent += (opening_sent_ = inner_.try_send(kOpening, bytes_of(ours_))) ? 1 : 0;
  for (; !waiting_.empty() && send_record(waiting_.front().kind, waiting_.front().bytes); ++sent) waiting_.pop_front();
  return sent;
}

// --- receiving --------------------------------------------------------------------------------------------------------

void SealedConnection::on_message(MessageKind kind, std::span<const std::byte> message) {
  if (state_ == State::kEnded) return;
  if (kind == kOpening) return on_opening(message);
  if (kind == kRecord && keys_) return on_record(message);
  if (in_order_)
    give_up(Loss::kGone, {Code::kBadMessage, "the peer sends what is not sealed; set nnti.encrypt alike on both sides",
                          nessie::Scope::kPeer});
}

void SealedConnection::on_opening(std::span<const std::byte> message) {
  if (keys_) return;
  const auto theirs = decode<Opening>(message);
  if (!theirs || theirs->version != kVersion)
    return give_up(Loss::kGone, {Code::kUnsupported, "the peer does not seal; set nnti.encrypt alike on both sides",
                                 nessie::Scope::kPeer});
  const auto agreed = agreement_->agree(theirs->key);
  if (!agreed)
    return give_up(Loss::kGone, {Code::kBadMessage, "the peer's key is one that anybody knows", nessie::Scope::kPeer});
  keys_.emplace(
      transport_.credential(), we_connected_,
      KeySource{we_connected_ ? ours_.salt : theirs->salt, we_connected_ ? theirs->salt : ours_.salt, *agreed});
  agreement_.reset();
  state_ = State::kOpen;
  if (!we_connected_) transport_.events().accepted(*this);
}

void SealedConnection::on_record(std::span<const std::byte> record) {
  if (record.size() < kRecordOverhead) return give_up(Loss::kGone, lost_error("the peer sent too short a record"));
  std::uint64_t number = 0;
  std::memcpy(&number, record.data(), sizeof number);
  const auto kind = static_cast<std::uint8_t>(record[sizeof number]);
  const auto head = record.first(sizeof number + 1);
  const auto body = record.subspan(head.size(), record.size() - kRecordOverhead);
  Tag tag;
  std::memcpy(tag.data(), record.data() + head.size() + body.size(), tag.size());
  std::vector<std::byte> plain = transport_.take_scratch();  // a callback may bring the next record
  plain.resize(body.size());
  const bool genuine = keys_->records_in.open(number, head, body, tag, plain) && kind <= kMaxMessageKind;
  if (!genuine || (in_order_ && number != next_in_)) {
    if (!in_order_) return;
    return give_up(Loss::kBroken, {Code::kPeerLost, "a message was changed on its way", nessie::Scope::kPeer});
  }
  ++next_in_;
  const auto message_kind = static_cast<MessageKind>(kind);
  if (message_kind != kBulkRequest && message_kind != kBulkDone)
    transport_.events().message(*this, message_kind, plain);
  else if (!on_own(message_kind, plain) && in_order_)
    give_up(Loss::kGone, {Code::kBadMessage, "the peer's request makes no sense", nessie::Scope::kPeer});
  transport_.give_scratch(std::move(plain));
}

bool SealedConnection::on_own(MessageKind kind, std::span<const std::byte> message) {
  if (kind == kBulkRequest) {
    const auto request = decode<BulkRequest>(message);
    return request && owner_.on_request(*request);
  }
  const auto done = decode<BulkDone>(message);
  return done && initiator_.on_done(*done);
}

std::optional<MemoryRegion> SealedConnection::find_memory(std::uint64_t key, std::uint32_t slot) {
  RemoteBuffer named;
  named.key = key;
  named.slot = slot;
  return transport_.find_memory(named);
}

// --- bulk data --------------------------------------------------------------------------------------------------------

void SealedConnection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                           Completion &completion) {
  if (state_ != State::kOpen) return completion.on_complete(lost_error("the peer is gone"));
  static std::byte nothing{};
  initiator_.start({remote, offset, local.size(), local.empty() ? &nothing : local.data(), nullptr, &completion});
}

void SealedConnection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                           Completion &completion) {
  if (state_ != State::kOpen) return completion.on_complete(lost_error("the peer is gone"));
  static constexpr std::byte kNothing{};
  initiator_.start({remote, offset, local.size(), nullptr, local.empty() ? &kNothing : local.data(), &completion});
}

// --- the end ----------------------------------------------------------------------------------------------------------

void SealedConnection::end(bool at_once) {
  if (state_ == State::kEnded) return;
  if (!at_once) pump();
  state_ = State::kEnded;
  if (at_once)
    inner_.abort();
  else
    inner_.close();
  transport_.reap_later();
  initiator_.abandon({Code::kCancelled, "disconnected"});
}

void SealedConnection::give_up(Loss loss, const Error &error) {
  if (state_ == State::kEnded) return;
  const auto before = std::exchange(state_, State::kEnded);
  inner_.close();
  transport_.reap_later();
  initiator_.abandon(lost_error(error.message));
  report(before, loss, error);
}

void SealedConnection::on_lost(Loss loss, const Error &error) {
  if (state_ == State::kEnded) return;
  const auto before = std::exchange(state_, State::kEnded);
  transport_.reap_later();
  initiator_.abandon({Code::kPeerLost, error.message, nessie::Scope::kPeer, error.cause});
  report(before, loss, error);
}

void SealedConnection::report(State before, Loss loss, const Error &error) {
  if (before == State::kOpen)
    transport_.events().lost(*this, loss, error);
  else if (we_connected_)
    transport_.refused(inner_.peer.value, loss, error);
}

}  // namespace nnti::sealing
