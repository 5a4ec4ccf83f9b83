// SPDX-License-Identifier: BSD-3-Clause
// What NSSI's tests share: a service with an operation for each behaviour, on a thread of its own or in a process.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nssi/nssi.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <xdr/codec.hpp>

namespace nssi::testing {

inline constexpr Interface kInterface{0x20000001, 1};
/// The tests' service at a peer.
inline nssi::Service at(PeerId peer) { return {peer, kInterface, 0}; }

enum Op : OpCode {
  kNoopShort = 1,
  kNoop,
  kEcho,
  kPull,
  kPush,
  kBlock,
  kNoReply,
  kThrow,
  kMake,
  kFail,
  kDecode,
  kPullForever,
  kReplyTwice,
  kPullShort,
  kRelease,
  kMissing,
  kLater,
  kNow,
  kQuick,
  kHasten,
  kWaitForGate,
  kOpenGate,
  kLook,
  kCount,
  kBlockAndCount,
  kHangUp,
  kCompute,
  kFailAs
};

inline bool available(const std::string &transport) {
  for (const auto &info : nnti::Endpoint::survey(nessie::Config()))
    if (info.name == transport) return info.available;
  return false;
}

/// Polls for a state, with a watchdog.
inline bool eventually(const std::function<bool()> &state) {
  for (auto end = Deadline::in(std::chrono::seconds(20)); !end.passed(); std::this_thread::yield())
    if (state()) return true;
  return false;
}

struct Pattern {
  std::uint64_t size_bytes = 0;
  template <class A> void xdr(A &a) { a(size_bytes); }
};

/// What a handler gives as an error.
struct FailAs {
  std::int32_t code = 0, scope = 0;
  template <class A> void xdr(A &a) { a(code, scope); }
};

inline std::byte pattern_at(std::size_t i) { return static_cast<std::byte>(i * 131 + (i >> 8) * 7); }
inline Bytes pattern(std::size_t size_bytes) {
  Bytes bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = pattern_at(i);
  return bytes;
}

inline RuntimeOptions options_for(const std::string &transport, bool listen) {
  RuntimeOptions options;
  options.endpoint.transports = {transport};
  options.endpoint.listen = listen;
  if (transport == "ofi") {
    options.endpoint.config.set("nnti.ofi.provider", "tcp");
    options.endpoint.config.set("nnti.ofi.address", "127.0.0.1");
  }
  return options;
}

/// The operations above, on a runtime of the caller's.
class Service {
 public:
  explicit Service(Runtime &runtime) : runtime_(runtime), gate_(runtime) {
    add(kNoopShort, HandlerKind::kShort, [](Request &r) { (void)r.reply(); });
    add(kNoop, HandlerKind::kFiber, [](Request &r) { (void)r.reply(); });
    add(kEcho, HandlerKind::kFiber, [](Request &r) { (void)r.reply(r.args()); });
    add(kPull, HandlerKind::kFiber, [](Request &r) { pull(r); });
    add(kPullShort, HandlerKind::kShort, [](Request &r) { pull(r); });
    add(kPush, HandlerKind::kFiber, [](Request &r) { push(r); });
    add(kBlock, HandlerKind::kFiber, [this](Request &r) { block(r); });
    add(kRelease, HandlerKind::kShort, [this](Request &r) {
      gate_.set();
      (void)r.reply();
    });
    add(kNoReply, HandlerKind::kFiber, [](Request &) {});
    add(kThrow, HandlerKind::kFiber, [](Request &) { throw std::runtime_error("the roof is on fire"); });
    add(kMake, HandlerKind::kFiber,
        [](Request &r) { (void)r.reply(pattern(xdr::decode<Pattern>(r.args())->size_bytes)); });
    add(kFail, HandlerKind::kFiber, [](Request &r) {
      (void)r.reply_error({Code::kIo, "No space left on device: free some", nessie::Scope::kService, ENOSPC});
    });
    add(kFailAs, HandlerKind::kFiber, [](Request &r) {
      const auto as = *xdr::decode<FailAs>(r.args());
      (void)r.reply_error({static_cast<Code>(as.code), "made up", static_cast<nessie::Scope>(as.scope), 0});
    });
    add(kDecode, HandlerKind::kShort, [](Request &r) {
      auto args = xdr::decode<Pattern>(r.args());
      (void)(args.ok() ? r.reply() : r.reply_error(args.error()));
    });
    add(kReplyTwice, HandlerKind::kFiber, [this](Request &r) {
      (void)r.reply();
      second_reply.store(r.reply().code());
    });
    add(kPullForever, HandlerKind::kFiber, [this](Request &r) { pull_forever(r); });
    add(kCount, HandlerKind::kFiber, [this](Request &r) { (void)r.reply(xdr::encode(std::int32_t{++counted})); });
    add(kHangUp, HandlerKind::kShort, [this](Request &r) { runtime_.disconnect(r.caller()); });
    add(kCompute, HandlerKind::kFiber, [this](Request &r) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // as one that computes: others of the thread wait
      ++counted;
      (void)r.reply();
    });
    add(kBlockAndCount, HandlerKind::kFiber, [this](Request &r) { ++counted, block(r); });
  }
  void release_blocked() { gate_.set(); }

