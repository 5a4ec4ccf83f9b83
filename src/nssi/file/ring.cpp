// SPDX-License-Identifier: BSD-3-Clause
// File operations by io_uring: whoever has one puts it into the ring; a thread takes the results out.
#include <nssi/file/backend.hpp>

#include <liburing.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

namespace nssi {

namespace {

/// How long the kernel is asked again to take what it would not take just now. The reaper, which makes room for it by
/// what it takes out, asks for less long.
constexpr std::chrono::milliseconds kPatience{1000}, kReapersPatience{10};
constexpr std::chrono::microseconds kPause{50};

bool may_pass(int error) { return error == -EAGAIN || error == -EBUSY || error == -EINTR; }

class Ring final : public FileIo::Backend {
 public:
  explicit Ring(const io_uring &ring, unsigned depth)
      : ring_(ring), free_(depth), depth_(depth), reaper_([this] { reap(); }) {}
  ~Ring() override {
    while (!end()) std::this_thread::sleep_for(kPause);
    reaper_.join();
    ::io_uring_queue_exit(&ring_);
  }
  void submit(std::shared_ptr<FileOperation> operation) override {
    std::unique_lock lock(mutex_);
    waiting_.push_back(std::move(operation));
    put_waiting(lock, kPatience);
  }
  void cancel(const std::shared_ptr<FileOperation> &operation) override {
    std::unique_lock lock(mutex_);
    if (std::erase(waiting_, operation) != 0) {
      lock.unlock();
      return operation->finish(-ECANCELED);
    }
    (void)put(lock, kPatience, [&](io_uring_sqe &entry) {
      ::io_uring_prep_cancel(&entry, operation.get(), 0);
      ::io_uring_sqe_set_data(&entry, nullptr);
    });
  }
  bool is_io_uring() const override { return true; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// Puts what there are places for into the ring. What the kernel does not take ends with that.
  void put_waiting(Lock &lock, std::chrono::milliseconds patience) {
    while (free_ != 0 && !waiting_.empty()) {
      const auto operation = std::move(waiting_.front());
      waiting_.pop_front();
      --free_;
      operation->held = operation;
      const int error = put(lock, patience, [&](io_uring_sqe &entry) {
        prepare(entry, *operation);
        ::io_uring_sqe_set_data(&entry, operation.get());
      });
      if (error == 0) continue;
      operation->held.reset();
      ++free_;
      lock.unlock();
      operation->finish(error);
      lock.lock();
    }
  }
  /// Has the kernel take an entry, or gives -errno. Entries that it has not taken stay in the ring as such that do
  /// nothing: there is no other way to take them back. Others have their turn while it is asked again.
  template <class Prepare> int put(Lock &lock, std::chrono::milliseconds patience, const Prepare &prepare) {
    io_uring_sqe *entry = nullptr;
    unsigned place = 0;
    for (const auto until = Deadline::in(patience);;) {
      if (entry == nullptr && (entry = ::io_uring_get_sqe(&ring_)) != nullptr) {
        prepare(*entry);
        place = ring_.sq.sqe_tail;
      }
      const int error = ::io_uring_submit(&ring_);
      if (entry != nullptr && !is_left(place)) return 0;
      const bool passes = error >= 0 || may_pass(error);
      if (!passes || until.passed()) {
        if (entry != nullptr) prepare_nothing(*entry);
        return passes ? -EBUSY : error;
      }
      lock.unlock();
      std::this_thread::sleep_for(kPause);
      lock.lock();
    }
  }
  /// Whether the kernel has not taken the entry after which the queue's tail was there.
  bool is_left(unsigned place) const { return ::io_uring_sq_ready(&ring_) > ring_.sq.sqe_tail - place; }
  static void prepare_nothing(io_uring_sqe &entry) {
    ::io_uring_prep_nop(&entry);
    ::io_uring_sqe_set_data(&entry, nullptr);
  }
  static void prepare(io_uring_sqe &entry, const FileOperation &operation) {
    const auto size = static_cast<unsigned>(operation.memory.size());
    switch (operation.kind) {
      case FileOperation::Kind::kRead:
        return ::io_uring_prep_read(&entry, operation.file, operation.memory.data(), size, operation.offset);
      case FileOperation::Kind::kWrite:
        return ::io_uring_prep_write(&entry, operation.file, operation.memory.data(), size, operation.offset);
      case FileOperation::Kind::kSync: return ::io_uring_prep_fsync(&entry, operation.file, IORING_FSYNC_DATASYNC);
    }
  }
  /// The reaper ends with the last operation, and hears of it.
  bool end() {
    std::unique_lock lock(mutex_);
    ends_ = true;
    return put(lock, kPatience, prepare_nothing) == 0;
  }
  bool is_over() {
    std::lock_guard lock(mutex_);
    return ends_ && free_ == depth_;
  }
  void reap() {
    while (!is_over()) {
      io_uring_cqe *result = nullptr;
      if (::io_uring_wait_cqe(&ring_, &result) < 0) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      auto *operation = static_cast<FileOperation *>(::io_uring_cqe_get_data(result));
      const long outcome = result->res;
      ::io_uring_cqe_seen(&ring_, result);
      if (operation != nullptr) take(*operation, outcome);
    }
  }
  void take(FileOperation &operation, long outcome) {
    std::shared_ptr<FileOperation> held;
    {
      std::unique_lock lock(mutex_);
      held = std::move(operation.held);
      ++free_;
      put_waiting(lock, kReapersPatience);
    }
    held->finish(outcome);
  }

  io_uring ring_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<FileOperation>> waiting_;  ///< for a place in the ring
  unsigned free_;                                       ///< places
  const unsigned depth_;
  bool ends_ = false;
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
