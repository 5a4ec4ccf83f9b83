// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/inproc/connection.hpp"

#include "nnti/transport/atomics.hpp"
#include "nnti/transport/registration_check.hpp"

#include <nessie/copy.hpp>

#include <unistd.h>

#include <cerrno>

namespace nnti::inproc {

InprocConnection::InprocConnection(Transport &transport, std::shared_ptr<Link> link, int side)
    : transport_(transport), link_(std::move(link)), side_(side) {
  link_->ends[static_cast<std::size_t>(side_)] = this;
}

InprocConnection::~InprocConnection() { close(); }

std::string InprocConnection::explain() const {
  return "inproc: the peer is in the same process; bulk data is copied by memcpy";
}

bool InprocConnection::try_send(MessageKind kind, std::span<const std::byte> message) {
  if (!open_) return true;
  auto mine = static_cast<std::size_t>(side_);
  if (link_->in_flight[mine].load(std::memory_order_seq_cst) >= kCredits) {
    link_->starves[mine].store(true, std::memory_order_seq_cst);
    if (link_->in_flight[mine].load(std::memory_order_seq_cst) >= kCredits) return false;
  }
  link_->in_flight[mine].fetch_add(1, std::memory_order_seq_cst);
  link_->ports[static_cast<std::size_t>(other())]->post(
      {Item::Kind::kMessage, link_, other(), {message.begin(), message.end()}, kind});
  return true;
}

void InprocConnection::return_credit() {
  auto theirs = static_cast<std::size_t>(other());
  link_->in_flight[theirs].fetch_sub(1, std::memory_order_seq_cst);
  if (link_->starves[theirs].load(std::memory_order_seq_cst) && link_->starves[theirs].exchange(false))
    link_->ports[theirs]->post({Item::Kind::kCredits, link_, other(), {}});
}

template <class Copy>
Status InprocConnection::transfer(const RemoteBuffer &remote, std::uint64_t offset, std::size_t size_bytes,
                                  Rights needed, Copy copy) {
  if (!open_) return Error{Code::kPeerLost, "the peer has left", nessie::Scope::kPeer};
  auto registration = link_->ports[static_cast<std::size_t>(other())]->find_registration(remote.slot);
  if (!registration) return unknown_key();
  std::shared_lock in_use(registration->in_use);
  if (!registration->alive || registration->key != remote.key) return unknown_key();
  if (auto status = check_access(registration->bytes.size(), registration->rights, offset, size_bytes, needed);
      !status.ok())
    return status;
  copy(*registration);
  return {};
}

void InprocConnection::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
                           Completion &completion) {
  completion.on_complete(transfer(remote, offset, local.size(), Rights::kRemoteRead, [&](const Registration &from) {
    nessie::copy_bytes(local.data(), from.bytes.data() + offset, local.size());
  }));
}

void InprocConnection::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local,
                           Completion &completion) {
  completion.on_complete(transfer(remote, offset, local.size(), Rights::kRemoteWrite, [&](const Registration &to) {
    nessie::copy_bytes(to.bytes.data() + offset, local.data(), local.size());
  }));
}

std::optional<Result<std::uint64_t>> InprocConnection::try_atomic(const RemoteBuffer &remote, std::uint64_t offset,
                                                                  const AtomicOperation &operation) {
  Result<std::uint64_t> previous = std::uint64_t{0};
  auto status = transfer(remote, 0, 0, Rights::kRemoteAtomic, [&](const Registration &registration) {
    previous = execute_atomic({registration.bytes, registration.rights, -1}, offset, operation);
  });
  return status.ok() ? std::move(previous) : Result<std::uint64_t>(status.error());
}

Status InprocConnection::give_descriptor(std::uint64_t key, int descriptor) {
  if (!open_) return Error{Code::kPeerLost, "the peer has left", nessie::Scope::kPeer};
  auto copy = nessie::duplicate(descriptor);
  if (!copy) return Error{Code::kIo, "a descriptor cannot be given", nessie::Scope::kOperation, errno};
  link_->given[static_cast<std::size_t>(other())].add(key, std::move(copy));
  return {};
}

Result<int> InprocConnection::take_descriptor(std::uint64_t key) {
  return link_->given[static_cast<std::size_t>(side_)].take(key);
}

Result<pid_t> InprocConnection::process() const { return ::getpid(); }

void InprocConnection::close() {
  auto mine = static_cast<std::size_t>(side_);
  if (link_->ends[mine] != this) return;
  link_->ends[mine] = nullptr;
  if (open_) link_->ports[static_cast<std::size_t>(other())]->post({Item::Kind::kEnd, link_, other(), {}});
  open_ = false;
}

}  // namespace nnti::inproc
