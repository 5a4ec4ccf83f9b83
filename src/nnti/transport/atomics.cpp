// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transport/atomics.hpp"

#include "nnti/transport/registration_check.hpp"

#include <atomic>
#include <cstring>

namespace nnti {
namespace {

struct Request {
  std::uint64_t id = 0, key = 0, offset = 0, operand = 0, compare = 0;
  std::uint32_t slot = 0, kind = 0;
};

struct Answer {
  std::uint64_t id = 0, previous = 0;
  std::uint32_t code = 0, zero = 0;
};

static_assert(sizeof(Request) <= kMinMessageBytes && sizeof(Answer) <= kMinMessageBytes);

std::uint64_t carry_out(std::atomic_ref<std::uint64_t> word, const AtomicOperation &operation) {
  if (operation.kind == AtomicOperation::Kind::kFetchAdd) return word.fetch_add(operation.operand);
  auto previous = operation.compare;
  word.compare_exchange_strong(previous, operation.operand);
  return previous;
}

Error refused_by_owner(Code code) {
  switch (code) {
    case Code::kOutOfRange: return {code, "the word lies outside the registered buffer"};
    case Code::kInvalidArgument: return {code, "the word is not aligned to 8 bytes in its owner's memory"};
    case Code::kRefused:
      return {code, "the peer refuses: no buffer has this key (any more), or it does not allow atomic operations"};
    default: return {Code::kBadMessage, "the peer gave an answer that makes no sense", nessie::Scope::kPeer};
  }
}

}  // namespace

Result<std::uint64_t> execute_atomic(const MemoryRegion &region, std::uint64_t offset,
                                     const AtomicOperation &operation) {
  auto allowed = check_access(region.bytes.size(), region.rights, offset, sizeof(std::uint64_t), Rights::kRemoteAtomic);
  if (!allowed.ok()) return allowed.error();
  auto *word = reinterpret_cast<std::uint64_t *>(region.bytes.data() + offset);
  if (reinterpret_cast<std::uintptr_t>(word) % std::atomic_ref<std::uint64_t>::required_alignment != 0)
    return Error{Code::kInvalidArgument, "the word is not aligned to 8 bytes in its owner's memory"};
  return carry_out(std::atomic_ref<std::uint64_t>(*word), operation);
}

std::vector<std::byte> PendingAtomics::ask(PeerId peer, const RemoteBuffer &remote, std::uint64_t offset,
                                           const AtomicOperation &operation, std::uint64_t &previous,
                                           Completion &completion) {
  const auto id = asked_.add({peer, &previous, &completion});
  return bytes_of(Request{id, remote.key, offset, operation.operand, operation.compare, remote.slot,
                          static_cast<std::uint32_t>(operation.kind)});
}

bool PendingAtomics::on_answer(PeerId peer, std::span<const std::byte> message) {
  auto answer = from_bytes<Answer>(message);
  const auto pending = answer ? asked_.take(peer, answer->id) : std::nullopt;
  if (!pending) return false;
  auto code = static_cast<Code>(answer->code);
  if (code == Code::kOk) *pending->previous = answer->previous;
  pending->completion->on_complete(code == Code::kOk ? Status() : refused_by_owner(code));
  return true;
}

std::vector<std::byte> answer_atomic(const Transport &transport, std::span<const std::byte> message) {
  auto request = from_bytes<Request>(message);
  if (!request || request->kind > static_cast<std::uint32_t>(AtomicOperation::Kind::kCompareSwap)) return {};
  RemoteBuffer named;
  named.key = request->key;
  named.slot = request->slot;
  auto region = transport.find_memory(named);
  if (!region) return bytes_of(Answer{request->id, 0, static_cast<std::uint32_t>(Code::kRefused), 0});
  auto previous =
      execute_atomic(*region, request->offset,
                     {static_cast<AtomicOperation::Kind>(request->kind), request->operand, request->compare});
  return bytes_of(Answer{request->id, previous.ok() ? *previous : 0, static_cast<std::uint32_t>(previous.code()), 0});
}

}  // namespace nnti
