// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/ofi/adapter_test.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace nnti::ofi::test {

namespace {

constinit Adapter *present = nullptr;
constinit std::mutex hooks_mutex;
Library real;

/// libfabric's functions for one kind of object, and ours in front of them. One provider has one such table of each.
template <class Functions> struct Hook {
  Functions *original = nullptr;
  Functions changed{};

  template <class Change> void install(Functions *&functions, Change change) {
    std::lock_guard lock(hooks_mutex);
    if (original == nullptr) {
      original = functions;
      changed = *functions;
      change(changed);
    }
    functions = &changed;
  }
};

Hook<fi_ops_fabric> fabrics;
Hook<fi_ops_domain> domains;
Hook<fi_ops_mr> registering;
Hook<fi_ops> regions;
Hook<fi_ops_msg> messages;
Hook<fi_ops_rma> transfers;
Hook<fi_ops_cq> queues;

}  // namespace

Adapter *Adapter::install(std::string &reason) {
  if (present != nullptr) return present;
  auto loaded = load_library();
  if (!loaded.ok()) return reason = loaded.error().message, nullptr;
  real = **loaded;
  auto ours = real;
  ours.fabric = &open_fabric;
  if (install_in_child(reason) == nullptr) return nullptr;
  substitute_library(ours);
  return present;
}

Adapter *Adapter::install_in_child(std::string &reason) {
  auto witness = nnti::test::make_pinning_witness(reason, false);
  if (!witness) return nullptr;
  auto *adapter = new Adapter;  // libfabric's objects may outlive every other
  adapter->witness_ = std::move(witness);
  return present = adapter;
}

// --- in front of libfabric's functions ----------------------------------------------------------------------------------

int Adapter::open_fabric(fi_fabric_attr *attributes, fid_fabric **fabric, void *context) {
  const int rc = real.fabric(attributes, fabric, context);
  if (rc == 0) fabrics.install((*fabric)->ops, [](auto &ops) { ops.domain = &open_domain; });
  return rc;
}

int Adapter::open_domain(fid_fabric *fabric, fi_info *info, fid_domain **domain, void *context) {
  const int rc = fabrics.original->domain(fabric, info, domain, context);
  if (rc != 0) return rc;
  domains.install((*domain)->ops, [](auto &ops) {
    ops.endpoint = &open_endpoint;
    ops.cq_open = &open_queue;
  });
  registering.install((*domain)->mr, [](auto &ops) { ops.reg = &register_region; });
  return 0;
}

int Adapter::open_endpoint(fid_domain *domain, fi_info *info, fid_ep **endpoint, void *context) {
  const int rc = domains.original->endpoint(domain, info, endpoint, context);
  if (rc != 0) return rc;
  messages.install((*endpoint)->msg, [](auto &ops) {
    ops.send = &send;
    ops.recv = &receive;
  });
  transfers.install((*endpoint)->rma, [](auto &ops) {
    ops.readmsg = &read_message;
    ops.writemsg = &write_message;
  });
  return 0;
}

int Adapter::open_queue(fid_domain *domain, fi_cq_attr *attributes, fid_cq **queue, void *context) {
  const int rc = domains.original->cq_open(domain, attributes, queue, context);
  if (rc == 0)
    queues.install((*queue)->ops, [](auto &ops) {
      ops.read = &read_queue;
      ops.readerr = &read_queue_error;
    });
  return rc;
}

int Adapter::register_region(fid *domain, const void *memory, std::size_t size, std::uint64_t access,
                             std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr **mr, void *context) {
  const int rc = registering.original->reg(domain, memory, size, access, offset, key, flags, mr, context);
  if (rc != 0) return rc;
  regions.install((*mr)->fid.ops, [](auto &ops) { ops.close = &close_region; });
  present->note_registration(**mr, {static_cast<std::byte *>(const_cast<void *>(memory)), size}, access);
  return 0;
}

int Adapter::close_region(fid *mr) {
  present->note_end(*mr);
  return regions.original->close(mr);
}

ssize_t Adapter::send(fid_ep *endpoint, const void *memory, std::size_t size, void *descriptor, fi_addr_t to,
                      void *context) {
  present->note_frame(memory, size, descriptor);
  return messages.original->send(endpoint, memory, size, descriptor, to, context);
}

ssize_t Adapter::receive(fid_ep *endpoint, void *memory, std::size_t size, void *descriptor, fi_addr_t from,
                         void *context) {
  present->note_frame(memory, size, descriptor);
  return messages.original->recv(endpoint, memory, size, descriptor, from, context);
}

ssize_t Adapter::read_message(fid_ep *endpoint, const fi_msg_rma *message, std::uint64_t flags) {
  present->note_transfer(*message);
  const auto rc = transfers.original->readmsg(endpoint, message, flags);
  if (rc != 0) present->forget_transfer(*message);
  return rc;
}

