// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations of a context: put, get, scatter, gather, atomics; and the descriptions of peers' buffers that
// they need.
#include "nnti/work/context_impl.hpp"

#include <algorithm>

namespace nnti {

namespace {

using Operation = Context::Impl::Operation;
constexpr std::size_t kMaxEvents = 65536;  // of one buffer, made by peers' puts and gets
constexpr std::size_t kMaxDescriptions = 4096;
constexpr std::uint64_t kWord = sizeof(std::uint64_t);

struct Need {
  Purpose local, remote;
  const char *local_missing, *remote_missing;
};

Need need_of(Operation::Kind kind) {
  if (kind == Operation::Kind::kPut)
    return {Purpose::kLocalRead, Purpose::kRemoteWrite, "our buffer is not registered as a source (PUT_SRC)",
            "the peer's buffer is not registered as a destination of puts (PUT_DST)"};
  if (kind == Operation::Kind::kGet)
    return {Purpose::kLocalWrite, Purpose::kRemoteRead, "our buffer is not registered as a destination (GET_DST)",
            "the peer's buffer is not registered as a source of gets (GET_SRC)"};
  return {Purpose::kLocalWrite, Purpose::kAtomics, "our buffer is not registered for results (GET_DST)",
          "the peer's buffer is not registered for atomic operations (ATOMICS)"};
}

std::uint64_t total_bytes(std::span<const RemoteBuffer> segments) {
  std::uint64_t total = 0;
  for (const auto &segment : segments)
    if (__builtin_add_overflow(total, segment.size_bytes, &total)) return UINT64_MAX;
  return total;
}

bool aligned_word(const Context::Impl::Registration &local, std::uint64_t offset) {
  bool aligned = true;
  for_each_piece(local.segments, offset, kWord, [&](Bytes piece) {
    aligned = aligned && piece.size() == kWord && reinterpret_cast<std::uintptr_t>(piece.data()) % kWord == 0;
  });
  return aligned;
}

}  // namespace

/// The connection over which the access goes, if nothing speaks against it.
Result<PeerId> Context::Impl::check_access(const Registration &local, const Access &access) const {
  const Need need = need_of(access.kind);
  if (!any(local.handle.purposes & need.local)) return Error{Code::kRefused, need.local_missing};
  if (!any(access.remote.purposes & need.remote)) return Error{Code::kRefused, need.remote_missing};
  if (!inside(access.local_offset, access.length, local.handle.size_bytes()))
    return Error{Code::kOutOfRange, "offset and length are outside of our buffer"};
  if (!inside(access.remote_offset, access.length, access.remote.size_bytes()))
    return Error{Code::kOutOfRange, "offset and length are outside of the peer's buffer"};
  if (access.kind == Operation::Kind::kAtomic && !aligned_word(local, access.local_offset))
    return Error{Code::kInvalidArgument, "the result's word is not aligned to 8 bytes"};
  if (access.kind == Operation::Kind::kAtomic && access.remote_offset % kWord != 0)
    return Error{Code::kInvalidArgument, "the target's word is not aligned to 8 bytes"};
  const auto peer = connection_to(access.remote.owner);
  if (!peer) return Error{Code::kPeerLost, "the owner of the peer's buffer is not connected", nessie::Scope::kPeer};
  return *peer;
}

Operation &Context::Impl::make_access(Registration &local, PeerId peer, const Access &access) {
  Operation &operation = new_operation(access.kind, peer, local);
  operation.local_offset = access.local_offset;
  operation.length = access.length;
  operation.remote = access.remote.id;
  operation.remote_offset = access.remote_offset;
  operation.atomic = access.atomic;
  return operation;
}

Status Context::Impl::start_access(BufferId id, const Access &access, RequestId *request) {
  auto local = own_buffer(id);
  if (!local.ok()) return local.error();
  auto peer = check_access(**local, access);
  if (!peer.ok()) return peer.error();
  Operation &operation = make_access(**local, *peer, access);
  return launch(operation, begin(operation, &access.remote), request);
}

/// Starts the operation, at once if it is known how to reach the peer's buffer.
Status Context::Impl::begin(Operation &operation, const BufferHandle *handle) {
  if (handle && handle->described_for == me) {
    if (has(handle->purposes, Purpose::kWithEvents))
      operation.description = std::make_shared<Description>(Description{handle->purposes, {}});
    post(operation, {&handle->description, 1});
    return {};
  }
  auto cached = descriptions.find({operation.peer.value, operation.remote});
  if (cached == descriptions.end()) return ask_description(operation);
  operation.from_cache = true;
  operation.description = cached->second;
  post(operation, operation.description->segments);
  return {};
}

Status Context::Impl::start_group(BufferId id, Operation::Kind kind, std::uint64_t length,
                                  std::span<const BufferHandle> remotes, RequestId *request) {
  if (remotes.empty()) return Error{Code::kInvalidArgument, "the list of peers' buffers is empty"};
  auto local = own_buffer(id);
  if (!local.ok()) return local.error();
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(length, remotes.size(), &total) || total > (*local)->handle.size_bytes())
    return Error{Code::kOutOfRange, "length times the number of peers' buffers is more than our buffer holds"};
  std::vector<PeerId> connections;
  for (std::size_t i = 0; i < remotes.size(); ++i) {
    auto peer = check_access(**local, {kind, i * length, length, remotes[i], 0});
    if (!peer.ok()) return peer.error();
    connections.push_back(*peer);
  }
  Operation &group = new_operation(Operation::Kind::kGroup, connections[0], **local);
  group.length = total;
  group.parts = remotes.size();
  for (std::size_t i = 0; i < remotes.size(); ++i) {
    Operation &member = make_access(**local, connections[i], {kind, i * length, length, remotes[i], 0});
    member.group = group.id;
    if (auto status = begin(member, &remotes[i]); !status.ok()) complete(member, status.code());
  }
  return launch(group, {}, request);
}

