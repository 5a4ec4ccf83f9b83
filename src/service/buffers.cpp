// SPDX-License-Identifier: BSD-3-Clause
#include <service/buffers.hpp>

#include <algorithm>
#include <new>

namespace nessie::service {
namespace {

constexpr std::align_val_t kPage{4096};
/// In place of those that are stuck.
constexpr std::size_t kMostTimes = 8;
/// Nobody tells when a caller gets stuck.
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

void Buffers::Buffer::Free::operator()(std::byte *memory) const { ::operator delete(memory, kPage); }

/// In the fiber that waits.
struct Buffers::Waiter {
  Waiter(nssi::Runtime &runtime, nssi::PeerId its_caller) : caller(its_caller), come(runtime) {}
  const nssi::PeerId caller;
  nssi::Event come;
  std::unique_ptr<Buffer> buffer = nullptr;
};

Buffers::Buffers(nssi::Runtime &runtime, Budget &budget, BuffersOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      account_(budget, options_.name, {.on_shortage = [this] { drop_free(); }}) {}

Buffers::~Buffers() = default;

Result<Buffers::Lease> Buffers::take(nssi::PeerId caller, const nssi::Request *request) {
  std::unique_lock lock(mutex_);
  if (waiting_.empty() && has_room() && !is_stuck(caller))
    if (auto buffer = lend_to(caller)) return Lease(*this, std::move(buffer));
  Waiter waiter(runtime_, caller);
  waiting_.push_back(&waiter);
  while (!serve(waiter)) {
    lock.unlock();
    auto status = waiter.come.wait(Deadline::in(kLook));
    if (status.code() == Code::kTimedOut) status = request != nullptr ? request->check() : Status();
    lock.lock();
    if (waiter.buffer) break;
    if (status.ok()) continue;
    std::erase(waiting_, &waiter);
    return status.error();
  }
  return Lease(*this, std::move(waiter.buffer));
}

/// Null: there is no room now, as make() says.
std::unique_ptr<Buffers::Buffer> Buffers::lend_to(nssi::PeerId caller) {
  auto buffer = make();
  if (!buffer) return nullptr;
  buffer->caller = caller;
  lent_.push_back(buffer.get());
  return buffer;
}

/// True: it has its buffer, and waits no longer.
bool Buffers::serve(Waiter &waiter) {
  if (next() != &waiter) return false;
  waiter.buffer = lend_to(waiter.caller);
  if (!waiter.buffer) return false;
  std::erase(waiting_, &waiter);
  return true;
}

bool Buffers::is_stuck(nssi::PeerId caller) const { return options_.is_stuck && options_.is_stuck(caller); }

bool Buffers::has_room() const {
  if (lent_.size() < options_.most) return true;
  if (lent_.size() >= kMostTimes * options_.most) return false;
  const auto stuck = std::ranges::count_if(lent_, [&](const Buffer *lent) { return is_stuck(lent->caller); });
  return lent_.size() - static_cast<std::size_t>(stuck) < options_.most;
}

/// The waiter whose turn it is; null: there is no room.
Buffers::Waiter *Buffers::next() const {
  if (waiting_.empty() || !has_room()) return nullptr;
  const auto first = std::ranges::find_if(waiting_, [&](const Waiter *waiter) { return !is_stuck(waiter->caller); });
  return first == waiting_.end() ? nullptr : *first;
}

/// One that was kept, or a new one; null: the process's budget, or the system's memory, has no room now.
std::unique_ptr<Buffers::Buffer> Buffers::make() {
  if (!free_.empty()) {
    auto buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  if (!account_.try_take(options_.size_bytes)) return nullptr;
  auto buffer = std::make_unique<Buffer>();
  buffer->memory.reset(static_cast<std::byte *>(::operator new(options_.size_bytes, kPage, std::nothrow)));
  if (buffer->memory) return buffer;
  account_.give_back(options_.size_bytes);
  return nullptr;
}

/// Another pool is short. Whoever is at the buffers just now may be the one that made it short: then nothing is
/// dropped.
void Buffers::drop_free() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  account_.give_back(free_.size() * options_.size_bytes);
  free_.clear();
}

void Buffers::give_back(std::unique_ptr<Buffer> buffer) {
  const std::lock_guard lock(mutex_);
  std::erase(lent_, buffer.get());
  if (lent_.size() + free_.size() < options_.most) {
    free_.push_back(std::move(buffer));
  } else {
    buffer.reset();
    account_.give_back(options_.size_bytes);
  }
  if (auto *waiter = next(); waiter != nullptr && serve(*waiter)) waiter->come.set();
}

}  // namespace nessie::service
