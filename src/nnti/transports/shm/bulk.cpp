// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/shm/bulk.hpp"

#include "nnti/transport/registration_check.hpp"
#include "nnti/transports/shm/table.hpp"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace nnti::shm {
namespace {

Error cma_error(int cause) {
  switch (cause) {
    case ESRCH: return {Code::kPeerLost, "the peer's process is gone", nessie::Scope::kPeer, cause};
    case EPERM:
    case ENOSYS:
    case EACCES:
      return {Code::kUnsupported,
              fmt::format("the kernel forbids cross-memory attach ({}); see ptrace_scope, seccomp, namespaces",
                          std::strerror(cause)),
              nessie::Scope::kOperation, cause};
    case ENOMEM:
      return {Code::kNoMemory, "the kernel has no memory for the transfer", nessie::Scope::kOperation, cause};
    default:
      return {Code::kIo,
              fmt::format("the registered memory cannot be reached in the peer ({}); its owner must keep it mapped",
                          std::strerror(cause)),
              nessie::Scope::kOperation, cause};
  }
}

using CmaCall = ssize_t (*)(pid_t, const iovec *, unsigned long, const iovec *, unsigned long, unsigned long);

/// A call may move less than asked for; the next one then says why, or goes on.
Status cma_move(CmaCall call, pid_t process, std::uint64_t address, std::byte *local, std::size_t size_bytes) {
  while (size_bytes != 0) {
    iovec here{local, size_bytes}, there{reinterpret_cast<void *>(address), size_bytes};
    auto moved = call(process, &here, 1, &there, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return cma_error(moved < 0 ? errno : EFAULT);
    local += moved;
    address += static_cast<std::uint64_t>(moved);
    size_bytes -= static_cast<std::size_t>(moved);
  }
  return {};
}

}  // namespace

Status cma_read(pid_t process, std::uint64_t address, std::span<std::byte> local) {
  return cma_move(::process_vm_readv, process, address, local.data(), local.size());
}

Status cma_write(pid_t process, std::uint64_t address, std::span<const std::byte> local) {
  return cma_move(::process_vm_writev, process, address, const_cast<std::byte *>(local.data()), local.size());
}

Status cma_probe(pid_t process, std::uint64_t probe_address, std::uint64_t probe_value) {
  std::uint64_t value = 0;
  if (process <= 0) return Error{Code::kUnsupported, "the peer lives in another pid namespace"};
  auto read = cma_read(process, probe_address, std::as_writable_bytes(std::span(&value, 1)));
  if (!read.ok() && read.code() == Code::kUnsupported) return read;
  if (!read.ok() || value != probe_value)
    return Error{Code::kUnsupported, "the peer's process cannot be identified from here"};
  return {};
}

void PeerMappings::add(const EndpointTable &table, std::uint32_t slot, std::uint64_t key, int fd) {
  auto registered = look_up(table, slot, key);
  if (!registered || !registered->is_shared || registered->size_bytes == 0) return;
  bool may_write =
      has_right(registered->rights, Rights::kRemoteWrite) || has_right(registered->rights, Rights::kRemoteAtomic);
  auto mapping = map_shared_memory(fd, registered->size_bytes, may_write ? Access::kReadWrite : Access::kRead);
  if (mapping.ok())
    mappings_.insert_or_assign(slot, Entry{key, may_write, std::make_shared<Mapping>(std::move(*mapping))});
}

const std::shared_ptr<Mapping> *PeerMappings::find(std::uint32_t slot, std::uint64_t key, std::uint64_t size_bytes,
                                                   bool to_write) const {
  if (last_ == nullptr || last_->first != slot) {
    auto found = mappings_.find(slot);
    if (found == mappings_.end()) return nullptr;
    last_ = &*found;
  }
  const auto &entry = last_->second;
  bool fits = entry.key == key && entry.mapping->bytes().size() >= size_bytes && (entry.writable || !to_write);
  return fits ? &entry.mapping : nullptr;
}

void PeerMappings::sweep(const EndpointTable &table) {
  last_ = nullptr;
  std::erase_if(mappings_, [&](const auto &entry) {
    return table.entries[entry.first].key.load(std::memory_order_relaxed) != entry.second.key;
  });
}

}  // namespace nnti::shm