// --- transfers --------------------------------------------------------------------------------------------------------

/// Hands the operation to the endpoint. One part more than there are transfers: none may end it before all are posted.
void Context::Impl::post(Operation &operation, std::span<const RemoteBuffer> segments) {
  operation.parts = 1;
  Registration &local = *find_buffer(operation.local);
  if (!inside(operation.remote_offset, operation.length, total_bytes(segments)))
    operation.code = Code::kOutOfRange;
  else if (operation.kind == Operation::Kind::kAtomic)
    post_atomic(operation, segments);
  else
    post_pieces(operation, operation.kind == Operation::Kind::kPut,
                {local.segments, operation.local_offset, operation.length, operation.remote_offset}, segments);
  operation.part_ended(Code::kOk);
}

/// One part for each piece that lies in one segment on both sides.
void Context::Impl::post_pieces(Operation &operation, bool outward, const Range &local,
                                std::span<const RemoteBuffer> segments) {
  std::uint64_t offset = local.remote_offset;
  auto transfer = [&](Bytes piece) {
    ++operation.parts;
    if (outward)
      endpoint->put(operation.peer, segments.front(), offset, piece, operation);
    else
      endpoint->get(operation.peer, segments.front(), offset, piece, operation);
    offset += piece.size();
  };
  for_each_piece(local.segments, local.offset, local.length, [&](Bytes piece) {
    while (!piece.empty()) {
      for (; offset >= segments.front().size_bytes; segments = segments.subspan(1))
        offset -= segments.front().size_bytes;
      const auto size = std::min<std::uint64_t>(piece.size(), segments.front().size_bytes - offset);
      transfer(piece.first(size));
      piece = piece.subspan(size);
    }
  });
}

void Context::Impl::post_atomic(Operation &operation, std::span<const RemoteBuffer> segments) {
  std::uint64_t offset = operation.remote_offset;
  for (; offset >= segments.front().size_bytes; segments = segments.subspan(1)) offset -= segments.front().size_bytes;
  ++operation.parts;
  const auto &remote = segments.front();
  const auto &what = operation.atomic;
  if (what.kind == AtomicOperation::Kind::kFetchAdd)
    endpoint->fetch_add(operation.peer, remote, offset, what.operand, operation.previous, operation);
  else
    endpoint->compare_swap(operation.peer, remote, offset, what.compare, what.operand, operation.previous, operation);
}

// --- descriptions -----------------------------------------------------------------------------------------------------

/// Unless the answer is under way.
Status Context::Impl::ask(const DescriptionKey &key) {
  if (!asked.try_emplace(key).second) return {};
  wire::Control control{.buffer = key.buffer};
  auto status = say({key.peer}, wire::Kind::kDescribe, control);
  if (!status.ok()) asked.erase(key);
  return status;
}

