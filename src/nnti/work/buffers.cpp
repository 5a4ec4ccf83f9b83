// SPDX-License-Identifier: BSD-3-Clause
// The buffers of a context.
#include "nnti/work/context_impl.hpp"

#include <atomic>
#include <utility>

namespace nnti {

namespace {

constexpr Purpose kOneSided =
    Purpose::kLocalRead | Purpose::kRemoteRead | Purpose::kLocalWrite | Purpose::kRemoteWrite | Purpose::kAtomics;
constexpr Purpose kDefined = kOneSided | Purpose::kWithEvents | Purpose::kQueuing | Purpose::kReceiveQueue;

Error invalid(const char *why) { return {Code::kInvalidArgument, why}; }

Status check_purposes(Purpose purposes) {
  const auto undefined = static_cast<std::uint32_t>(purposes) & ~static_cast<std::uint32_t>(kDefined);
  if (undefined != 0) return invalid("the purposes have bits that are not defined");
  if (!any(purposes & (kOneSided | Purpose::kReceiveQueue))) return invalid("no purpose is named");
  if (any(purposes & Purpose::kReceiveQueue) && any(purposes & kOneSided))
    return invalid("a receive queue cannot have other purposes");
  return {};
}

Status check_sizes(const BufferHandle &handle) {
  const std::uint64_t size = handle.size_bytes();
  if (size == 0 || size > UINT64_MAX / 2) return invalid("the size is 0, or larger than memory");
  if (any(handle.purposes & Purpose::kReceiveQueue) && handle.elements >= Event::kNoElement)
    return invalid("a receive queue cannot have so many elements");
  if (any(handle.purposes & Purpose::kAtomics) && size < sizeof(std::uint64_t))
    return invalid("a buffer for atomic operations holds 8 bytes at least");
  return {};
}

std::uint64_t random_id() { return nessie::random_u64() | 1ull << 63; }

}  // namespace

Status check_new_buffer(const BufferHandle &wanted) {
  if (auto status = check_sizes(wanted); !status.ok()) return status;
  return check_purposes(wanted.purposes);
}

std::uint64_t BufferHandle::size_bytes() const {
  std::uint64_t size = 0;
  return __builtin_mul_overflow(element_size, elements, &size) ? 0 : size;
}

bool BufferHandle::receives_messages() const {
  return any(purposes & Purpose::kReceiveQueue) || has(purposes, Purpose::kReceiveDestination);
}

std::uint64_t BufferHandle::largest_message() const {
  return any(purposes & Purpose::kReceiveQueue) ? element_size : size_bytes();
}

Rights rights_for(Purpose purposes) {
  Rights rights = Rights::kNone;
  if (any(purposes & Purpose::kRemoteRead)) rights = rights | Rights::kRemoteRead;
  if (any(purposes & Purpose::kRemoteWrite)) rights = rights | Rights::kRemoteWrite;
  if (any(purposes & Purpose::kAtomics)) rights = rights | Rights::kRemoteAtomic;
  return rights;
}

Context::Impl::Registration *Context::Impl::find_buffer(std::uint64_t id) {
  auto found = buffers.find(id);
  return found == buffers.end() ? nullptr : &found->second;
}

Result<Context::Impl::Registration *> Context::Impl::own_buffer(BufferId id) {
  auto *buffer = id.value == kVariables ? variables() : id.value == kScratch ? nullptr : find_buffer(id.value);
  if (buffer) return buffer;
  if (id.value == kVariables) return Error{Code::kNoMemory, "there are no atomic variables here"};
  return Error{Code::kNotFound, "the buffer is not registered (any more)"};
}

Result<BufferHandle> Context::Impl::add_buffer(std::vector<Bytes> segments, std::uint64_t element_size,
                                               std::uint64_t elements, Purpose purposes, ProcessId only_for,
                                               std::optional<RegisteredBuffer> allocated) {
  const auto peer = only_for.value ? connection_to(only_for) : std::nullopt;
  if (only_for.value && !peer) return Error{Code::kNotFound, "the peer is not connected", nessie::Scope::kPeer};
  Registration made;
  made.handle = {me, random_id(), purposes, element_size, elements, {}, {}};
  made.only_for = only_for;
  made.segments = std::move(segments);
  if (auto status = reach(made, std::move(allocated), peer); !status.ok()) return status.error();
  const bool queue = any(purposes & Purpose::kReceiveQueue);
  if (made.handle.receives_messages()) made.inbox.emplace(queue ? elements : 1);
  const auto handle = made.handle;
  buffers.emplace(handle.id, std::move(made));
  if (queue && receive_queue == 0) receive_queue = handle.id;
  return handle;
}

/// Registers the memory with the endpoint, if peers may reach it.
Status Context::Impl::reach(Registration &made, std::optional<RegisteredBuffer> allocated,
                            std::optional<PeerId> only_for) {
  const Rights rights = rights_for(made.handle.purposes);
  if (allocated) made.memory.push_back(std::move(*allocated));
  for (const auto &segment : made.segments) {
    if (rights == Rights::kNone || made.memory.size() == made.segments.size()) break;
    auto memory = endpoint->register_memory(segment, rights);
    if (!memory.ok()) return memory.error();
    made.memory.push_back(std::move(*memory));
  }
  if (!only_for || rights == Rights::kNone || made.memory.size() != 1) return {};
  auto remote = made.memory[0].describe_for(*only_for);
  if (!remote.ok()) return remote.error();
  made.handle.description = *remote;
  made.handle.described_for = made.only_for;
  return {};
}

Result<BufferHandle> Context::Impl::allocate(std::uint64_t element_size, std::uint64_t elements, Purpose purposes,
                                             ProcessId only_for) {
  const BufferHandle wanted{me, 0, purposes, element_size, elements, {}, {}};
  auto memory = endpoint->allocate(wanted.size_bytes(), rights_for(purposes));
  if (!memory.ok()) return memory.error();
  const auto bytes = memory->bytes();
  return add_buffer({bytes}, element_size, elements, purposes, only_for, std::move(*memory));
}

Status Context::Impl::unregister(BufferId id) {
  Registration *buffer = find_buffer(id.value);
  if (buffer == nullptr || id.value == kVariables || id.value == kScratch)
    return Error{Code::kNotFound, "the buffer is not registered (any more)"};
  if (buffer->in_progress > 0)
    return Error{Code::kBusy, "operations on the buffer are in progress; wait for them first"};
  if (buffer->inbox)
    buffer->inbox->close(
        [&](const Arrival &arrival) { answer_send(arrival.from, arrival.operation, Code::kNotFound); });
  if (receive_queue == id.value) receive_queue = 0;
  buffers.erase(id.value);
  dirty = true;
  return {};
}

// --- atomic variables -------------------------------------------------------------------------------------------------

/// Made when somebody first asks for them. Null: there is no memory, or they are none.
Context::Impl::Registration *Context::Impl::variables() {
  if (auto *made = find_buffer(kVariables)) return made;
  if (variable_count == 0) return nullptr;
  auto memory = endpoint->allocate(variable_count * sizeof(std::uint64_t), Rights::kRemoteAtomic);
  if (!memory.ok()) return nullptr;
  Registration made;
  made.handle = {me, kVariables, Purpose::kAtomics | Purpose::kLocalWrite, sizeof(std::uint64_t), variable_count,
                 {}, {}};
  made.segments = {memory->bytes()};
  made.memory.push_back(std::move(*memory));
  return &buffers.emplace(kVariables, std::move(made)).first->second;
}

Status Context::Impl::watch_variable(Call &call, std::uint64_t index, std::function<void()> changed) {
  auto *buffer = variables();
  if (buffer == nullptr || index >= variable_count) return Error{Code::kOutOfRange, "there is no such atomic variable"};
  watched_variables.erase(index);
  await_callback(call.guard);
  if (changed) watched_variables.emplace(index, std::move(changed));
  if (has(buffer->handle.purposes, Purpose::kWithEvents)) return {};
  buffer->handle.purposes = buffer->handle.purposes | Purpose::kWithEvents;
  wire::Control control{.buffer = kVariables};
  std::vector<PeerId> greeted;
  for (const auto &[id, peer] : peers)
    if (peer.info) greeted.push_back({id});
  for (const auto id : greeted) say_surely(id, wire::Kind::kForget, control);
  return {};
}

// --- describing -------------------------------------------------------------------------------------------------------

void Context::Impl::on_describe(PeerId from, const wire::Control &control) {
  wire::Control answer{.buffer = control.buffer, .offset = control.offset};
  const Registration *buffer = control.buffer == kVariables ? variables() : find_buffer(control.buffer);
  std::vector<RemoteBuffer> segments;
  Code code = Code::kOk;
  if (buffer == nullptr || buffer->memory.empty() || rights_for(buffer->handle.purposes) == Rights::kNone)
    code = buffer == nullptr ? Code::kNotFound : Code::kRefused;
  else if (buffer->only_for.value != 0 && buffer->only_for != find_peer(from)->info->process)
    code = Code::kRefused;
  else if (control.offset >= buffer->memory.size())
    code = Code::kOutOfRange;
  const auto room = (endpoint->max_message_bytes(from) - sizeof answer) / sizeof(RemoteBuffer);
  for (auto i = control.offset; code == Code::kOk && i < buffer->memory.size() && segments.size() < room; ++i) {
    auto remote = buffer->memory[i].describe_for(from);
    if (remote.ok())
      segments.push_back(*remote);
    else
      code = remote.code();
  }
  answer.result = static_cast<std::uint64_t>(code);
  if (code == Code::kOk) {
    answer.operation = static_cast<std::uint64_t>(buffer->handle.purposes);
    answer.length = buffer->memory.size();
  } else {
    segments.clear();
  }
  say_surely(from, wire::Kind::kDescribed, answer, std::as_bytes(std::span(segments)));
}

}  // namespace nnti
