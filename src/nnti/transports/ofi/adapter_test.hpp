// SPDX-License-Identifier: BSD-3-Clause
// A network adapter in front of libfabric's, as strict as those are that need registered memory: it pins the pages of
// each local registration, as a real one does, and looks at every transfer that is posted: whether the registration
// that it names exists, covers the memory, and reaches what is mapped there now; and whether it lives until the
// completion.
#pragma once

#include "nnti/registration_cache/witness_test.hpp"
#include "nnti/transports/ofi/domain.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace nnti::ofi::test {

class Adapter {
 public:
  /// What was seen since the adapter, or since reset().
  struct Seen {
    std::size_t local_made = 0;        ///< registrations for transfers of our own
    std::set<std::uint64_t> accesses;  ///< asked for with these
    std::size_t exposed_made = 0;      ///< registrations for peers
    std::set<std::uint64_t> keys;      ///< of the latter
    std::size_t transfers = 0;         ///< posted
    std::size_t frames = 0;            ///< sent or received
    std::size_t unregistered = 0;      ///< transfers and frames of which no registration covers the memory
    std::size_t stale = 0;             ///< transfers whose registration reaches other memory
    std::size_t ended_too_early = 0;   ///< deregistered in the middle of a transfer
  };

  /// In front of libfabric for the rest of the process's life. Null, with the reason: cannot be.
  static Adapter *install(std::string &reason);
  /// In a forked child: pages that the child pins are its own.
  static Adapter *install_in_child(std::string &reason);

  Seen seen();
  void reset();
  std::size_t local_alive();
  std::size_t exposed_alive();

 private:
  struct Known {
    AddressRange memory;  ///< bytes, not pages
    bool exposed = false;
    std::size_t in_flight = 0;
    void *descriptor = nullptr;
    std::unique_ptr<Registration> pinned;  ///< of those that transfers name
  };

  static int open_fabric(fi_fabric_attr *attributes, fid_fabric **fabric, void *context);
  static int open_domain(fid_fabric *fabric, fi_info *info, fid_domain **domain, void *context);
  static int open_endpoint(fid_domain *domain, fi_info *info, fid_ep **endpoint, void *context);
  static int open_queue(fid_domain *domain, fi_cq_attr *attributes, fid_cq **queue, void *context);
  static int register_region(fid *domain, const void *memory, std::size_t size, std::uint64_t access,
                             std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr **mr, void *context);
  static int close_region(fid *mr);
  static ssize_t send(fid_ep *endpoint, const void *memory, std::size_t size, void *descriptor, fi_addr_t to,
                      void *context);
  static ssize_t receive(fid_ep *endpoint, void *memory, std::size_t size, void *descriptor, fi_addr_t from,
                         void *context);
  static ssize_t read_message(fid_ep *endpoint, const fi_msg_rma *message, std::uint64_t flags);
  static ssize_t write_message(fid_ep *endpoint, const fi_msg_rma *message, std::uint64_t flags);
  static ssize_t read_queue(fid_cq *queue, void *entries, std::size_t count);
  static ssize_t read_queue_error(fid_cq *queue, fi_cq_err_entry *entry, std::uint64_t flags);

  void note_registration(fid_mr &mr, std::span<std::byte> memory, std::uint64_t access);
  void note_end(fid &mr);
  void note_frame(const void *memory, std::size_t size, void *descriptor);
  /// Before the transfer is posted: afterwards its completion may come at any time.
  void note_transfer(const fi_msg_rma &message);
  void forget_transfer(const fi_msg_rma &message);
  void note_completion(void *context);
  Known *find(void *descriptor, const void *memory, std::size_t size);
  bool reaches(Known &known, std::span<std::byte> memory);

  std::mutex mutex_;
  std::unique_ptr<nnti::test::Witness> witness_;
  std::map<fid *, Known> known_;
  std::map<void *, Known *> in_flight_;  ///< by the context of a transfer
  Seen seen_;
};

}  // namespace nnti::ofi::test
