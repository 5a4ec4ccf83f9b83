// SPDX-License-Identifier: BSD-3-Clause
// Design notes. UCX's event handler (ucm_set_event_handler) would be less code, but breaks mremap(MREMAP_FIXED) before
// UCX 1.15, and does not see dlclose and what goes through libc's syscall(): README.md compares.
//
// What the handler uses while other code of the process stands still somewhere within malloc is constant-initialized,
// never destroyed and guarded by `hub.mutex`, under which nothing is allocated and nobody else is called but listeners.
// Changes under way are linked through the stacks of the threads that make them.
#include "nnti/registration_cache/memory_events.hpp"

#include "nnti/registration_cache/code_probe.hpp"
#include "nnti/registration_cache/memory_changes.hpp"
#include "nnti/registration_cache/memory_self_test.hpp"

#include <base/log.hpp>

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

namespace nnti::memory_events {

using nessie::Code;
using nessie::Error;
using nessie::Scope;
using nessie::Status;

namespace {

/// A change between its beginning and its end, on the stack of the thread that makes it.
struct Change {
  std::array<AddressRange, 2> ranges;
  Change *next = nullptr;
};

struct Hub {
  std::mutex mutex;
  std::array<MemoryListener *, kMaxListeners> listeners{};
  Change *changes = nullptr;
};
constinit Hub hub;
constinit std::atomic<const r_debug *> loader_debug{nullptr};

/// The caller holds the mutex.
void tell(AddressRange range) noexcept {
  if (range.empty()) return;
  for (auto *listener : hub.listeners)
    if (listener != nullptr) listener->memory_changing(range);
}

void begin(Change &change) noexcept {
  std::lock_guard lock(hub.mutex);
  change.next = hub.changes;
  hub.changes = &change;
  for (const auto &range : change.ranges) tell(range);
}

void end(Change &change) noexcept {
  std::lock_guard lock(hub.mutex);
  auto **link = &hub.changes;
  while (*link != nullptr && *link != &change) link = &(*link)->next;
  if (*link != nullptr) *link = change.next;
}

/// A change of which the end is not seen.
void tell_once(AddressRange range) noexcept {
  std::lock_guard lock(hub.mutex);
  tell(range);
}

/// The loader speaks before and after; what it loads takes nobody's memory.
void on_loader_event() noexcept {
  static constinit std::atomic<int> last{r_debug::RT_CONSISTENT};
  const auto *debug = loader_debug.load(std::memory_order_relaxed);
  const int now = debug == nullptr ? static_cast<int>(r_debug::RT_DELETE) : debug->r_state;
  const int before = last.exchange(now, std::memory_order_relaxed);
  if (now == r_debug::RT_ADD || before == r_debug::RT_ADD) return;
  tell_once(kAllAddresses);
}

using SizeOfBlock = std::size_t (*)(const volatile void *);
constinit SizeOfBlock size_of_block = nullptr;  ///< a sanitizer's

void tell_of_free(const volatile void *block) noexcept {
  self_test::saw_free(reinterpret_cast<std::uintptr_t>(block));
  tell_once(pages_of(reinterpret_cast<std::uintptr_t>(block), size_of_block(block)));
}

bool tell_of(probe::SystemCall &call) noexcept {
  if (call.number == probe::kLoaderEvent) return on_loader_event(), false;
  if (self_test::answers(call)) return true;
  Change change{pages_changed_by(call)};
  if (change.ranges[0].empty() && change.ranges[1].empty()) return false;
  begin(change);
  call.result = probe::raw_call(call);
  end(change);
  return true;
}

// --- sanitizers -------------------------------------------------------------------------------------------------------

// ThreadSanitizer gives a thread up before its last calls (the stack's memory is given back), after which nothing that
// it instruments or intercepts may run. Where it is present, only threads that are known not to be at their end tell of
// changes properly; what others do is counted, and before the next registration is handed out everything is forgotten.
constinit bool has_tsan = false;
constinit pthread_key_t end_of_thread;
constinit unsigned unheard_changes = 0, heard_changes = 0;
enum class Life { kUnknown, kKnown, kEnding };
constinit thread_local Life life = Life::kUnknown;

NESSIE_NO_TSAN bool must_not_tell() noexcept { return has_tsan && life != Life::kKnown; }

NESSIE_NO_TSAN bool count_unheard(probe::SystemCall &call) noexcept {
  if (!may_change_pages(call)) return false;
  __atomic_fetch_add(&unheard_changes, 1, __ATOMIC_SEQ_CST);
  call.result = probe::raw_call(call);
  __atomic_fetch_add(&unheard_changes, 1, __ATOMIC_SEQ_CST);
  return true;
}

NESSIE_NO_TSAN unsigned unheard() noexcept { return __atomic_load_n(&unheard_changes, __ATOMIC_SEQ_CST); }

/// The calling thread is alive.
void know_thread() noexcept {
  if (!has_tsan || life != Life::kUnknown) return;
  pthread_setspecific(end_of_thread, &life);
  life = Life::kKnown;
}

NESSIE_NO_TSAN bool on_call(probe::SystemCall &call) noexcept {
  return must_not_tell() ? count_unheard(call) : tell_of(call);
}

// Sanitizers' allocators return memory by system calls of their own, which no probe sees; but they tell of every
// free().
extern "C" void nnti_on_malloc(const volatile void *, std::size_t) {}
extern "C" NESSIE_NO_TSAN void nnti_on_free(const volatile void *block) {
  if (block == nullptr) return;
  if (must_not_tell()) {
    __atomic_fetch_add(&unheard_changes, 1, __ATOMIC_SEQ_CST);
    return;
  }
  tell_of_free(block);
}

/// Ok also where there is no sanitizer.
Status watch_sanitizers() {
  using Install = int (*)(void (*)(const volatile void *, std::size_t), void (*)(const volatile void *));
  const auto install = reinterpret_cast<Install>(::dlsym(RTLD_DEFAULT, "__sanitizer_install_malloc_and_free_hooks"));
  static bool installed = false;
  if (install == nullptr || installed) return {};
  if (::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr && !has_tsan)
    has_tsan = pthread_key_create(&end_of_thread, [](void *) { life = Life::kEnding; }) == 0;
  know_thread();
  size_of_block = reinterpret_cast<SizeOfBlock>(::dlsym(RTLD_DEFAULT, "__sanitizer_get_allocated_size"));
  installed = install(&nnti_on_malloc, &nnti_on_free) != 0;
  if (!installed) return Error{Code::kUnsupported, "the sanitizer has no room for one more malloc hook"};
  return {};
}

// --- probes -----------------------------------------------------------------------------------------------------------

struct Watched {
  const char *function;
  long number;                    ///< of the system call; -1: any
  bool is_tested = true;          ///< by self_test; otherwise the probe must be in place, if libc has the function
  const char *library = nullptr;  ///< that has the function, if it is not libc
};

constexpr Watched kWatched[] = {
    {"munmap", SYS_munmap},
    {"mmap", SYS_mmap},
    {"mmap64", SYS_mmap},
    {"mremap", SYS_mremap},
    {"madvise", SYS_madvise},
    {"brk", SYS_brk},
    {"shmat", SYS_shmat},
    {"shmdt", SYS_shmdt},
    {"remap_file_pages", SYS_remap_file_pages},
    {"process_madvise", 440, false},
    {"syscall", -1},
    {"ucm_brk_syscall", SYS_brk, true, "libucm.so.0"},  // UCX, which replaces brk, goes through libc otherwise
};
constexpr std::size_t kFunctions = std::size(kWatched) + 1;  // and the loader's

/// A word of code that is to stay as it is.
struct Guard {
  std::atomic<const probe::Word *> word{nullptr};
  std::atomic<probe::Word> expected{0};
};

Error no_probe_in(const char *function) {
  return {Code::kUnsupported,
          fmt::format("libc's {} is not as it should be; something else of this process has patched it", function),
          Scope::kProcess};
}

constexpr int kMaxRepairs = 8;
constinit std::mutex watch_mutex;  ///< taken before the hub's

class Watcher {
 public:
  Status watch();
  Status repair();
  bool intact() const noexcept;

