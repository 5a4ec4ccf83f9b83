// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/registration_cache/witness_test.hpp"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

namespace nnti::test {

namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Scope;

// --- marks ------------------------------------------------------------------------------------------------------------

std::atomic<std::uint64_t> next_mark{1};

/// The first whole page of `memory`; as many follow as fit.
std::span<std::byte> whole_pages(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto first = pages_of(begin + page_bytes() - 1, 1).begin;
  const auto last = (begin + memory.size()) & ~(page_bytes() - 1);
  if (first >= last) return {};
  return {reinterpret_cast<std::byte *>(first), last - first};
}

class MarkedRegistration final : public Registration {
 public:
  /// By way of the kernel, which takes no offence at pages that another thread unmaps meanwhile, nor at red zones.
  explicit MarkedRegistration(AddressRange range) : range_(range), marks_(range.size_bytes() / page_bytes()) {
    const int copy = static_cast<int>(::syscall(SYS_memfd_create, "marks", 0));
    for (std::size_t i = 0; i < marks_.size(); ++i)
      if (::syscall(SYS_pwrite64, copy, range.begin + i * page_bytes(), sizeof marks_[i], 0) > 0)
        (void)!::pread(copy, &marks_[i], sizeof marks_[i], 0);
    ::close(copy);
  }
  std::uint64_t mark_at(std::uintptr_t address) const { return marks_[(address - range_.begin) / page_bytes()]; }

 private:
  AddressRange range_;
  std::vector<std::uint64_t> marks_;
};

class MarkingWitness final : public Witness {
 public:
  explicit MarkingWitness(bool follows) : follows_(follows) {}
  bool follows_mapping() const override { return follows_; }
  Result<std::unique_ptr<Registration>> register_pages(AddressRange range, std::uint64_t) override {
    return std::unique_ptr<Registration>(std::make_unique<MarkedRegistration>(range));
  }
  void mark(std::span<std::byte> memory) override {
    for (auto pages = whole_pages(memory); !pages.empty(); pages = pages.subspan(page_bytes())) {
      std::uint64_t mark = 0;
      std::memcpy(&mark, pages.data(), sizeof mark);
      if (mark == 0) mark = next_mark++;  // otherwise it is an old page, perhaps at a new place
      std::memcpy(pages.data(), &mark, sizeof mark);
    }
  }
  bool agrees(Registration &registration, std::span<std::byte> memory) override {
    const auto &marked = static_cast<MarkedRegistration &>(registration);
    for (auto pages = whole_pages(memory); !pages.empty(); pages = pages.subspan(page_bytes())) {
      std::uint64_t mark = 0;
      std::memcpy(&mark, pages.data(), sizeof mark);
      if (mark == 0 || marked.mark_at(reinterpret_cast<std::uintptr_t>(pages.data())) != mark) return false;
    }
    return true;
  }
  bool sees_parts_of_pages() const override { return false; }

 private:
  bool follows_;
};

// --- io_uring ---------------------------------------------------------------------------------------------------------

constexpr unsigned kSlots = 4096;
constexpr std::size_t kLargestCheck = 1 << 16;

/// One ring with a table of fixed buffers, one operation at a time.
class Ring {
 public:
  ~Ring() {
    if (queue_ != MAP_FAILED) ::munmap(queue_, queue_bytes_);
    if (entries_ != MAP_FAILED) ::munmap(entries_, sizeof(io_uring_sqe));
    if (sink_ >= 0) ::close(sink_);
    if (fd_ >= 0) ::close(fd_);
  }

