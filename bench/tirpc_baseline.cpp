// SPDX-License-Identifier: BSD-3-Clause
// nessie-bench-tirpc: what libtirpc's own RPC takes (rpc_baseline.hpp says how it is run). The service is svc_run()'s
// loop in one thread, as libtirpc's services are; a client's thread makes one call at a time over a connection of its
// own, as a CLIENT allows no more. No rpcbind: the service listens where the clients are told. Blocks are decoded into
// memory that is there already.
#include "machine.hpp"
#include "page_aligned.hpp"
#include "rpc_baseline.hpp"
#include "timing.hpp"
#include "xdr_libtirpc.h"

#include <fmt/format.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rpc/rpc.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using bench::Board;
using bench::RpcSetting;
using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

constexpr rpcprog_t kProgram = 0x20004e53;
constexpr rpcvers_t kVersion = 1;
/// kBatched has no answer: a client sends it in batches, with a kNothing at the end. kWrite and kRead are the transfer
/// service's xfer_write_encode and xfer_read_encode.
enum Procedure : rpcproc_t { kNothing = NULLPROC, kEcho, kTake, kBatched, kWrite, kRead };
/// Of libtirpc's buffers. With its default, blocks of 64 KiB and more are slower; with more they are not faster.
constexpr u_int kBufferBytes = 256 << 10;
constexpr u_int kMostBytes = 16 << 20, kStructBytes = 16;
constexpr timeval kPatience{60, 0}, kNoPatience{0, 0};

// --- blocks ----------------------------------------------------------------------------------------------------------

/// opaque<>, into and out of memory of the largest size.
struct Block {
  char *data;
  u_int size;
};

bool_t xdr_block(XDR *xdr, Block *block) { return xdr_bytes(xdr, &block->data, &block->size, kMostBytes); }

template <class T> xdrproc_t untyped(bool_t (*procedure)(XDR *, T *)) {
  return reinterpret_cast<xdrproc_t>(reinterpret_cast<void *>(procedure));
}
const xdrproc_t kBlock = untyped(xdr_block);

/// An array of structs of 16 bytes; size: in bytes.
bool_t xdr_structs(XDR *xdr, Block *block) {
  unsigned count = block->size / kStructBytes;
  const bool coded = tirpc_code_structs(xdr, &block->data, &count, kMostBytes / kStructBytes);
  block->size = count * kStructBytes;
  return coded ? TRUE : FALSE;
}
const xdrproc_t kStructs = untyped(xdr_structs);
bool_t xdr_size(XDR *xdr, Block *block) { return xdr_u_int(xdr, &block->size); }
const xdrproc_t kSize = untyped(xdr_size);
bool_t xdr_nothing(XDR *, void *) { return TRUE; }
const xdrproc_t kNone = untyped(xdr_nothing);

// --- addresses -------------------------------------------------------------------------------------------------------

