// SPDX-License-Identifier: BSD-3-Clause
// File operations by io_uring: whoever has one puts it into the ring; a thread takes the results out.
#include <nssi/file_backend.hpp>

#include <liburing.h>

#include <deque>
#include <mutex>
#include <thread>

namespace nssi {

namespace {

class Ring final : public FileIo::Backend {
 public:
  explicit Ring(const io_uring &ring, unsigned depth) : ring_(ring), free_(depth), reaper_([this] { reap(); }) {}
  ~Ring() override {
    submit(nullptr);
    reaper_.join();
    ::io_uring_queue_exit(&ring_);
  }
  void submit(FileOperation &operation) override { submit(&operation); }
  bool is_io_uring() const override { return true; }

 private:
  /// Null: the end.
  void submit(FileOperation *operation) {
    std::lock_guard lock(mutex_);
    if (free_ == 0) return waiting_.push_back(operation);
    --free_;
    put(operation);
  }
  /// There is room in the ring. What the kernel does not take at once, it is asked to take again.
  void put(FileOperation *operation) {
    auto *entry = ::io_uring_get_sqe(&ring_);
    prepare(*entry, operation);
    ::io_uring_sqe_set_data(entry, operation);
    while (::io_uring_submit(&ring_) < 0) std::this_thread::yield();
  }
  static void prepare(io_uring_sqe &entry, FileOperation *operation) {
    if (operation == nullptr) return ::io_uring_prep_nop(&entry);
    const auto size = static_cast<unsigned>(operation->memory.size());
    switch (operation->kind) {
      case FileOperation::Kind::kRead:
        return ::io_uring_prep_read(&entry, operation->file, operation->memory.data(), size, operation->offset);
      case FileOperation::Kind::kWrite:
        return ::io_uring_prep_write(&entry, operation->file, operation->memory.data(), size, operation->offset);
      case FileOperation::Kind::kSync: return ::io_uring_prep_fsync(&entry, operation->file, IORING_FSYNC_DATASYNC);
    }
  }
  void reap() {
    for (;;) {
      io_uring_cqe *result = nullptr;
      if (::io_uring_wait_cqe(&ring_, &result) < 0) continue;
      auto *operation = static_cast<FileOperation *>(::io_uring_cqe_get_data(result));
      const long outcome = result->res;
      ::io_uring_cqe_seen(&ring_, result);
      put_next();
      if (operation == nullptr) return;
      operation->finish(outcome);
    }
  }
  void put_next() {
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) return void(++free_);
    put(waiting_.front());
    waiting_.pop_front();
  }

  io_uring ring_;
  std::mutex mutex_;
  std::deque<FileOperation *> waiting_;  ///< for a place in the ring
  unsigned free_;                        ///< places
  std::thread reaper_;
};

/// Kernels before 5.6 have a ring, but not what is asked of it.
bool can_read_and_write(io_uring &ring) {
  auto *probe = ::io_uring_get_probe_ring(&ring);
  if (probe == nullptr) return false;
  const bool can = ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                   ::io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  ::io_uring_free_probe(probe);
  return can;
}

}  // namespace

std::unique_ptr<FileIo::Backend> make_ring(unsigned depth) {
  io_uring ring{};
  if (::io_uring_queue_init(depth, &ring, 0) != 0) return nullptr;
  if (can_read_and_write(ring)) return std::make_unique<Ring>(ring, depth);
  ::io_uring_queue_exit(&ring);
  return nullptr;
}

}  // namespace nssi
