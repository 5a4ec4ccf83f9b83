// SPDX-License-Identifier: BSD-3-Clause
// The client's inside: connections, and the way in which every answer is waited for.
//
// Design notes. A process may have several threads, each with files of its own, and what one of them waits for may come
// only after another thread has gone on, here or in another process. So the client is a monitor: one mutex around all
// of its state, which is given up while an answer is awaited. Whoever waits takes the message out of `messages` first;
// who needs a message that another thread has taken waits for `changed`.
#pragma once

#include <service/copy_buffers.hpp>
#include <services/staging/client/client.hpp>

#include <base/random.hpp>
#include <staging_rpc.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

namespace staging {

using Stub = STAGING::CURRENT::Client;

/// What became of a transfer, or of the writes to a file, as far as is known.
struct Outcome {
  int pending = 0;   ///< messages without an answer
  int borrowed = 0;  ///< of those, messages that lend the caller's memory
  int nc_error = 0;
  Status failure;

  void note(const Status &status) {
    if (failure.ok() && !status.ok()) failure = status;
  }
  void note_answer(const Result<NcResult> &answer) {
    if (!answer.ok())
      note(answer.error());
    else if (nc_error == 0)
      nc_error = answer->nc_error;
  }
  bool is_fine() const { return pending == 0 && nc_error == 0 && failure.ok(); }
  /// The first failure since the last time.
  Result<int> take() {
    const auto failed = std::exchange(failure, {});
    const int code = std::exchange(nc_error, 0);
    if (!failed.ok()) return failed.error();
    return code;
  }
};

/// Lets other threads into the client while it lives.
class Unlocked {
 public:
  explicit Unlocked(std::mutex &mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~Unlocked() { mutex_.lock(); }
  Unlocked(const Unlocked &) = delete;

 private:
  std::mutex &mutex_;
};

inline Result<int> code_of(const Result<NcResult> &result) {
  if (!result.ok()) return result.error();
  return result->nc_error;
}

struct Client::Impl {
  /// await() says when to give up.
  static inline const nssi::CallOptions kPatient{.deadline = nessie::Deadline::never()};

  /// A question whether a server lives.
  struct Sign {
    nssi::Future<void> answer;
    nessie::Deadline until;
  };
  struct Server {
    std::string url;
    nssi::PeerId peer;
    Stub stub;
    std::size_t max_inline_args = 0;
    bool views = false;    ///< finds copied data where they are
    bool is_here = false;  ///< on this node: is given files
    bool lost = false;
    bool returns = false;           ///< if it dies another one goes on, at the same place
    bool died = false;              ///< and none goes on
    bool is_returning = false;      ///< a thread waits for that
    bool is_sent_again = false;     ///< and sends what had no answer
    std::uint64_t last_number = 0;  ///< of the requests to it
    std::set<std::uint64_t> unanswered = {};
    std::optional<Sign> sign = {};  ///< of life, that it was asked for while another one was silent
  };
  /// A question, and how to ask it again.
  template <class T> struct Asked {
    nssi::Future<T> answer;
    std::function<nssi::Future<T>()> again;
    nssi::PeerId of;  ///< who was asked
  };
  struct Opened {
    int home = 0;                                  ///< the server that keeps the header
    bool attached = false;                         ///< the others have it open
    std::optional<Asked<NcResult>> defining = {};  ///< the last definitions that were sent ahead
    Result<int> defined = 0;                       ///< what became of those before
    OpenArgs args = {};                            ///< for a server that comes back: how it is opened,
    nessie::Fd file = {};                          ///< and the file
    std::uint64_t definitions = 0;                 ///< the number of the last enddef, or amend
    std::uint32_t data_modes = 0;                  ///< how often it has been in data mode
    std::uint64_t marks = 0;
  };

