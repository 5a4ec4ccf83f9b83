// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/inproc/port.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace nnti::inproc {
namespace {

struct Directory {
  struct Entry {
    std::shared_ptr<Port> port;
    pid_t process;  ///< a fork inherits the directory, not the endpoints
  };
  std::mutex mutex;
  std::unordered_map<std::string, Entry> entries;
};

/// Never destroyed: endpoints may outlive the statics.
Directory &directory() {
  static auto *instance = new Directory;
  return *instance;
}

void ring(const nessie::Fd &event) {
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(event.get(), &one, sizeof one);
}

}  // namespace

Port::Port() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

bool Port::post(Item item) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return false;
    items_.push_back(std::move(item));
    pending_.store(items_.size(), std::memory_order_seq_cst);
  }
  if (blocked_.exchange(false, std::memory_order_seq_cst)) ring(event_);
  return true;
}

bool Port::take(Item &item) {
  if (!has_items()) return false;
  std::lock_guard lock(mutex_);
  if (items_.empty()) return false;
  item = std::move(items_.front());
  items_.pop_front();
  pending_.store(items_.size(), std::memory_order_seq_cst);
  return true;
}

void Port::close() {
  std::deque<Item> dropped;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(items_);
    pending_.store(0, std::memory_order_seq_cst);
  }
  for (auto &item : dropped) {
    if (item.kind != Item::Kind::kConnect) continue;
    item.link->state.store(LinkState::kGone, std::memory_order_release);
    item.link->ports[0]->post({Item::Kind::kAnswer, item.link, 0, {}});
  }
}

bool Port::arm() {
  blocked_.store(true, std::memory_order_seq_cst);
  if (!has_items()) return true;
  blocked_.store(false, std::memory_order_relaxed);
  return false;
}

void Port::disarm(bool fd_ready) {
  blocked_.store(false, std::memory_order_relaxed);
  if (!fd_ready) return;
  std::uint64_t rings;
  [[maybe_unused]] auto drained = ::read(event_.get(), &rings, sizeof rings);
}

std::uint32_t Port::add_registration(std::shared_ptr<Registration> registration) {
  std::lock_guard lock(registrations_mutex_);
  while (next_slot_ == 0 || registrations_.contains(next_slot_)) ++next_slot_;
  registrations_.emplace(next_slot_, std::move(registration));
  return next_slot_++;
}

void Port::end_registration(std::uint32_t slot) {
  auto registration = find_registration(slot);
  if (!registration) return;
  {
    std::lock_guard lock(registrations_mutex_);
    registrations_.erase(slot);
  }
  std::unique_lock transfers_done(registration->in_use);
  registration->alive = false;
}

std::shared_ptr<Registration> Port::find_registration(std::uint32_t slot) {
  std::lock_guard lock(registrations_mutex_);
  auto found = registrations_.find(slot);
  return found == registrations_.end() ? nullptr : found->second;
}

void add_port(const std::string &name, std::shared_ptr<Port> port) {
  std::lock_guard lock(directory().mutex);
  directory().entries[name] = {std::move(port), ::getpid()};
}

void remove_port(const std::string &name) {
  std::lock_guard lock(directory().mutex);
  directory().entries.erase(name);
}

std::shared_ptr<Port> find_port(const std::string &name) {
  std::lock_guard lock(directory().mutex);
  auto found = directory().entries.find(name);
  return found == directory().entries.end() || found->second.process != ::getpid() ? nullptr : found->second.port;
}

bool has_port(const std::string &name) { return find_port(name) != nullptr; }

}  // namespace nnti::inproc
