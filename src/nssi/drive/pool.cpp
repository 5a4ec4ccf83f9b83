// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/drive/pool.hpp>

#include <pthread.h>
#include <sched.h>

#include <fmt/format.h>

#include <base/thread.hpp>

#include <charconv>
#include <system_error>

namespace nssi {

namespace {

/// How long a thread without work looks for some before it sleeps: a wake-up on another core takes as long.
constexpr std::chrono::microseconds kSpin{20};
constexpr int kLooksBetweenClocks = 64;
constexpr int kMostCores = 1024;
constexpr std::size_t kMostThreads = 1024;

thread_local Worker *this_worker = nullptr;

std::optional<int> number(std::string_view &text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || value < 0 || value >= kMostCores) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool skip(std::string_view &text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

/// The thread may run on these cores only.
Status confine(pthread_t id, const std::vector<int> &cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  cpu_set_t taken;  // without those that the process may not use
  if (::pthread_setaffinity_np(id, sizeof set, &set) == 0 && ::pthread_getaffinity_np(id, sizeof taken, &taken) == 0 &&
      CPU_EQUAL(&set, &taken))
    return {};
  return Error{Code::kInvalidArgument,
               fmt::format("this process may not use all of the cores {}; `taskset -cp {}` says which it may",
                           fmt::join(cores, ","), ::getpid())};
}

/// Whether the calling thread could; afterwards it runs where it did.
Status try_to_confine(const std::vector<int> &cores) {
  cpu_set_t before;
  const bool is_known = ::pthread_getaffinity_np(::pthread_self(), sizeof before, &before) == 0;
  auto status = confine(::pthread_self(), cores);
  if (is_known) ::pthread_setaffinity_np(::pthread_self(), sizeof before, &before);
  return status;
}

}  // namespace

Result<std::vector<int>> parse_cores(std::string_view text) {
  const Error bad{Code::kInvalidArgument, fmt::format("'{}' is no list of cores, such as 0-3,8", text.substr(0, 80))};
  std::vector<int> cores;
  do {
    const auto first = number(text);
    if (!first) return bad;
    const auto last = skip(text, '-') ? number(text) : first;
    if (!last || *last < *first) return bad;
    for (int core = *first; core <= *last; ++core) cores.push_back(core);
  } while (skip(text, ','));
  if (!text.empty()) return bad;
  return cores;
}

Status check(const PoolOptions &options) {
  if (options.threads == 0 || options.threads > kMostThreads)
    return Error{Code::kInvalidArgument, fmt::format("the pool {} is to have {} threads; expected 1 to {}",
                                                     options.name, options.threads, kMostThreads)};
  if (options.cores.empty()) return {};
  const auto cores = parse_cores(options.cores);
  auto status = cores.ok() ? try_to_confine(*cores) : cores.error();
  if (status.ok()) return {};
  return Error{status.code(), fmt::format("the pool {}: {}", options.name, status.error().message)};
}

// --- Worker -----------------------------------------------------------------------------------------------------------

Worker::Worker(Pool &pool, std::size_t stack_bytes, std::size_t max_fibers)
    : pool_(pool), scheduler_(stack_bytes, max_fibers, {}, {}, this) {}

/// Not inlined: a fiber of the driver's may go on in another thread, where a remembered address would be wrong.
__attribute__((noinline)) Worker *Worker::current() { return this_worker; }

Strand *Worker::current_strand() {
  auto *worker = current();
  return worker != nullptr ? worker->scheduler_.current() : nullptr;
}

void Worker::wake(Strand *strand) {
  if (current() == this) return scheduler_.wake(strand);
  std::lock_guard lock(pool_.mutex_);
  woken_.push_back(strand);
  has_news_.store(true, std::memory_order_release);
  if (sleeps_) called_.notify_one();
}

void Worker::run() {
  this_worker = this;
  const auto turn = [this] {
    const bool has_collected = collect();
    return scheduler_.run_ready() || has_collected;
  };
  do {
    while (turn()) scheduler_.expire();
  } while (wait());
}

/// Fibers that were woken, and, if there is nothing else to do, new work. False: there was nothing.
bool Worker::collect() {
  const bool wants_work =
      !scheduler_.has_ready() && scheduler_.can_start() && pool_.queued_.load(std::memory_order_acquire) != 0;
  if (!wants_work && !has_news_.load(std::memory_order_acquire)) return false;
  std::vector<Strand *> woken;
  std::optional<decltype(pool_.queue_)::Taken> work;
  bool all = false;
  {
    std::lock_guard lock(pool_.mutex_);
    woken.swap(woken_);
    all = std::exchange(wake_all_, false);
    has_news_.store(false, std::memory_order_relaxed);
    if (wants_work && !pool_.queue_.empty()) {
      work = pool_.queue_.take();
      --pool_.queued_;
    }
  }
  for (auto *strand : woken) scheduler_.wake(strand);
  if (all) scheduler_.wake_all();
  if (work) scheduler_.spawn(std::move(work->one), work->priority, work->caller);
  return true;
}

/// Until there may be something to do. False: the pool ends.
bool Worker::wait() {
  const auto news = [&] {
    return has_news_.load(std::memory_order_acquire) || (scheduler_.can_start() && pool_.queued_.load() != 0);
  };
  const auto asleep_at = Deadline::in(kSpin);
  for (int looks = 1; !news(); ++looks) {
    nessie::relax();
    if (looks % kLooksBetweenClocks == 0 && asleep_at.passed()) break;
  }
  scheduler_.expire();
  std::unique_lock lock(pool_.mutex_);
  const auto until = scheduler_.next_expiry();
  const auto go_on = [&] {  // who was called for work that another thread has begun sleeps on
    sleeps_ = !news() && !pool_.stop_;
    takes_work_ = sleeps_ && scheduler_.can_start();
    return !sleeps_;
  };
  if (until.is_never())
    called_.wait(lock, go_on);
  else if (!until.passed())
    called_.wait_until(lock, until.when(), go_on);
  sleeps_ = takes_work_ = false;
  const bool goes_on = !pool_.stop_ || news();
  lock.unlock();
  scheduler_.expire();
  return goes_on;
}

// --- Pool -------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Pool>> Pool::start(const PoolOptions &options, std::size_t stack_bytes, std::size_t max_fibers) {
  if (auto status = check(options); !status.ok()) return status.error();
  std::unique_ptr<Pool> pool(new Pool(options));
  const auto cores = options.cores.empty() ? std::vector<int>() : *parse_cores(options.cores);
  try {
    for (std::size_t i = 0; i < options.threads; ++i) {
      auto &worker = *pool->workers_.emplace_back(std::make_unique<Worker>(*pool, stack_bytes, max_fibers));
      worker.thread_ = std::thread([&worker] { worker.run(); });
      (void)::pthread_setname_np(worker.thread_.native_handle(), options.name.substr(0, 15).c_str());
      if (cores.empty()) continue;
      if (auto status = confine(worker.thread_.native_handle(), cores); !status.ok()) return status.error();
    }
  } catch (const std::system_error &e) {
    return Error{Code::kNoMemory, fmt::format("no thread could be made for the pool {}: {}", options.name, e.what())};
  }
  return pool;
}

Pool::~Pool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    for (auto &worker : workers_) worker->called_.notify_one();
  }
  for (auto &worker : workers_)
    if (worker->thread_.joinable()) worker->thread_.join();
}

void Pool::submit(std::function<void()> work, Priority priority, PeerId caller) {
  ++unfinished_;
  if (in_order_) priority = Priority::kNormal, caller = {};
  std::lock_guard lock(mutex_);
  auto counted = [this, work = std::move(work)] {
    work();
    --unfinished_;
  };
  queue_.push(std::move(counted), priority, caller);
  ++queued_;
  for (auto &worker : workers_)
    if (std::exchange(worker->takes_work_, false)) return worker->called_.notify_one();  // once is enough
}

void Pool::wake_all() {
  std::lock_guard lock(mutex_);
  for (auto &worker : workers_) {
    worker->wake_all_ = true;
    worker->has_news_.store(true, std::memory_order_release);
    worker->called_.notify_one();
  }
}

}  // namespace nssi