/// 127.0.0.1 at a port (0: any), or a name in the abstract space of UNIX sockets.
class Address {
 public:
  explicit Address(in_port_t port) {
    auto &tcp = reinterpret_cast<sockaddr_in &>(storage_);
    tcp.sin_family = AF_INET;
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    tcp.sin_port = port;
    length_ = sizeof tcp;
  }
  explicit Address(const std::string &name) {
    auto &local = reinterpret_cast<sockaddr_un &>(storage_);
    local.sun_family = AF_UNIX;
    name.copy(local.sun_path + 1, sizeof local.sun_path - 1);
    length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  int new_socket() const { return socket(storage_.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0); }
  sockaddr *get() { return reinterpret_cast<sockaddr *>(&storage_); }
  socklen_t &length() { return length_; }
  in_port_t port() const { return reinterpret_cast<const sockaddr_in &>(storage_).sin_port; }

 private:
  sockaddr_storage storage_{};
  socklen_t length_;
};

/// As the service writes it on the board.
Address address_from(const RpcSetting &setting, const std::string &published) {
  if (!setting.over_tcp) return Address(published);
  return Address(htons(static_cast<in_port_t>(std::stoi(published))));
}

// --- the service -----------------------------------------------------------------------------------------------------

/// What comes with a call, and what goes back.
struct Codecs {
  xdrproc_t arguments, result;
};

Codecs codecs_of(rpcproc_t procedure) {
  switch (procedure) {
    case kEcho: return {kBlock, kBlock};
    case kTake: return {kBlock, kNone};
    case kWrite: return {kStructs, kNone};
    case kRead: return {kSize, kStructs};
    default: return {kNone, kNone};
  }
}

void answer(svc_req *request, SVCXPRT *transport) {
  static bench::PageAligned<char> memory(kMostBytes);
  Block block{memory.data(), 0};
  const auto codecs = codecs_of(request->rq_proc);
  if (!svc_getargs(transport, codecs.arguments, &block) || block.size > kMostBytes) return svcerr_decode(transport);
  if (request->rq_proc != kBatched) svc_sendreply(transport, codecs.result, &block);
}

/// svc_run()'s loop, until the clients have left.
void run(const RpcSetting &setting, Board &board) {
  const bool yields = setting.shares_core(setting.service());
  std::vector<pollfd> ready;
  for (unsigned turn = 0;; ++turn) {
    ready.assign(svc_pollfd, svc_pollfd + svc_max_pollfd);
    const int events = poll(ready.data(), ready.size(), setting.polls ? 0 : bench::kGlance_ms);
    if (events > 0) svc_getreq_poll(ready.data(), events);
    if (events > 0) continue;
    if (yields) sched_yield();
    if ((!setting.polls || turn % bench::kTurnsPerGlance == 0) && bench::is_over(setting, board)) return;
  }
}

Result<std::string> listen_at(const RpcSetting &setting) {
  const auto name = fmt::format("nessie-bench-tirpc-{}", getpid());
  auto address = setting.over_tcp ? Address(in_port_t{0}) : Address(name);
  const int listener = address.new_socket();
  if (bind(listener, address.get(), address.length()) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, address.get(), &address.length()) != 0)
    return Error{Code::kIo, "libtirpc's service cannot listen", {}, errno};
  auto *transport = svc_vc_create(listener, kBufferBytes, kBufferBytes);
  if (transport == nullptr || !svc_reg(transport, kProgram, kVersion, answer, nullptr))
    return Error{Code::kIo, "libtirpc's service was not created"};
  return setting.over_tcp ? std::to_string(ntohs(address.port())) : name;
}

Status serve(const RpcSetting &setting, Board &board) {
  auto address = listen_at(setting);
  if (!address) return address.error();
  board.publish_address(setting.service(), *address);
  run(setting, board);
  return {};
}

// --- the clients -----------------------------------------------------------------------------------------------------

class Client {
 public:
  Status connect(Address address);
  ~Client() {
    if (client_ != nullptr) clnt_destroy(client_);
    if (socket_ >= 0) close(socket_);
  }
  Client() = default;
  Client(const Client &) = delete;

  void call(rpcproc_t procedure, xdrproc_t encode, void *arguments, xdrproc_t decode, void *result) {
    if (status_.ok()) check(clnt_call(client_, procedure, encode, arguments, decode, result, kPatience));
  }
  void nothing() { call(kNothing, kNone, nullptr, kNone, nullptr); }
  /// Sent with what comes after it.
  void batched() {
    if (status_.ok()) check(clnt_call(client_, kBatched, kNone, nullptr, nullptr, nullptr, kNoPatience));
  }
  const Status &status() const { return status_; }

 private:
  void check(clnt_stat outcome) {
    if (outcome != RPC_SUCCESS) status_ = Error{Code::kIo, clnt_sperror(client_, "libtirpc")};
  }

  int socket_ = -1;
  CLIENT *client_ = nullptr;
  Status status_;
};

Status Client::connect(Address address) {
  socket_ = address.new_socket();
  if (::connect(socket_, address.get(), address.length()) != 0)
    return Error{Code::kIo, "libtirpc's client cannot connect", {}, errno};
  int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  netbuf remote{address.length(), address.length(), address.get()};
  client_ = clnt_vc_create(socket_, &remote, kProgram, kVersion, kBufferBytes, kBufferBytes);
  if (client_ == nullptr) return Error{Code::kIo, clnt_spcreateerror("libtirpc")};
  return {};
}

Status connect(Client &client, const RpcSetting &setting, Board &board) {
  const auto published = board.address_of(setting.service());
  if (published.empty()) return Error{Code::kPeerLost, "libtirpc's service did not start"};
  return client.connect(address_from(setting, published));
}