  bool open() {
    io_uring_params setup{};
    fd_ = static_cast<int>(::syscall(SYS_io_uring_setup, 1, &setup));
    sink_ = static_cast<int>(::syscall(SYS_memfd_create, "sink", 0));
    if (fd_ < 0 || sink_ < 0 || !(setup.features & IORING_FEAT_SINGLE_MMAP)) return false;
    queue_bytes_ = std::max(setup.sq_off.array + setup.sq_entries * sizeof(unsigned),
                            setup.cq_off.cqes + setup.cq_entries * sizeof(io_uring_cqe));
    queue_ = ::mmap(nullptr, queue_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, IORING_OFF_SQ_RING);
    entries_ = ::mmap(nullptr, sizeof(io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, IORING_OFF_SQES);
    if (queue_ == MAP_FAILED || entries_ == MAP_FAILED) return false;
    offsets_ = setup;
    io_uring_rsrc_register table{};
    table.nr = kSlots;
    table.flags = IORING_RSRC_REGISTER_SPARSE;
    return ::syscall(SYS_io_uring_register, fd_, IORING_REGISTER_BUFFERS2, &table, sizeof table) == 0;
  }

  /// 0, or errno.
  int set_slot(unsigned slot, iovec buffer) const {
    std::uint64_t tag = 0;
    io_uring_rsrc_update2 update{};
    update.offset = slot;
    update.data = reinterpret_cast<std::uint64_t>(&buffer);
    update.tags = reinterpret_cast<std::uint64_t>(&tag);
    update.nr = 1;
    const auto done = ::syscall(SYS_io_uring_register, fd_, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof update);
    return done == 1 ? 0 : errno;
  }

  /// Reads what the fixed buffer of `slot` holds at an address of it.
  bool read(unsigned slot, const void *address, std::span<std::byte> out) const {
    auto *entry = static_cast<io_uring_sqe *>(entries_);
    *entry = {};
    entry->opcode = IORING_OP_WRITE_FIXED;
    entry->fd = sink_;
    entry->addr = reinterpret_cast<std::uint64_t>(address);
    entry->len = static_cast<unsigned>(out.size());
    entry->buf_index = static_cast<std::uint16_t>(slot);
    *at<unsigned>(offsets_.sq_off.array) = 0;
    std::atomic_ref(*at<unsigned>(offsets_.sq_off.tail)).fetch_add(1);
    if (::syscall(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) != 1) return false;
    auto *head = at<unsigned>(offsets_.cq_off.head);
    const auto mask = *at<unsigned>(offsets_.cq_off.ring_mask);
    const auto result = at<io_uring_cqe>(offsets_.cq_off.cqes)[*head & mask].res;
    std::atomic_ref(*head).fetch_add(1);
    return result == static_cast<int>(out.size()) && ::pread(sink_, out.data(), out.size(), 0) == result;
  }

 private:
  template <class T> T *at(unsigned offset) const {
    return reinterpret_cast<T *>(static_cast<std::byte *>(queue_) + offset);
  }
  int fd_ = -1, sink_ = -1;
  void *queue_ = MAP_FAILED, *entries_ = MAP_FAILED;
  std::size_t queue_bytes_ = 0;
  io_uring_params offsets_{};
};

class PinningWitness final : public Witness {
 public:
  explicit PinningWitness(bool follows) : follows_(follows) {
    for (unsigned slot = 0; slot < kSlots; ++slot) free_.push_back(slot);
  }
  bool open() { return ring_.open(); }
  bool follows_mapping() const override { return follows_; }

  Result<std::unique_ptr<Registration>> register_pages(AddressRange range, std::uint64_t) override {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return Error{Code::kNoMemory, "all slots are taken", Scope::kOperation, 0};
    const auto slot = free_.back();
    const int failed = ring_.set_slot(slot, {reinterpret_cast<void *>(range.begin), range.size_bytes()});
    if (failed != 0)
      return Error{failed == ENOMEM ? Code::kNoMemory : Code::kIo, std::strerror(failed), Scope::kOperation, failed};
    free_.pop_back();
    return std::unique_ptr<Registration>(std::make_unique<Pinned>(*this, slot));
  }

  void mark(std::span<std::byte>) override {}
  bool sees_parts_of_pages() const override { return true; }

  bool agrees(Registration &registration, std::span<std::byte> memory) override {
    const auto part = memory.first(std::min(memory.size(), kLargestCheck));
    write_something(part);
    std::vector<std::byte> seen(part.size());
    std::lock_guard lock(mutex_);
    return ring_.read(static_cast<Pinned &>(registration).slot, part.data(), seen) && std::ranges::equal(seen, part);
  }

 private:
  struct Pinned final : Registration {
    Pinned(PinningWitness &owner, unsigned slot) : owner(owner), slot(slot) {}
    ~Pinned() override {
      std::lock_guard lock(owner.mutex_);
      owner.ring_.set_slot(slot, {});
      owner.free_.push_back(slot);
    }
    PinningWitness &owner;
    const unsigned slot;
  };

  /// What was never there before, all over the memory.
  static void write_something(std::span<std::byte> memory) {
    auto value = 0x9e3779b97f4a7c15 * next_mark++;
    for (auto &byte : memory) {
      value = value * 6364136223846793005 + 1442695040888963407;
      byte = static_cast<std::byte>(value >> 56);
    }
  }

  bool follows_;
  std::mutex mutex_;
  Ring ring_;
  std::vector<unsigned> free_;
};

}  // namespace

std::unique_ptr<Witness> make_marking_witness(bool follows_mapping) {
  return std::make_unique<MarkingWitness>(follows_mapping);
}

std::unique_ptr<Witness> make_pinning_witness(std::string &reason, bool follows_mapping) {
  auto witness = std::make_unique<PinningWitness>(follows_mapping);
  if (witness->open()) return witness;
  reason = std::string("io_uring with a table of buffers is not to be had here: ") + std::strerror(errno);
  return nullptr;
}

}  // namespace nnti::test