Status Context::Impl::ask_description(Operation &operation) {
  const DescriptionKey key{operation.peer.value, operation.remote};
  auto status = ask(key);
  if (status.ok()) asked[key].operations.push_back(operation.id);
  return status;
}

void Context::Impl::look_up(const BufferHandle &remote) {
  const auto peer = connection_to(remote.owner);
  if (!peer || remote.described_for == me) return;
  const DescriptionKey key{peer->value, remote.id};
  if (!descriptions.contains(key)) (void)ask(key);  // whoever needs it asks again
}

/// What was known of the buffer is true no more: perhaps it was unregistered, perhaps its owner can say more.
bool Context::Impl::ask_again(Operation &operation) {
  const bool access = operation.kind == Operation::Kind::kPut || operation.kind == Operation::Kind::kGet ||
                      operation.kind == Operation::Kind::kAtomic;
  if (!access || !operation.from_cache || operation.asked_again || operation.cancelled) return false;
  operation.asked_again = true;
  operation.code = Code::kOk;
  operation.description.reset();
  auto cached = descriptions.find({operation.peer.value, operation.remote});
  if (cached != descriptions.end()) descriptions.erase(cached);
  return ask_description(operation).ok();
}

void Context::Impl::on_described(PeerId from, const wire::Control &control, std::span<const std::byte> payload) {
  const DescriptionKey key{from.value, control.buffer};
  auto found = asked.find(key);
  if (found == asked.end()) return;
  Code code = received_code(control.result);
  auto &segments = found->second.so_far.segments;
  const auto count = payload.size() / sizeof(RemoteBuffer);
  if (code == Code::kOk && (count == 0 || control.offset != segments.size() || control.length > kMaxSegments ||
                            count > control.length - std::min<std::uint64_t>(control.length, segments.size())))
    code = Code::kBadMessage;
  if (code == Code::kOk) {
    segments.resize(segments.size() + count);
    std::memcpy(&segments[segments.size() - count], payload.data(), payload.size());
    found->second.so_far.purposes = static_cast<Purpose>(control.operation);
    if (segments.size() < control.length) {
      return say_surely(from, wire::Kind::kDescribe, {.buffer = control.buffer, .offset = segments.size()});
    }
  }
  auto node = asked.extract(found);
  described(std::move(node.mapped()), key, code);
}

/// The operations that waited for a description go on, or fail.
void Context::Impl::described(Asked waited, DescriptionKey key, Code code) {
  auto description = std::make_shared<const Description>(std::move(waited.so_far));
  if (code == Code::kOk) {
    if (descriptions.size() >= kMaxDescriptions) descriptions.clear();
    descriptions[key] = description;
  }
  for (const auto id : waited.operations) {
    Operation *operation = operations.find(id);
    if (operation == nullptr) continue;
    operation->description = description;
    if (code == Code::kOk)
      post(*operation, description->segments);
    else
      complete(*operation, code);
  }
}

void Context::Impl::on_forget(PeerId from, const wire::Control &control) {
  descriptions.erase({from.value, control.buffer});
}

// --- what peers did to our buffers ------------------------------------------------------------------------------------

void Context::Impl::on_accessed(PeerId from, const wire::Control &control) {
  const auto purpose = static_cast<Purpose>(control.operation);
  const bool known =
      purpose == Purpose::kRemoteWrite || purpose == Purpose::kRemoteRead || purpose == Purpose::kAtomics;
  Registration *buffer = find_buffer(control.buffer);
  if (!known || buffer == nullptr || !has(buffer->handle.purposes, purpose | Purpose::kWithEvents)) return;
  if (!inside(control.offset, control.length, buffer->handle.size_bytes())) return;
  const std::size_t untaken = buffer->queue ? buffer->queue->events.size() : buffer->events.size();
  if (untaken + due.size() >= kMaxEvents) return reject(from, "it makes more events than anybody takes");
  if (control.buffer == kVariables) {
    const auto index = control.offset / kWord;
    if (watched_variables.contains(index)) due.emplace_back(index);
    return;
  }
  Event event;
  event.purpose = purpose;
  event.buffer = {control.buffer};
  event.offset = control.offset;
  event.length = control.length;
  event.peer = info_of(from);
  event.outward = purpose == Purpose::kRemoteRead;
  add_event(*buffer, std::move(event));
}

}  // namespace nnti
