// SPDX-License-Identifier: BSD-3-Clause
// Design notes. A request belongs to the user-level thread that it arrived on; only there data may be moved and a
// result sent. So that thread stays, and does these jobs for the program's thread that runs the stub, which waits for
// each; for no other thread. If the program runs the stub on another user-level thread, that of a later request, the
// request becomes that one's, which then waits for nobody: the two share a thread of the system. When the transport is
// being closed, events wait no longer: a request that no thread has taken yet is dropped then, and one that runs is
// waited for.
#include <compat/trios/nssi_handover.hpp>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace nssi::trios {
namespace {

/// Between the two threads of a request.
class Relay {
 public:
  explicit Relay(const paper::Incoming &request) : request_(request), signal_(request.id) {}
  const paper::Incoming &request() const { return request_; }

  // --- the program's thread -------------------------------------------------------------------------------------------
  int run(const std::function<int()> &job) {
    std::unique_lock lock(mutex_);
    job_ = &job;
    signal();
    done_.wait(lock, [&] { return job_ == nullptr; });
    return code_ == NSSI_OK ? code_ : paper::fail(code_, sentence_.c_str());
  }
  /// By the thread that calls this, which runs the stub.
  void take() {
    std::lock_guard lock(mutex_);
    is_taken_ = true;
    if (!paper::adopt(request_.id)) runner_ = std::this_thread::get_id();
  }
  /// Any thread: whether it is the one that runs the stub.
  bool is_run_here() {
    std::lock_guard lock(mutex_);
    return runner_ == std::this_thread::get_id() && !signal_.in_user_level_thread();
  }
  void finish(int rc) {
    std::lock_guard lock(mutex_);
    rc_ = rc;
    is_finished_ = true;
    signal();
  }

  // --- the request's --------------------------------------------------------------------------------------------------
  /// False: the transport is being closed, and nobody has taken the request.
  bool serve() {
    for (std::unique_lock lock(mutex_); !is_finished_;) {
      if (job_ != nullptr) {
        do_job(lock);
        continue;
      }
      signal_.renew();
      lock.unlock();
      const bool may_wait = signal_.wait();
      lock.lock();
      if (may_wait) continue;
      if (!is_taken_) return false;
      posted_.wait(lock, [&] { return job_ != nullptr || is_finished_; });
    }
    return true;
  }
  int rc() const { return rc_; }

 private:
  void signal() {
    signal_.set();
    posted_.notify_one();
  }
  void do_job(std::unique_lock<std::mutex> &lock) {
    lock.unlock();
    const int code = (*job_)();
    const std::string sentence = paper::last_error();
    lock.lock();
    code_ = code;
    sentence_ = sentence;
    job_ = nullptr;
    done_.notify_one();
  }

  const paper::Incoming request_;
  paper::Signal signal_;
  std::mutex mutex_;
  std::condition_variable posted_, done_;
  const std::function<int()> *job_ = nullptr;
  bool is_taken_ = false, is_finished_ = false;
  int code_ = NSSI_OK, rc_ = NSSI_OK;
  std::string sentence_;
  std::thread::id runner_;  ///< none: it is not taken, or a user-level thread runs the stub
};

std::mutex mutex;
std::map<nssi_svc_rpc_request *, Relay *> waiting;  ///< for a thread of the program's
std::map<unsigned long, Relay *> relays;

/// The relay of a request, which nobody else can take any more; null: it was taken, or dropped.
Relay *take(nssi_svc_rpc_request *request) {
  std::lock_guard lock(mutex);
  const auto it = waiting.find(request);
  if (it == waiting.end()) return nullptr;
  auto *relay = it->second;
  relay->take();
  waiting.erase(it);
  delete request;
  return relay;
}

/// That of the stub which the calling thread runs; it stays until the stub has returned. Null: that of no other either.
Relay *find(unsigned long request) {
  std::lock_guard lock(mutex);
  const auto it = relays.find(request);
  return it != relays.end() && it->second->is_run_here() ? it->second : nullptr;
}

}  // namespace

int hand_over(std::unique_ptr<nssi_svc_rpc_request> described, Process process, const paper::Incoming &incoming) {
  Relay relay(incoming);
  auto *request = described.release();  // whoever takes it from `waiting` deletes it
  {
    std::lock_guard lock(mutex);
    waiting[request] = &relay;
    relays[incoming.id] = &relay;
  }
  const int refusal = process(request);
  bool is_dropped = refusal != NSSI_OK && take(request) != nullptr;
  while (!is_dropped && !relay.serve()) is_dropped = take(request) != nullptr;
  std::lock_guard lock(mutex);
  relays.erase(incoming.id);
  return is_dropped ? refusal : relay.rc();
}

int run_handed(nssi_svc_rpc_request *request, int (*stub)(const paper::Incoming &)) {
  auto *relay = request != nullptr ? take(request) : nullptr;
  if (relay == nullptr) return paper::fail(NSSI_ENOENT, "there is no such request: it was processed, or given up");
  const int rc = stub(relay->request());
  relay->finish(rc);
  return rc;
}

int on_its_thread(unsigned long request, const std::function<int()> &move) {
  auto *relay = paper::is_mine(request) ? nullptr : find(request);
  return relay != nullptr ? relay->run(move) : move();
}

}  // namespace nssi::trios
