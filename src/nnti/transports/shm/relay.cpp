// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/relay.hpp"

#include "nnti/transport/registration_check.hpp"
#include "nnti/transports/shm/table.hpp"

#include <utility>

namespace nnti::shm {
namespace {

struct Request {
  std::uint64_t key = 0, offset = 0;
  std::uint32_t slot = 0, size_bytes = 0;
};

struct Done {
  std::uint32_t code = 0;
};

template <class T> std::span<const std::byte> bytes_of(const T &value) { return std::as_bytes(std::span(&value, 1)); }

template <class T> std::optional<T> decode(std::span<const std::byte> message) {
  if (message.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, message.data(), sizeof value);
  return value;
}

Error refused_by_owner(Code code) {
  if (code == Code::kOutOfRange) return {code, "the bytes lie outside the registered buffer"};
  return unknown_key();
}

}  // namespace

bool Relay::pump(bool &broken) {
  bool sent = reply_ && send_reply(broken);
  if (!broken && !asked_ && !operations_.empty()) sent |= send_request(broken);
  return sent;
}

bool Relay::send_reply(bool &broken) {
  auto outcome = link_.write(Kind::kRelayDone, bytes_of(Done{static_cast<std::uint32_t>(*reply_)}));
  broken = outcome == Outcome::kBroken;
  if (outcome != Outcome::kSent) return false;
  reply_.reset();
  return true;
}

bool Relay::send_request(bool &broken) {
  auto *bounce = link_.mine();
  if (bounce == nullptr) {
    abandon({Code::kNoMemory, "no memory to relay the data through"});
    return false;
  }
  const auto &operation = operations_.front();
  piece_bytes_ = std::min(operation.size_bytes, kBounceBytes);
  if (operation.is_put()) std::memcpy(bounce, operation.source, piece_bytes_);
  Request request{operation.remote.key, operation.offset, operation.remote.slot,
                  static_cast<std::uint32_t>(piece_bytes_)};
  auto outcome = link_.write(operation.is_put() ? Kind::kRelayPut : Kind::kRelayGet, bytes_of(request));
  broken = outcome == Outcome::kBroken;
  asked_ = outcome == Outcome::kSent;
  return asked_;
}

bool Relay::on_message(Kind kind, std::span<const std::byte> message) {
  return kind == Kind::kRelayDone ? on_done(message) : on_request(kind, message);
}

bool Relay::on_request(Kind kind, std::span<const std::byte> message) {
  auto request = decode<Request>(message);
  if (!request || reply_ || request->size_bytes > kBounceBytes) return false;
  auto *bounce = link_.theirs();
  if (bounce == nullptr) return false;
  auto registered = look_up(own_table_, request->slot, request->key);
  bool is_put = kind == Kind::kRelayPut;
  auto needed = is_put ? Rights::kRemoteWrite : Rights::kRemoteRead;
  auto allowed = registered ? check_access(registered->size_bytes, registered->rights, request->offset,
                                           request->size_bytes, needed)
                            : Status(unknown_key());
  if (allowed.ok()) {
    auto *memory = reinterpret_cast<std::byte *>(registered->address) + request->offset;
    if (is_put)
      std::memcpy(memory, bounce, request->size_bytes);
    else
      std::memcpy(bounce, memory, request->size_bytes);
  }
  reply_ = allowed.code();
  return true;
}

bool Relay::on_done(std::span<const std::byte> message) {
  auto done = decode<Done>(message);
  if (!done || !asked_) return false;
  asked_ = false;
  auto &operation = operations_.front();
  auto code = static_cast<Code>(done->code);
  if (code == Code::kOk) {
    if (operation.is_put())
      operation.source += piece_bytes_;
    else
      operation.destination = std::copy_n(link_.mine(), piece_bytes_, operation.destination);
    operation.offset += piece_bytes_;
    operation.size_bytes -= piece_bytes_;
    if (operation.size_bytes != 0) return true;
  }
  auto *completion = operation.completion;
  operations_.pop_front();
  completion->on_complete(code == Code::kOk ? Status() : refused_by_owner(code));
  return true;
}

void Relay::abandon(const Error &error) {
  asked_ = false;
  for (auto &operation : std::exchange(operations_, {})) operation.completion->on_complete(error);
}

}  // namespace nnti::shm