  class Sender;
  /// A read or write on its way.
  struct Message {
    int server = 0;
    FileToken file = 0;
    bool is_write = false, is_copy = false, borrows = false, is_urgent = false;
    nnti::RegisteredBuffer buffer;  ///< declared before the call: outlives it
    PieceList pieces;
    std::vector<std::span<std::byte>> destinations;  ///< of a packed read
    std::shared_ptr<Outcome> outcome;
    TransferArgs args;
    nssi::PeerId of;             ///< who was asked
    bool is_waited_for = false;  ///< by a thread that has given up the mutex
    nssi::Future<NcResult> answer;
  };

  /// Answers of several servers to one question.
  using Answers = std::vector<std::pair<int, Asked<NcResult>>>;

  /// Asks a server, by an operation of its stub.
  template <class T, class... Parameters, class... Args>
  Asked<T> start(int server, nssi::Future<T> (Stub::*op)(Parameters...), const Args &...args) {
    return start<T>(server, [=, this] { return (at(server).stub.*op)(args..., kPatient); });
  }
  /// The same, of an operation on a file that is opened: it is given its descriptor, each time anew.
  template <class T, class Args>
  Asked<T> start_with(int descriptor, int server, nssi::Future<T> (Stub::*op)(const Args &, const nssi::CallOptions &),
                      Args args) {
    return start<T>(server, asking_with(descriptor, server, op, std::move(args)));
  }
  template <class T, class Args>
  std::function<nssi::Future<T>()> asking_with(int descriptor, int server,
                                               nssi::Future<T> (Stub::*op)(const Args &, const nssi::CallOptions &),
                                               Args args) {
    return [=, this]() mutable {
      auto handle = hand_over(server, descriptor);
      if (!handle.ok()) return nssi::Future<T>(handle.error());
      args.handle = *handle;
      return (at(server).stub.*op)(args, kPatient);
    };
  }
  /// A server that is about to be back is to know first what this process has open there.
  template <class T> Asked<T> start(int server, std::function<nssi::Future<T>()> ask) {
    while (at(server).is_returning) changed.wait(mutex);
    auto answer = ask();
    return {std::move(answer), std::move(ask), at(server).peer};
  }
  /// Waits for an answer as long as the server lives, however long it takes: a write may have to wait for a disk. A
  /// server that gives no sign of life for the time `staging.timeout` is given up, with all that is pending at it.
  /// The mutex, which the caller holds, is free meanwhile.
  Status await(const std::function<Status(nessie::Deadline)> &settle, int server, nessie::Deadline deadline);
  /// What comes of asking a server for a sign of life. The mutex is free meanwhile.
  Status ping(int server, std::chrono::milliseconds patience);
  Sign ask_for_sign(int server, std::chrono::milliseconds patience);
  bool was_asked(int server) const;
  bool alive(int server);
  nessie::Deadline next_look_at(int server) const;
  bool has_died(int server);
  void give_up(int server);
  void give_all_up();

  /// If the server dies, and comes back, it is asked again.
  template <class T>
  nssi::Outcome<T> answer(Asked<T> asked, int server, nessie::Deadline deadline = nessie::Deadline::never()) {
    for (;;) {
      auto result = answer_of(asked.answer, server, deadline);
      if (!is_lost(result) || !await_return(server, asked.of)) return result;
      asked.of = at(server).peer;
      asked.answer = asked.again();
    }
  }
  template <class T> nssi::Outcome<T> answer_of(nssi::Future<T> &asked, int server, nessie::Deadline deadline) {
    const auto settle = [&](nessie::Deadline until) { return asked.settle(until); };
    if (auto status = await(settle, server, deadline); !status.ok()) return status.error();
    return asked.wait();
  }
  template <class Outcome> static bool is_lost(const Outcome &outcome) {
    return !outcome.ok() && outcome.code() == nessie::Code::kPeerLost;
  }
  template <class T, class... Parameters, class... Args>
  nssi::Outcome<T> ask(int server, nssi::Future<T> (Stub::*op)(Parameters...), const Args &...args) {
    return answer(start(server, op, args...), server);
  }
  /// Asks all servers but `except` at once; the first native error, or the first error.
  /// Waits until a server that has died, `lost` of which he knew, is back, and knows again what this
  /// process has open there, and has been sent what it had not answered. False: it does not come back.
  bool await_return(int server, nssi::PeerId lost);
  void expect_return();
  void watch();
  bool is_gone(int server);
  void end_watch();
  void wake_watcher() const;
  HelloArgs hello() const;
  Status come_back(int server);
  Result<nssi::PeerId> connect_again(int server, nessie::Deadline deadline);
  Status greet(int server);
  Status give_again(int server);
  Status send_again(int server);
  void send(Message &message);
  nssi::Outcome<NcResult> answer_of(Message &message);
  /// A file that is about to be opened: for servers that come back, also while others still open it.
  void note_opening(const OpenArgs &args, int descriptor, int home);
  void forget_opening(FileToken token, int home);
  template <class Args>
  Result<int> ask_all(nssi::Future<NcResult> (Stub::*op)(const Args &, const nssi::CallOptions &), const Args &args,
                      int except = -1) {
    Answers answers;
    for (int s = 0; s < count(); ++s)
      if (s != except) answers.emplace_back(s, start(s, op, args));
    return first_error(answers);
  }
  Result<int> first_error(Answers &answers);