ssize_t Adapter::write_message(fid_ep *endpoint, const fi_msg_rma *message, std::uint64_t flags) {
  present->note_transfer(*message);
  const auto rc = transfers.original->writemsg(endpoint, message, flags);
  if (rc != 0) present->forget_transfer(*message);
  return rc;
}

ssize_t Adapter::read_queue(fid_cq *queue, void *entries, std::size_t count) {
  const auto read = queues.original->read(queue, entries, count);
  for (ssize_t i = 0; i < read; ++i) present->note_completion(static_cast<fi_cq_msg_entry *>(entries)[i].op_context);
  return read;
}

ssize_t Adapter::read_queue_error(fid_cq *queue, fi_cq_err_entry *entry, std::uint64_t flags) {
  const auto read = queues.original->readerr(queue, entry, flags);
  if (read > 0) present->note_completion(entry->op_context);
  return read;
}

// --- what is seen -------------------------------------------------------------------------------------------------------

void Adapter::note_registration(fid_mr &mr, std::span<std::byte> memory, std::uint64_t access) {
  std::lock_guard lock(mutex_);
  auto &known = known_[&mr.fid];
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  known.memory = {begin, begin + memory.size()};
  known.exposed = (access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0;
  known.descriptor = fi_mr_desc(&mr);
  if (known.exposed) {
    ++seen_.exposed_made;
    seen_.keys.insert(fi_mr_key(&mr));
  } else if ((access & (FI_READ | FI_WRITE)) != 0) {
    ++seen_.local_made;
    seen_.accesses.insert(access);
    auto pinned = witness_->register_pages(pages_of(begin, memory.size()), access);
    if (pinned.ok()) known.pinned = std::move(*pinned);
  }
}

void Adapter::note_end(fid &mr) {
  std::lock_guard lock(mutex_);
  const auto found = known_.find(&mr);
  if (found == known_.end()) return;
  seen_.ended_too_early += found->second.in_flight;
  std::erase_if(in_flight_, [&](const auto &entry) { return entry.second == &found->second; });
  known_.erase(found);
}

Adapter::Known *Adapter::find(void *descriptor, const void *memory, std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  for (auto &[mr, known] : known_)
    if (known.descriptor == descriptor && !known.exposed && known.memory.covers({begin, begin + size})) return &known;
  return nullptr;
}

void Adapter::note_frame(const void *memory, std::size_t size, void *descriptor) {
  std::lock_guard lock(mutex_);
  ++seen_.frames;
  seen_.unregistered += find(descriptor, memory, size) == nullptr;
}

void Adapter::note_transfer(const fi_msg_rma &message) {
  std::lock_guard lock(mutex_);
  const iovec &local = message.msg_iov[0];
  ++seen_.transfers;
  auto *known = find(message.desc[0], local.iov_base, local.iov_len);
  if (known == nullptr || known->pinned == nullptr) {
    ++seen_.unregistered;
    return;
  }
  seen_.stale += !reaches(*known, {static_cast<std::byte *>(local.iov_base), local.iov_len});
  ++known->in_flight;
  in_flight_[message.context] = known;
}

/// The witness writes where it looks; what was there is put back.
bool Adapter::reaches(Known &known, std::span<std::byte> memory) {
  const auto part = memory.first(std::min<std::size_t>(memory.size(), 2 * page_bytes()));
  const auto last = memory.last(std::min<std::size_t>(memory.size(), page_bytes()));
  const std::vector<std::byte> before(memory.begin(), memory.end());
  const bool agrees = witness_->agrees(*known.pinned, part) && witness_->agrees(*known.pinned, last);
  std::ranges::copy(before, memory.begin());
  return agrees;
}

void Adapter::forget_transfer(const fi_msg_rma &message) {
  note_completion(message.context);
  std::lock_guard lock(mutex_);
  --seen_.transfers;
}

void Adapter::note_completion(void *context) {
  std::lock_guard lock(mutex_);
  const auto found = in_flight_.find(context);
  if (found == in_flight_.end()) return;
  --found->second->in_flight;
  in_flight_.erase(found);
}

Adapter::Seen Adapter::seen() {
  std::lock_guard lock(mutex_);
  return seen_;
}

void Adapter::reset() {
  std::lock_guard lock(mutex_);
  seen_ = {};
}

std::size_t Adapter::local_alive() {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(known_, [](const auto &entry) { return entry.second.pinned != nullptr; }));
}

std::size_t Adapter::exposed_alive() {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(known_, [](const auto &entry) { return entry.second.exposed; }));
}

}  // namespace nnti::ofi::test