 private:
  Status start();
  Status arm();
  probe::FunctionCode find(const Watched &watched) const;
  Status probe_all();
  Status probe_calls(std::size_t which);
  Status probe_loader();
  void guard(const probe::Word *word);
  void guard_all();

  std::atomic<bool> armed_{false};
  bool started_ = false;
  int repairs_ = 0;
  std::optional<Error> failed_;
  probe::Prober prober_;
  std::array<std::vector<probe::Site>, kFunctions> sites_;
  std::array<probe::FunctionCode, kFunctions> functions_;
  std::array<Guard, 4 * kFunctions> guards_;
  std::atomic<std::size_t> guarded_{0};
};

/// Never destroyed: probes outlive everything else.
Watcher &watcher() {
  static auto *only = new Watcher;
  return *only;
}
constinit std::atomic<Watcher *> present_watcher{nullptr};

/// Forgets everything if a thread could not tell what it changed. The caller holds the mutex.
void hear() noexcept {
  const auto count = unheard();
  if (count == heard_changes) return;
  __atomic_store_n(&heard_changes, count, __ATOMIC_RELAXED);
  tell_once(kAllAddresses);
}

Status Watcher::watch() {
  std::lock_guard lock(watch_mutex);
  if (failed_) return *failed_;
  hear();
  if (started_) return {};
  started_ = true;
  present_watcher = this;
  return start();
}

/// The caller holds the mutex.
Status Watcher::start() {
  auto status = arm();
  if (!status.ok()) failed_ = status.error();
  return status;
}

Status Watcher::arm() {
  loader_debug = static_cast<const r_debug *>(::dlsym(RTLD_DEFAULT, "_r_debug"));
  if (auto status = watch_sanitizers(); !status.ok()) return status;
  if (auto status = prober_.open(&on_call); !status.ok()) return status;
  if (auto status = probe_all(); !status.ok()) return status;
  guard_all();
  if (auto status = self_test::run(prober_.spare_page()); !status.ok()) return status;
  tell_once(kAllAddresses);  // what began while nothing was watched
  armed_.store(true, std::memory_order_release);
  return {};
}

/// Empty: there is none, or none that a probe's jump reaches.
probe::FunctionCode Watcher::find(const Watched &watched) const {
  if (watched.library == nullptr) return probe::libc_function(watched.function);
  const auto code = probe::library_function(watched.library, watched.function);
  return prober_.reaches(code) ? code : probe::FunctionCode();
}

/// What can be probed; whether that is enough is for the self-test to say, where it can.
Status Watcher::probe_all() {
  for (std::size_t i = 0; i < std::size(kWatched); ++i) {
    const auto code = find(kWatched[i]);
    const bool seen = std::any_of(functions_.begin(), functions_.begin() + i,
                                  [&](const auto &other) { return other.begin == code.begin; });
    if (code.begin == nullptr || seen) continue;
    functions_[i] = code;
    if (auto status = probe_calls(i); !status.ok()) return status;
    if (!sites_[i].empty()) continue;
    if (!kWatched[i].is_tested) return no_probe_in(kWatched[i].function);
    nessie::log::debug("{}", no_probe_in(kWatched[i].function).message);
  }
  return probe_loader();
}

/// Puts back what was undone, and probes what is as libc has it.
Status Watcher::probe_calls(std::size_t which) {
  auto &sites = sites_[which];
  std::erase_if(sites, [](const auto &site) { return site.now() != site.probed && site.now() != site.original; });
  for (const auto &site : sites)
    if (auto status = prober_.restore(site); !status.ok()) return status;
  auto more = prober_.probe_calls(functions_[which], kWatched[which].number);
  if (!more.ok()) return more.error();
  sites.insert(sites.end(), more->begin(), more->end());
  return {};
}

Status Watcher::probe_loader() {
  auto &sites = sites_.back();
  if (!sites.empty() && sites[0].now() == sites[0].probed) return {};
  functions_.back() = probe::loader_event_function();
  auto site = prober_.probe_return(functions_.back());
  if (!site.ok()) return site.error();
  sites = {*site};
  return {};
}

void Watcher::guard(const probe::Word *word) {
  if (guarded_ == guards_.size()) return;  // more calls in libc's functions than there ever were
  auto &entry = guards_[guarded_.fetch_add(1)];
  entry.expected = probe::load_code(word);
  entry.word = word;
}

/// Others patch functions at their entries, and undo it.
void Watcher::guard_all() {
  guarded_ = 0;
  for (std::size_t i = 0; i < kFunctions; ++i) {
    if (functions_[i].begin == nullptr) continue;
    const auto at = reinterpret_cast<std::uintptr_t>(functions_[i].begin) & ~(sizeof(probe::Word) - 1);
    const auto *entry = reinterpret_cast<const probe::Word *>(at);
    guard(entry);
    for (const auto &site : sites_[i])
      if (site.word != entry) guard(site.word);
  }
}

bool Watcher::intact() const noexcept {
  if (!armed_.load(std::memory_order_acquire)) return false;
  if (unheard() != __atomic_load_n(&heard_changes, __ATOMIC_RELAXED)) return false;
  const auto count = guarded_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    const auto *word = guards_[i].word.load(std::memory_order_relaxed);
    if (probe::load_code(word) != guards_[i].expected.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

Status Watcher::repair() {
  std::lock_guard lock(watch_mutex);
  if (failed_) return *failed_;
  hear();
  if (intact()) return {};
  armed_ = false;
  tell_once(kAllAddresses);
  if (++repairs_ <= kMaxRepairs) return start();
  failed_ = Error{Code::kUnsupported, "other software of this process patches libc again and again", Scope::kProcess};
  return *failed_;
}

}  // namespace

Status watch() { return watcher().watch(); }

Status repair() { return watcher().repair(); }

bool intact() noexcept {
  know_thread();
  const auto *present = present_watcher.load(std::memory_order_acquire);
  return present != nullptr && present->intact();
}

Status subscribe(MemoryListener &listener) {
  know_thread();
  std::lock_guard lock(hub.mutex);
  auto slot = std::ranges::find(hub.listeners, nullptr);
  if (slot == hub.listeners.end())
    return Error{Code::kBusy, fmt::format("more than {} registration caches are open", kMaxListeners)};
  *slot = &listener;
  return {};
}

void unsubscribe(MemoryListener &listener) noexcept {
  std::lock_guard lock(hub.mutex);
  std::ranges::replace(hub.listeners, &listener, nullptr);
}

bool changing(AddressRange range) noexcept {
  std::lock_guard lock(hub.mutex);
  for (const auto *change = hub.changes; change != nullptr; change = change->next)
    if (change->ranges[0].overlaps(range) || change->ranges[1].overlaps(range)) return true;
  return false;
}

void begin_anew_in_child() noexcept {
  new (&watch_mutex) std::mutex;
  new (&hub.mutex) std::mutex;
  hub.changes = nullptr;
}

}  // namespace nnti::memory_events