  int home_of(const FileIdentity &identity) const;
  Result<FileHandle> hand_over(int server, int descriptor);
  Result<int> hold_by_others(OpenArgs args, int descriptor, int home);
  void release_by_others(FileToken token, int home);
  /// What became of all definitions that were sent ahead; told once.
  Result<int> finish_defining(FileToken token);
  Result<int> attach_others(FileToken token, int home);
  Result<int> close(FileToken file, std::int64_t num_records, Closing how, const Order &order);
  Result<int> detach_others(FileToken token, std::int64_t num_records, int home);
  /// Takes in the answer to a message; waits for another thread to do so if that has all of them.
  void finish_one();
  void finish(std::unique_ptr<Message> message);
  /// Until `left`, which counts messages, is 0.
  void finish(const int &left);
  std::shared_ptr<Outcome> outcome_of(FileToken file);
  /// Of this process, to one file; their outcome is kept.
  void finish_writes(FileToken file) {
    const auto found = written.find(file);
    if (found == written.end()) return;
    const auto outcome = found->second;
    finish(outcome->pending);
  }
  void hasten();
  void finish_unsent();
  Server &at(int server) { return servers[static_cast<std::size_t>(server)]; }
  bool meets_pending_write(FileToken file, std::span<const Item> items) const;
  int count() const { return static_cast<int>(servers.size()); }

  std::mutex mutex;
  std::condition_variable_any changed;  ///< another message has its answer
  std::unique_ptr<nssi::Runtime> runtime;
  std::vector<Server> servers;
  /// Copies what is to be written. Its checksum, behind that of what was copied before; 0 where none is wanted.
  std::uint32_t copy(std::byte *to, std::span<const std::byte> from, std::uint32_t before = 0) const;

  Mode mode = Mode::kCaching;
  bool keeps = false;                                 ///< files that say nothing else outlive their servers
  bool expects_return = false;                        ///< a server that dies is waited for
  bool checks = true;                                 ///< data are sent with their checksums
  const std::uint64_t id = nessie::random_u64() | 1;  ///< of this process, for servers that come back
  std::string program;
  std::string job;
  nessie::Deadline heard = nessie::Deadline::now();  ///< until then servers are taken to live: one has just answered
  bool is_crowded = false;  ///< there is no core for the servers of this node but those that the program uses
  std::chrono::milliseconds timeout{30000};
  std::map<FileToken, Opened> opened;  ///< by rank 0
  std::unique_ptr<nessie::service::CopyBuffers> copy_buffers;
  std::deque<std::unique_ptr<Message>> messages;  ///< without an answer, oldest first, but those that a thread awaits
  std::vector<Message *> awaited;                 ///< those
  std::map<FileToken, std::shared_ptr<Outcome>> written;
  bool is_ending = false;
  nessie::Fd watch_changes;  ///< wakes the watcher
  std::thread watcher;
  std::optional<std::stop_callback<std::function<void()>>> stopped;  ///< goes first: it uses the rest
};

}  // namespace staging
