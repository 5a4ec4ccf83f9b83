// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/pmix.hpp"

#include <base/thread.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <pmix.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <optional>

namespace nessie::service::pmix {
namespace {

constexpr const char *kLibrary = "libpmix.so.2";
constexpr std::chrono::milliseconds kUsualAnswer{2}, kBetweenLooks{5}, kToLeave{2000};

struct Library {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Publish) publish;
  decltype(&PMIx_Lookup) look_up;
  decltype(&PMIx_Unpublish) withdraw;
  decltype(&PMIx_Error_string) text;
  std::string problem;
};

template <class F> void resolve(void *handle, const char *name, F &function, std::string &problem) {
  function = reinterpret_cast<F>(::dlsym(handle, name));
  if (function == nullptr && problem.empty()) problem = fmt::format("{} lacks {}", kLibrary, name);
}

Library load() {
  Library library{};
  void *handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);  // global: its modules need its symbols
  if (handle == nullptr) {
    library.problem = fmt::format("PMIx cannot be loaded: {}", ::dlerror());
    return library;
  }
  resolve(handle, "PMIx_Init", library.init, library.problem);
  resolve(handle, "PMIx_Finalize", library.finalize, library.problem);
  resolve(handle, "PMIx_Publish", library.publish, library.problem);
  resolve(handle, "PMIx_Lookup", library.look_up, library.problem);
  resolve(handle, "PMIx_Unpublish", library.withdraw, library.problem);
  resolve(handle, "PMIx_Error_string", library.text, library.problem);
  return library;
}

const Library &library() {
  static const auto &once = *new Library(load());  // never destroyed: threads that were left behind may use it
  return once;
}

// --- a thread for each call -------------------------------------------------------------------------------------------

/// kTimedOut: `call` goes on.
template <class Call> auto call_within(Deadline deadline, const Pause &pause, Call call) -> decltype(call()) {
  using Outcome = decltype(call());
  std::packaged_task<Outcome()> task(std::move(call));
  auto outcome = task.get_future();
  auto thread = nessie::start_thread(std::move(task));
  if (!thread.joinable()) return Error{Code::kNoMemory, "the system has no threads left"};
  thread.detach();
  for (auto status = outcome.wait_for(kUsualAnswer); status != std::future_status::ready;
       status = outcome.wait_for(std::chrono::seconds(0))) {
    if (deadline.passed())
      return Error{Code::kTimedOut, "the job's launcher does not answer; is it stopped?", Scope::kService};
    if (auto paused = pause(kBetweenLooks); !paused.ok()) return paused.error();
  }
  return outcome.get();
}

// --- the job ----------------------------------------------------------------------------------------------------------

Error error_of(int code) {
  const auto text = fmt::format("PMIx says {}", library().text(code));
  switch (code) {
    case PMIX_ERR_NOT_FOUND: return {Code::kNotFound, text, Scope::kOperation, code};
    case PMIX_ERR_DUPLICATE_KEY: return {Code::kExists, text, Scope::kOperation, code};
    case PMIX_ERR_NOT_SUPPORTED:
      return {Code::kUnsupported, fmt::format("the job's launcher keeps no names: {}; use a contact file", text),
              Scope::kOperation, code};
    case PMIX_ERR_UNREACH:
    case PMIX_ERR_LOST_CONNECTION:
      return {Code::kPeerLost, fmt::format("the job's launcher cannot be reached: {}", text), Scope::kService, code};
    default: return {Code::kIo, fmt::format("the job's launcher failed: {}", text), Scope::kOperation, code};
  }
}

Status status_of(int code) { return code == PMIX_SUCCESS ? Status() : Status(error_of(code)); }

/// This process as a member of the job.
class Membership {
 public:
  Status join() {
    const std::lock_guard lock(mutex_);
    if (member_ == ::getpid()) return {};
    if (member_ != 0)
      return Error{Code::kUnsupported, "this process was forked by a member of the job, and is none: let that one ask"};
    pmix_proc_t self{};
    const int code = library().init(&self, nullptr, 0);
    if (code != PMIX_SUCCESS) return error_of(code);
    std::atexit([] { of_this_process().leave(); });
    member_ = ::getpid();
    return {};
  }
  static Membership &of_this_process() {
    static auto &once = *new Membership;  // never destroyed: threads that were left behind may use it
    return once;
  }

 private:
  void leave() {
    if (member_ != ::getpid()) return;  // a child that was forked
    (void)call_within(Deadline::in(kToLeave), sleep, [] { return status_of(library().finalize(nullptr, 0)); });
  }

  std::mutex mutex_;
  std::atomic<pid_t> member_{0};
};

/// `call` returns PMIx's code.
template <class Call> Status call_as_member(Deadline deadline, const Pause &pause, Call call) {
  if (std::getenv("PMIX_NAMESPACE") == nullptr)
    return Error{Code::kUnsupported,
                 "no launcher with PMIx started this process, as Open MPI's mpiexec does: use a contact file"};
  return call_within(deadline, pause, [call = std::move(call)]() mutable -> Status {
    if (!library().problem.empty()) return Error{Code::kUnsupported, library().problem};
    if (auto status = Membership::of_this_process().join(); !status.ok()) return status;
    return status_of(call());
  });
}

/// Keys fit: names are short.
template <std::size_t n> void set_key(char (&field)[n], const std::string &key) {
  field[key.copy(field, n - 1)] = '\0';
}

}  // namespace

Status publish(const std::string &key, const std::string &value, Deadline deadline, const Pause &pause) {
  return call_as_member(deadline, pause, [key, value] {
    std::array<pmix_info_t, 2> what{};
    set_key(what[0].key, key);
    what[0].value.type = PMIX_STRING;
    what[0].value.data.string = const_cast<char *>(value.c_str());
    set_key(what[1].key, PMIX_RANGE);
    what[1].value.type = PMIX_DATA_RANGE;
    what[1].value.data.range = PMIX_RANGE_SESSION;
    return library().publish(what.data(), what.size());
  });
}

Result<std::string> look_up(const std::string &key, Deadline deadline, const Pause &pause) {
  auto text = std::make_shared<std::optional<std::string>>();
  auto status = call_as_member(deadline, pause, [key, text] {
    pmix_pdata_t found{};
    set_key(found.key, key);
    const int code = library().look_up(&found, 1, nullptr, 0);
    if (code == PMIX_SUCCESS && found.value.type == PMIX_STRING && found.value.data.string != nullptr) {
      *text = found.value.data.string;
      std::free(found.value.data.string);
    }
    return code;
  });
  if (!status.ok()) return status.error();
  if (!*text) return Error{Code::kBadMessage, fmt::format("what is published as '{}' is no text", key)};
  return *std::move(*text);
}

Status withdraw(const std::string &key, Deadline deadline, const Pause &pause) {
  return call_as_member(deadline, pause, [key] {
    std::array<char *, 2> keys{const_cast<char *>(key.c_str()), nullptr};
    return library().withdraw(keys.data(), nullptr, 0);
  });
}

}  // namespace nessie::service::pmix
