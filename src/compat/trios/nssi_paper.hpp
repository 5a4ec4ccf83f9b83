// SPDX-License-Identifier: BSD-3-Clause
// The paper's interface (nssi/nssi.h) in types that Trios' headers do not have as well: the two cannot be included in
// one file. Functions return Trios' codes.
#pragma once

#include <rpc/types.h>
#include <rpc/xdr.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace nssi::trios::paper {

const char *last_error();
/// "NSSI_EIO"; of Trios' codes.
const char *name_of(int code);
/// A code of our own, with a sentence.
int fail(int code, const char *sentence);

int init(int transport);
int fini(int transport);
int get_url(int transport, char *url, std::uint32_t most);
bool is_open(int transport);

// --- clients ----------------------------------------------------------------------------------------------------------

struct Peer {
  std::uint64_t id = 0;
  std::string url;
};
int get_service(int transport, const char *url, int timeout_ms, Peer &peer);
int free_service(int transport, std::uint64_t peer);
int kill(int transport, std::uint64_t peer, int signal, long timeout_ms);
int reset_trace(int transport, std::uint64_t peer, const char *file, int type, const char *groups, long timeout_ms);

/// Adds to the service's variable `remote`; its former value goes to our variable `local`.
int fetch_add(int transport, std::uint64_t peer, std::uint64_t remote, std::uint64_t local, std::int64_t operand);
/// Ours.
int read_variable(int transport, std::uint64_t index, std::int64_t &value);

int register_encoding(int opcode, xdrproc_t args, xdrproc_t result);

/// As nssi_request.
struct Call {
  std::uint64_t id = 0;
  int opcode = 0, error_code = 0, remote_rc = 0, status = 0;
  void *result = nullptr;
};
int start(int transport, std::uint64_t peer, int opcode, void *args, void *data, std::uint64_t size_bytes, void *result,
          Call &call);
int wait(Call &call, int timeout_ms, int *remote_rc);
int test(Call &call, int *remote_rc);
/// `which`: the place of the one that is over. Those without an id do not count.
int wait_any(std::span<Call> calls, int timeout_ms, std::size_t &which, int *remote_rc);

// --- servers ----------------------------------------------------------------------------------------------------------

/// A request whose stub runs.
struct Incoming {
  unsigned long id = 0;
  int transport = 0, opcode = 0;
  std::uint64_t peer = 0, data_bytes = 0;
  std::array<std::byte, 16> caller{};  ///< the same for as long as the caller lives
  const void *args = nullptr;
};
using Stub = int (*)(const Incoming &request);

int add_op(int opcode, Stub stub, std::size_t sizeof_args, xdrproc_t decode_args, std::size_t sizeof_res,
           xdrproc_t encode_res);
/// What the thread that serves does every so often.
struct Ticks {
  std::chrono::milliseconds every{0};
  std::function<void()> tick;  ///< none: nothing
};
int start_service(int transport, const Ticks &ticks);
/// Makes start_service() return.
void stop_service(int transport);
void forget_ops();

/// Within the stub of the request.
int get_data(unsigned long request, void *to, std::uint64_t size_bytes);
int put_data(unsigned long request, const void *from, std::uint64_t size_bytes, long timeout_ms);
int send_result(unsigned long request, int rc, void *result);

/// Whether this is the user-level thread of the request's stub.
bool is_mine(unsigned long request);
/// Makes it the calling user-level thread's, if this is one of the request's transport; false: it is none.
bool adopt(unsigned long request);

/// What that thread waits for.
class Signal {
 public:
  /// On that thread.
  explicit Signal(unsigned long request);
  ~Signal();
  Signal(const Signal &) = delete;
  /// It is not set any more. On that thread.
  void renew();
  /// Any thread, but not during renew().
  void set();
  /// Whether the caller is a user-level thread of the request's transport.
  bool in_user_level_thread() const;
  /// Suspends the thread until it is set. False: the transport is being closed.
  bool wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nssi::trios::paper
