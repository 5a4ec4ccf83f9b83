// SPDX-License-Identifier: BSD-3-Clause
// File operations by threads, where there is no io_uring.
#include <nssi/file/backend.hpp>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace nssi {

namespace {

class FileThreads final : public FileIo::Backend {
 public:
  explicit FileThreads(unsigned count) {
    try {
      for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
    } catch (...) {
      end();
      throw;
    }
  }
  ~FileThreads() override { end(); }
  void submit(std::shared_ptr<FileOperation> operation) override {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(operation));
    changed_.notify_one();
  }
  /// One that a thread is at goes on.
  void cancel(const std::shared_ptr<FileOperation> &operation) override {
    std::unique_lock lock(mutex_);
    const bool has_begun = std::erase(queue_, operation) == 0;
    lock.unlock();
    if (!has_begun) operation->finish(-ECANCELED);
  }
  bool is_io_uring() const override { return false; }

 private:
  void run() {
    for (std::unique_lock lock(mutex_);; lock.lock()) {
      changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto operation = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      operation->finish(operation->carry_out());
      operation.reset();
    }
  }
  void end() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (auto &thread : threads_) thread.join();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<FileOperation>> queue_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<FileIo::Backend> make_file_threads(unsigned threads) { return std::make_unique<FileThreads>(threads); }

}  // namespace nssi
