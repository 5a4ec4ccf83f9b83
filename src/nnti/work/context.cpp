// SPDX-License-Identifier: BSD-3-Clause
// The public functions of a context: each takes the lock, refuses when closed, and hands on.
#include "nnti/work/context_impl.hpp"

namespace nnti {

using Call = Context::Impl::Call;
using Kind = Context::Impl::Operation::Kind;

Context::Context(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Context::~Context() {
  close();
  if (!impl_->birth.was_here()) nessie::leave(std::move(impl_));
}

Result<std::shared_ptr<Context>> Context::open(ContextOptions options) {
  auto impl = std::make_shared<Impl>();
  if (auto status = impl->open(std::move(options)); !status.ok()) return status.error();
  return std::shared_ptr<Context>(new Context(std::move(impl)));
}

void Context::close() {
  if (impl_->birth.was_here()) impl_->close();
}
ProcessId Context::id() const { return impl_->me; }
const std::string &Context::url() const { return impl_->url; }
void Context::interrupt() { impl_->crew.interrupt(); }

// --- peers ------------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const PeerInfo>> Context::connect(std::string_view url, Deadline deadline) {
  return impl_->in_call([&](Call &call) { return impl_->connect(call, url, deadline); });
}

Status Context::disconnect(ProcessId peer) {
  return impl_->in_call([&](Call &) { return impl_->disconnect(peer); });
}

std::shared_ptr<const PeerInfo> Context::find_peer(ProcessId peer) const {
  Call call(*impl_);
  const auto connection = impl_->connection_to(peer);
  return connection ? impl_->info_of(*connection) : nullptr;
}

Result<Rendezvous> Context::rendezvous_with(ProcessId peer, Deadline deadline) {
  return impl_->in_call([&](Call &call) { return impl_->measure_rendezvous(call, peer, deadline); });
}

// --- buffers ----------------------------------------------------------------------------------------------------------

Result<BufferHandle> Context::register_memory(void *memory, std::uint64_t element_size, std::uint64_t elements,
                                              Purpose purposes, ProcessId only_for) {
  const BufferHandle wanted{id(), 0, purposes, element_size, elements, {}, {}};
  if (memory == nullptr) return Error{Code::kInvalidArgument, "there is no memory to register"};
  if (auto status = check_new_buffer(wanted); !status.ok()) return status.error();
  return impl_->in_call([&](Call &) {
    return impl_->add_buffer({Bytes(static_cast<std::byte *>(memory), wanted.size_bytes())}, element_size, elements,
                             purposes, only_for, std::nullopt);
  });
}

Result<BufferHandle> Context::register_segments(std::span<const std::span<std::byte>> segments, Purpose purposes,
                                                ProcessId only_for) {
  BufferHandle wanted{id(), 0, purposes, 0, 1, {}, {}};
  if (segments.empty() || segments.size() > Impl::kMaxSegments)
    return Error{Code::kInvalidArgument, "there are no segments, or more than 65,536"};
  if (any(purposes & Purpose::kReceiveQueue))
    return Error{Code::kInvalidArgument, "a receive queue has elements of one size, not segments"};
  for (const auto &segment : segments) {
    if (segment.data() == nullptr || segment.empty()) return Error{Code::kInvalidArgument, "a segment is empty"};
    if (__builtin_add_overflow(wanted.element_size, segment.size(), &wanted.element_size))
      return Error{Code::kInvalidArgument, "the segments are larger than memory"};
  }
  if (auto status = check_new_buffer(wanted); !status.ok()) return status.error();
  return impl_->in_call([&](Call &) {
    return impl_->add_buffer({segments.begin(), segments.end()}, wanted.element_size, 1, purposes, only_for,
                             std::nullopt);
  });
}

Result<BufferHandle> Context::allocate(std::uint64_t element_size, std::uint64_t elements, Purpose purposes,
                                       ProcessId only_for) {
  if (auto status = check_new_buffer({id(), 0, purposes, element_size, elements, {}, {}}); !status.ok())
    return status.error();
  return impl_->in_call([&](Call &) { return impl_->allocate(element_size, elements, purposes, only_for); });
}

Status Context::unregister(BufferId buffer) {
  return impl_->in_call([&](Call &) { return impl_->unregister(buffer); });
}

Result<std::vector<std::span<std::byte>>> Context::memory_of(BufferId buffer) const {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  auto found = impl_->own_buffer(buffer);
  if (!found.ok()) return found.error();
  return (*found)->segments;
}

// --- operations -------------------------------------------------------------------------------------------------------

Status Context::send(ProcessId to, BufferId message, const BufferHandle *destination, RequestId *request) {
  return impl_->in_call([&](Call &) { return impl_->send(to, message, destination, request); });
}

Status Context::put(BufferId source, std::uint64_t source_offset, std::uint64_t length, const BufferHandle &destination,
                    std::uint64_t destination_offset, RequestId *request) {
  return impl_->in_call([&](Call &) {
    return impl_->start_access(source, {Kind::kPut, source_offset, length, destination, destination_offset}, request);
  });
}

Status Context::get(const BufferHandle &source, std::uint64_t source_offset, std::uint64_t length, BufferId destination,
                    std::uint64_t destination_offset, RequestId *request) {
  return impl_->in_call([&](Call &) {
    return impl_->start_access(destination, {Kind::kGet, destination_offset, length, source, source_offset}, request);
  });
}

void Context::look_up(const BufferHandle &remote) {
  Call call(*impl_);
  if (!impl_->closed) impl_->look_up(remote);
}

Status Context::scatter(BufferId source, std::uint64_t length, std::span<const BufferHandle> destinations,
                        RequestId *request) {
  return impl_->in_call([&](Call &) { return impl_->start_group(source, Kind::kPut, length, destinations, request); });
}

Status Context::gather(std::span<const BufferHandle> sources, std::uint64_t length, BufferId destination,
                       RequestId *request) {
  return impl_->in_call([&](Call &) { return impl_->start_group(destination, Kind::kGet, length, sources, request); });
}

Status Context::fetch_add(const BufferHandle &target, std::uint64_t offset, std::uint64_t operand, BufferId result,
                          std::uint64_t result_offset, RequestId *request) {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  const AtomicOperation atomic{AtomicOperation::Kind::kFetchAdd, operand, 0};
  return impl_->start_access(result, {Kind::kAtomic, result_offset, sizeof operand, target, offset, atomic}, request);
}

Status Context::compare_swap(const BufferHandle &target, std::uint64_t offset, std::uint64_t expected,
                             std::uint64_t desired, BufferId result, std::uint64_t result_offset, RequestId *request) {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  const AtomicOperation atomic{AtomicOperation::Kind::kCompareSwap, desired, expected};
  return impl_->start_access(result, {Kind::kAtomic, result_offset, sizeof desired, target, offset, atomic}, request);
}

BufferHandle Context::variables_of(ProcessId process) const {
  // How many a peer has, its description tells.
  const std::uint64_t count = process == id() ? impl_->variable_count : UINT64_MAX / sizeof(std::uint64_t);
  return {process, Impl::kVariables, Purpose::kAtomics | Purpose::kLocalWrite, sizeof(std::uint64_t), count, {}, {}};
}

Result<std::int64_t> Context::read_variable(std::uint64_t index) const {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  const auto *buffer = impl_->variables();
  if (buffer == nullptr || index >= impl_->variable_count)
    return Error{Code::kOutOfRange, "there is no such atomic variable"};
  auto *words = reinterpret_cast<std::int64_t *>(buffer->segments[0].data());
  return std::atomic_ref(words[index]).load();
}

Status Context::on_variable_changed(std::uint64_t index, std::function<void()> changed) {
  return impl_->in_call([&](Call &call) { return impl_->watch_variable(call, index, std::move(changed)); });
}

// --- work requests ----------------------------------------------------------------------------------------------------

Result<RequestId> Context::create_request(BufferId buffer) {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  auto found = impl_->own_buffer(buffer);
  if (!found.ok()) return found.error();
  auto &made = impl_->requests.make();
  made.of_buffer = true;
  made.buffer = buffer;
  return RequestId{made.id};
}

Status Context::clear(RequestId id) {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  auto request = impl_->find_request(id);
  if (!request.ok()) return request.error();
  using State = Impl::Request::State;
  if ((*request)->state == State::kPending)
    return Error{Code::kBusy, "the operation is still in progress; wait for it, or cancel it"};
  impl_->give_back(**request);
  if (!(*request)->of_buffer) return impl_->requests.erase(**request), Status();
  (*request)->state = State::kIdle;
  return {};
}

Status Context::destroy(RequestId id) {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  auto request = impl_->find_request(id);
  if (!request.ok()) return request.error();
  if (!(*request)->of_buffer) (void)impl_->cancel(**request).ok();
  if (auto *left = impl_->requests.find(id.value)) {
    impl_->give_back(*left);
    impl_->requests.erase(*left);
  }
  impl_->dirty = true;
  return {};
}

Status Context::cancel(RequestId id) {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  auto request = impl_->find_request(id);
  return request.ok() ? impl_->cancel(**request) : request.error();
}

Status Context::cancel(BufferId buffer) {
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  auto found = impl_->own_buffer(buffer);
  if (!found.ok()) return found.error();
  std::vector<std::uint64_t> ids;
  impl_->operations.for_each([&](const Impl::Operation &operation) {
    if (operation.local == buffer.value && operation.request == 0 && operation.group == 0) ids.push_back(operation.id);
  });
  for (const auto id : ids)
    if (auto *operation = impl_->operations.find(id)) impl_->cancel(*operation);
  return {};
}

// --- completions ------------------------------------------------------------------------------------------------------

Result<Event> Context::wait(BufferId buffer, Purpose purposes, Deadline deadline) {
  Event event;
  auto which = wait_any({&buffer, 1}, purposes, deadline, event);
  return which.ok() ? Result<Event>(std::move(event)) : which.error();
}

Result<Event> Context::wait(RequestId request, Deadline deadline) {
  Event event;
  auto which = wait_any({&request, 1}, deadline, event);
  return which.ok() ? Result<Event>(std::move(event)) : which.error();
}

Result<std::size_t> Context::wait_any(std::span<const BufferId> buffers, Purpose purposes, Deadline deadline,
                                      Event &event) {
  return impl_->in_call([&](Call &call) { return impl_->wait_any(call, buffers, purposes, deadline, event); });
}

Result<std::size_t> Context::wait_any(std::span<const RequestId> requests, Deadline deadline, Event &event) {
  return impl_->in_call([&](Call &call) { return impl_->wait_any(call, requests, Purpose::kNone, deadline, event); });
}

Status Context::wait_all(std::span<const BufferId> buffers, Purpose purposes, Deadline deadline,
                         std::span<Event> events) {
  return impl_->in_call([&](Call &call) { return impl_->wait_all(call, buffers, purposes, deadline, events); });
}

Status Context::wait_all(std::span<const RequestId> requests, Deadline deadline, std::span<Event> events) {
  return impl_->in_call([&](Call &call) { return impl_->wait_all(call, requests, Purpose::kNone, deadline, events); });
}

Status Context::release(BufferId buffer, std::uint32_t element) {
  // A thread of C gives back what it holds as it ends, and so at the exit of a forked child.
  if (!impl_->birth.was_here()) return Error{Code::kNotFound, "the buffer is that of the process that was forked"};
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  auto *found = impl_->find_buffer(buffer.value);
  if (found == nullptr) return Error{Code::kNotFound, "the buffer is not registered (any more)"};
  impl_->release(*found, element);
  return {};
}

Result<std::unique_ptr<CompletionQueue>> Context::create_queue(std::function<void(const Event &)> on_event) {
  auto queue = std::make_shared<QueueImpl>();
  queue->on_event = std::move(on_event);
  Call call(*impl_);
  if (impl_->closed) return closed_error();
  return std::unique_ptr<CompletionQueue>(new CompletionQueue(impl_, std::move(queue)));
}

}  // namespace nnti
