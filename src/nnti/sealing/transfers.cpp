// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/sealing/transfers.hpp"

#include "nnti/transport/registration_check.hpp"

#include <algorithm>
#include <utility>

namespace nnti::sealing {
namespace {

Error forged() { return {Code::kIo, "the data was changed on its way; try again, and look at the network"}; }

}  // namespace

// --- the initiator ----------------------------------------------------------------------------------------------------

/// Memory that the peer reads a sealed chunk from, or writes one to.
struct Initiator::Window {
  std::vector<std::byte> bytes = std::vector<std::byte>(kChunkBytes);
  std::unique_ptr<TransportMemory> memory;
  std::uint64_t operation = 0;  ///< the request under way in it; 0: free
  std::shared_ptr<Running> running;
  std::size_t at = 0, size_bytes = 0;  ///< of the chunk, within the application's operation
  std::span<std::byte> chunk() { return std::span(bytes).first(size_bytes); }
};

Initiator::Initiator(TransferHost &host) : host_(host) {}
Initiator::~Initiator() = default;

void Initiator::start(const Operation &operation) {
  running_.push_back(std::make_shared<Running>(Running{operation, false, 0, 0, {}}));
  pump();
}

Result<Initiator::Window *> Initiator::free_window() {
  for (const auto &window : windows_)
    if (window->operation == 0) return window.get();
  if (windows_.size() == kMaxChunks) return nullptr;
  auto window = std::make_unique<Window>();
  auto memory = host_.inner().transport().register_memory({window->bytes, Rights::kReadWrite, -1});
  if (!memory.ok()) return windows_.empty() ? Result<Window *>(memory.error()) : nullptr;
  window->memory = std::move(*memory);
  windows_.push_back(std::move(window));
  return windows_.back().get();
}

std::shared_ptr<Initiator::Running> Initiator::next_with_work() const {
  auto found = std::ranges::find_if(running_, [](const auto &running) { return running->has_work(); });
  return found == running_.end() ? nullptr : *found;
}

void Initiator::pump() {
  while (auto running = next_with_work()) {
    auto window = free_window();
    if (window.ok() && *window == nullptr) return;  // one becomes free when a chunk is done
    auto begun = window.ok() ? begin_chunk(running, **window) : Status(window.error());
    if (!begun.ok()) settle(running, std::move(begun));
  }
}

Status Initiator::begin_chunk(const std::shared_ptr<Running> &running, Window &window) {
  const auto &operation = running->operation;
  auto lent = window.memory->describe_for(host_.inner());
  if (!lent.ok()) return lent.error();
  window.operation = next_operation_++;
  window.running = running;
  window.at = running->begun;
  window.size_bytes = std::min(kChunkBytes, operation.size_bytes - running->begun);
  BulkRequest request;
  request.operation = window.operation;
  request.key = operation.remote.key;
  request.offset = operation.offset + window.at;
  request.slot = operation.remote.slot;
  request.size_bytes = static_cast<std::uint32_t>(window.size_bytes);
  request.is_put = operation.source != nullptr ? 1 : 0;
  if (request.is_put != 0) {
    request.number = next_number_++;
    request.tag = host_.put_out().seal(request.number, bytes_of(request.operation),
                                       {operation.source + window.at, window.size_bytes}, window.chunk());
  }
  request.window_key = lent->key;
  request.window_address = lent->address;
  request.window_bytes = lent->size_bytes;
  request.window_location = lent->location;
  request.window_slot = lent->slot;
  request.window_rights = static_cast<std::uint32_t>(lent->rights);
  running->asked = true;
  running->begun += window.size_bytes;
  ++running->in_flight;
  host_.tell(kBulkRequest, bytes_of(request));
  return {};
}

bool Initiator::on_done(const BulkDone &done) {
  auto found = std::ranges::find_if(
      windows_, [&](const auto &window) { return done.operation != 0 && window->operation == done.operation; });
  if (found == windows_.end()) return false;
  auto status = open_chunk(**found, done);
  auto running = std::exchange((*found)->running, nullptr);
  (*found)->operation = 0;
  --running->in_flight;
  settle(running, std::move(status));
  pump();
  return true;
}

Status Initiator::open_chunk(const Window &window, const BulkDone &done) {
  const auto code = received_code(done.code);
  if (code != Code::kOk) return refused_by_peer(code);
  auto *destination = window.running->operation.destination;
  if (destination == nullptr) return {};
  const std::span<std::byte> plain(destination + window.at, window.size_bytes);
  const auto sealed = std::span<const std::byte>(window.bytes).first(window.size_bytes);
  if (!host_.get_in().open(done.number, bytes_of(done.operation), sealed, done.tag, plain)) return forged();
  return {};
}

/// A chunk of `running` ended, or could not begin. The first error is the operation's.
void Initiator::settle(const std::shared_ptr<Running> &running, Status status) {
  if (running->status.ok()) running->status = std::move(status);
  if (!running->over() || std::erase(running_, running) == 0) return;
  running->operation.completion->on_complete(running->status);
}

void Initiator::abandon(const Error &error) {
  for (const auto &window : windows_) window->running = nullptr;  // not free: the peer may still write to it
  for (const auto &running : std::exchange(running_, {})) running->operation.completion->on_complete(error);
}

// --- the owner --------------------------------------------------------------------------------------------------------

struct Owner::Serving final : Completion {
  explicit Serving(Owner &of) : owner(of) {}
  void on_complete(Status status) override { owner.finish(*this, status); }