  std::atomic<int> blocked{0}, pulls{0}, counted{0};
  std::atomic<Code> second_reply{Code::kOk}, pull_ended{Code::kOk};

 private:
  void add(OpCode op, HandlerKind kind, Handler handler) {
    (void)runtime_.add_operation({kInterface, 0, op, "test" + std::to_string(op), kind, std::move(handler)});
  }
  static void pull(Request &r) {
    Bytes bytes(std::max<std::uint64_t>(r.data_bytes(), 1));
    if (auto status = r.get_data(bytes); !status.ok()) return (void)r.reply_error(status.error());
    (void)r.reply(xdr::encode(bytes == pattern(bytes.size())));
  }
  static void push(Request &r) {
    auto status = r.put_data(pattern(r.data_bytes()));
    (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
  }
  void block(Request &r) {
    ++blocked;
    auto status = gate_.wait(r.deadline());
    --blocked;
    (void)(status.ok() ? r.reply() : r.reply_error(status.error()));
  }
  void pull_forever(Request &r) {
    Bytes bytes(r.data_bytes());
    for (;;) {
      if (auto status = r.get_data(bytes); !status.ok()) {
        pull_ended.store(status.code());
        return (void)r.reply_error(status.error());
      }
      ++pulls;
      runtime_.sleep_until(Deadline::in(std::chrono::milliseconds(1)));
    }
  }

  Runtime &runtime_;
  Event gate_;
};

inline std::unique_ptr<Runtime> open_runtime(RuntimeOptions options) {
  auto opened = Runtime::open(std::move(options));
  if (!opened.ok()) throw std::runtime_error(opened.error().to_string());
  return *std::move(opened);
}

/// A service on a thread of its own.
class ServiceThread {
 public:
  /// `add` offers more operations.
  explicit ServiceThread(
      RuntimeOptions options, const std::function<void(Runtime &)> &add = [](Runtime &) {}) {
    runtime = open_runtime(std::move(options));
    service = std::make_unique<Service>(*runtime);
    add(*runtime);
    thread_ = std::thread([this] { runtime->run(); });
  }
  ~ServiceThread() { stop(); }
  void stop() {
    runtime->stop();
    join();
  }
  /// Until run() returns.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  std::unique_ptr<Service> service;  // outlives the runtime, which ends its handlers
  std::unique_ptr<Runtime> runtime;

 private:
  std::thread thread_;
};

/// A child process; killed and reaped at the latest when this goes.
class Process {
 public:
  explicit Process(std::vector<std::string> words) {
    int pipe_fds[2];
    if (::pipe2(pipe_fds, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    std::vector<char *> argv;
    for (auto &word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
    const int failed = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(pipe_fds[1]);
    out_ = pipe_fds[0];
    if (failed != 0) throw std::runtime_error("posix_spawn " + words[0]);
  }
  ~Process() {
    kill_now();
    ::close(out_);
  }
  Process(const Process &) = delete;

  /// The next line that the child writes; empty if it ends, or writes none within 20 s.
  std::string line() {
    std::string text;
    char c = 0;
    for (pollfd ready{out_, POLLIN, 0}; ::poll(&ready, 1, 20000) == 1 && ::read(out_, &c, 1) == 1 && c != '\n';)
      text += c;
    return text;
  }
  void kill_now() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// The signal that ended it; -1: it has not ended, or not by a signal.
  int wait_for_signal() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) != 0; })) return -1;
    pid_ = -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
  }
  /// Its exit code; -1: it has not ended, or not by itself.
  int wait_for_exit() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) != 0; })) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace nssi::testing