/// Of size 0 the empty call; otherwise the procedure.
class Caller {
 public:
  Caller(Client &client, Procedure procedure, std::uint64_t size)
      : client_(client), procedure_(size == 0 ? kNothing : procedure), out_(size + 1, 'x'), in_(size + 1) {}
  void operator()(bool) {
    Block out{out_.data(), static_cast<u_int>(out_.size() - 1)}, in{in_.data(), 0};
    const auto codecs = codecs_of(procedure_);
    client_.call(procedure_, codecs.arguments, &out, codecs.result, &in);
  }

 private:
  Client &client_;
  Procedure procedure_;
  bench::PageAligned<char> out_, in_;
};

template <Procedure kProcedure, bool kPaced>
Status time_calls(const RpcSetting &setting, Board &board, int member, std::uint64_t size) {
  Client client;
  if (auto status = connect(client, setting, board); !status.ok()) return status;
  if (auto status = bench::meet(setting, board); !status.ok()) return status;
  Caller caller(client, kProcedure, size);
  auto &us = board.lane(member).us;
  us = kPaced ? bench::paced_us(bench::kPacedCalls, caller) : bench::typical_us(bench::kSocketRoundTrips, caller);
  return client.status();
}

/// One thread for each call in flight, with a connection of its own.
class Threads {
 public:
  Status open(const RpcSetting &setting, Board &board, std::uint64_t threads);
  bench::Tally tally_for(double seconds);
  Status status() const;

 private:
  std::vector<std::unique_ptr<Client>> clients_;
};

Status Threads::open(const RpcSetting &setting, Board &board, std::uint64_t threads) {
  while (clients_.size() < threads) {
    clients_.push_back(std::make_unique<Client>());
    if (auto status = connect(*clients_.back(), setting, board); !status.ok()) return status;
  }
  return {};
}

bench::Tally Threads::tally_for(double seconds) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  bench::Tally all{1e300, 0, 0};
  for (auto &client : clients_)
    threads.emplace_back([&] {
      auto mine = bench::tally_for(seconds, [&](bool) { client->nothing(); });
      std::lock_guard lock(mutex);
      all = bench::together(all, mine);
    });
  for (auto &thread : threads) thread.join();
  return all;
}

Status Threads::status() const {
  for (const auto &client : clients_)
    if (!client->status().ok()) return client->status();
  return {};
}

Status count_calls(const RpcSetting &setting, Board &board, int member, std::uint64_t in_flight) {
  Threads threads;
  if (auto status = threads.open(setting, board, in_flight); !status.ok()) return status;
  threads.tally_for(bench::kWarmUp_s);
  if (auto status = bench::meet(setting, board); !status.ok()) return status;
  board.lane(member).tally = threads.tally_for(bench::kTally_s);
  return threads.status();
}

/// All but the last call of a batch have no answer.
Status count_batches(const RpcSetting &setting, Board &board, int member, std::uint64_t in_flight) {
  Client client;
  if (auto status = connect(client, setting, board); !status.ok()) return status;
  auto once = [&](bool) {
    for (std::uint64_t i = 1; i < in_flight; ++i) client.batched();
    client.nothing();
  };
  bench::tally_for(bench::kWarmUp_s, once);
  if (auto status = bench::meet(setting, board); !status.ok()) return status;
  auto &tally = board.lane(member).tally;
  tally = bench::tally_for(bench::kTally_s, once);
  tally.calls *= static_cast<double>(in_flight);
  return client.status();
}

}  // namespace

int main(int argc, char **argv) {
  const bench::RpcBaseline baseline{"nessie-bench-tirpc",
                                    serve,
                                    {{"round-trip", time_calls<kEcho, false>, bench::median_us},
                                     {"paced", time_calls<kEcho, true>, bench::median_us},
                                     {"take", time_calls<kTake, false>, bench::median_us},
                                     {"write-encode", time_calls<kWrite, false>, bench::median_us},
                                     {"read-encode", time_calls<kRead, false>, bench::median_us},
                                     {"calls-per-s", count_calls, bench::calls_per_s},
                                     {"batched-per-s", count_batches, bench::calls_per_s}}};
  return bench::run_rpc_baseline(baseline, {argv + 1, argv + argc});
}
