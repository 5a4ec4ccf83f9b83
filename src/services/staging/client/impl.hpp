// SPDX-License-Identifier: BSD-3-Clause
// The client's inside: connections, and the way in which every answer is waited for.
#pragma once

#include <services/staging/client/client.hpp>

#include <xdr/codec.hpp>

#include <map>

namespace staging {

struct Client::Impl {
  struct Server {
    std::string url;
    nssi::PeerId peer;
    bool lost = false;
  };
  /// How the other servers open a file.
  struct Opened {
    std::string path;
    std::int32_t omode = 0;
    std::vector<Hint> hints;
    bool attached = false;
  };

  nssi::Call start(int server, Op op, std::span<const std::byte> args, const nnti::RegisteredBuffer *data = nullptr);
  /// Waits for an answer as long as the server lives, however long it takes: a write may have to wait for a disk. A
  /// server that gives no sign of life for the time `staging.timeout` is given up, with all that is pending at it.
  Status await(nssi::Call &call, int server, nessie::Deadline deadline = nessie::Deadline::never());
  bool alive(int server);
  void give_up(int server);

  template <class Answer, class Args> Result<Answer> ask(int server, Op op, const Args &args) {
    return answer<Answer>(start(server, op, xdr::encode(args)), server);
  }
  template <class Answer> Result<Answer> answer(nssi::Call call, int server, nessie::Deadline deadline = nessie::Deadline::never()) {
    if (auto status = await(call, server, deadline); !status.ok()) return status.error();
    return xdr::decode<Answer>(call.result());
  }
  /// Asks all servers but `except` at once; the first native error, or the first error.
  template <class Args> Result<int> ask_all(Op op, const Args &args, int except = -1) {
    std::vector<std::pair<int, nssi::Call>> calls;
    const auto bytes = xdr::encode(args);
    for (int s = 0; s < count(); ++s)
      if (s != except) calls.emplace_back(s, start(s, op, bytes));
    return first_error(calls);
  }
  Result<int> first_error(std::vector<std::pair<int, nssi::Call>> &calls);

  Result<int> attach_others(FileToken token, int home);
  Result<int> detach_others(FileToken token, std::int64_t num_records, int home);
  int count() const { return static_cast<int>(servers.size()); }

  std::unique_ptr<nssi::Runtime> runtime;
  std::vector<Server> servers;
  Mode mode = Mode::kCaching;
  std::chrono::milliseconds timeout{30000};
  std::map<FileToken, Opened> opened;              ///< on rank 0
  std::vector<std::vector<std::byte>> idle_packs;  ///< buffers for small pieces
};

}  // namespace staging
