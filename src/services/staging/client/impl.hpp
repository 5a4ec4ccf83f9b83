// SPDX-License-Identifier: BSD-3-Clause
// The client's inside: connections, and the way in which every answer is waited for.
//
// Design notes. A process may have several threads, each with files of its own, and what one of them waits for may come
// only after another thread has gone on, here or in another process. So the client is a monitor: one mutex around all
// of its state, which is given up while an answer is awaited. Whoever waits takes the message out of `messages` first;
// who needs a message that another thread has taken waits for `changed`.
#pragma once

#include <services/staging/client/client.hpp>
#include <services/staging/client/copy_buffers.hpp>

#include <staging_rpc.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>

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

  struct Server {
    std::string url;
    nssi::PeerId peer;
    Stub stub;
    std::size_t max_inline_args = 0;
    bool views = false;  ///< finds copied data where they are
    bool lost = false;
  };
  struct Opened {
    int home = 0;                                         ///< the server that keeps the header
    bool attached = false;                                ///< the others have it open
    std::optional<nssi::Future<NcResult>> defining = {};  ///< the last definitions that were sent ahead
    Result<int> defined = 0;                              ///< what became of those before
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
    nssi::Future<NcResult> answer;
  };

  /// Answers of several servers to one question.
  using Answers = std::vector<std::pair<int, nssi::Future<NcResult>>>;

  /// Asks a server, by an operation of its stub.
  template <class T, class... Parameters, class... Args>
  nssi::Future<T> start(int server, nssi::Future<T> (Stub::*op)(Parameters...), const Args &...args) {
    return (at(server).stub.*op)(args..., kPatient);
  }
  /// Waits for an answer as long as the server lives, however long it takes: a write may have to wait for a disk. A
  /// server that gives no sign of life for the time `staging.timeout` is given up, with all that is pending at it.
  /// The mutex, which the caller holds, is free meanwhile.
  Status await(nssi::Call &call, int server, nessie::Deadline deadline = nessie::Deadline::never());
  bool alive(int server);
  void give_up(int server);
  void give_all_up();

  template <class T>
  nssi::Outcome<T> answer(nssi::Future<T> asked, int server, nessie::Deadline deadline = nessie::Deadline::never()) {
    if (auto status = await(asked.call(), server, deadline); !status.ok()) return status.error();
    return asked.wait();
  }
  template <class T, class... Parameters, class... Args>
  nssi::Outcome<T> ask(int server, nssi::Future<T> (Stub::*op)(Parameters...), const Args &...args) {
    return answer(start(server, op, args...), server);
  }
  /// Asks all servers but `except` at once; the first native error, or the first error.
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
  Result<FileHandle> give(const OpenArgs &args, int descriptor, int home);
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
  Mode mode = Mode::kCaching;
  bool is_crowded = false;  ///< there is no core for the servers of this node but those that the program uses
  std::chrono::milliseconds timeout{30000};
  std::map<FileToken, Opened> opened;  ///< by rank 0
  std::unique_ptr<CopyBuffers> copy_buffers;
  std::deque<std::unique_ptr<Message>> messages;  ///< without an answer, oldest first, but those that a thread awaits
  std::vector<const Message *> awaited;           ///< those
  std::map<FileToken, std::shared_ptr<Outcome>> written;
  std::optional<std::stop_callback<std::function<void()>>> stopped;  ///< goes first: it uses the rest
};

}  // namespace staging