  Owner &owner;
  bool busy = false;
  BulkRequest request;
  BulkDone answer;
  std::vector<std::byte> bytes = std::vector<std::byte>(kChunkBytes);  ///< the sealed chunk
  std::span<std::byte> chunk() { return std::span(bytes).first(request.size_bytes); }
};

Owner::Owner(TransferHost &host) : host_(host) {}
Owner::~Owner() = default;

Owner::Serving *Owner::free_serving() {
  for (const auto &serving : serving_)
    if (!serving->busy) return serving.get();
  if (serving_.size() == kMaxChunks) return nullptr;
  serving_.push_back(std::make_unique<Serving>(*this));
  return serving_.back().get();
}

bool Owner::on_request(const BulkRequest &request) {
  auto *serving = free_serving();
  if (serving == nullptr || request.size_bytes > kChunkBytes) return false;
  serving->busy = true;
  serving->request = request;
  serving->answer = {};
  serving->answer.operation = request.operation;
  const auto region = host_.find_memory(request.key, request.slot);
  const auto needed = request.is_put != 0 ? Rights::kRemoteWrite : Rights::kRemoteRead;
  const auto allowed =
      region ? check_access(region->bytes.size(), region->rights, request.offset, request.size_bytes, needed)
             : Status(unknown_key());
  if (allowed.ok() && request.is_put == 0) {
    auto &answer = serving->answer;
    answer.number = next_number_++;
    answer.tag = host_.get_out().seal(answer.number, bytes_of(request.operation),
                                      region->bytes.subspan(request.offset, request.size_bytes), serving->chunk());
  }
  if (!allowed.ok() || request.size_bytes == 0) {
    finish(*serving, allowed);
    return true;
  }
  const RemoteBuffer window{request.window_key,   request.window_address,
                            request.window_bytes, request.window_location,
                            request.window_slot,  static_cast<Rights>(request.window_rights)};
  if (request.is_put == 0)
    host_.inner().put(window, 0, serving->chunk(), *serving);
  else
    host_.inner().get(window, 0, serving->chunk(), *serving);
  return true;
}

/// The sealed chunk has crossed the network, or could not, or shall not.
void Owner::finish(Serving &serving, const Status &moved) {
  auto status = moved;
  if (status.ok() && serving.request.is_put != 0) status = store(serving);
  serving.answer.code = static_cast<std::uint32_t>(status.code());
  serving.busy = false;
  if (moved.code() != Code::kPeerLost && moved.code() != Code::kCancelled)
    host_.tell(kBulkDone, bytes_of(serving.answer));
}

/// The buffer may have gone while its data was on the way.
Status Owner::store(Serving &serving) {
  const auto &request = serving.request;
  if (!host_.put_in().open(request.number, bytes_of(request.operation), serving.chunk(), request.tag, serving.chunk()))
    return forged();
  const auto region = host_.find_memory(request.key, request.slot);
  if (!region) return unknown_key();
  auto allowed =
      check_access(region->bytes.size(), region->rights, request.offset, request.size_bytes, Rights::kRemoteWrite);
  if (allowed.ok()) std::ranges::copy(serving.chunk(), region->bytes.data() + request.offset);
  return allowed;
}

}  // namespace nnti::sealing
