// SPDX-License-Identifier: BSD-3-Clause
// nessie-bench-grpc: what gRPC takes (rpc_baseline.hpp says how it is run). Both sides use the asynchronous interface
// with one completion queue and one thread, which has fewer changes of thread than the synchronous and the callback
// interface; the service has enough calls posted for all clients. Channels are bare: no filters that are not needed.
#include "rpc_baseline.hpp"
#include "timing.hpp"

#include <grpcpp/grpcpp.h>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <list>
#include <memory>
#include <optional>

#include "grpc_baseline.grpc.pb.h"

namespace {

using bench::Baseline;
using bench::Block;
using bench::Board;
using bench::Nothing;
using bench::RpcSetting;
using nessie::Code;
using nessie::Error;
using nessie::Status;

constexpr int kMostBytes = 32 << 20;
constexpr auto kSilence = std::chrono::seconds(60);

/// What has happened on a queue, as its tag; null if nothing did, for a glance.
class Queue {
 public:
  Queue(const RpcSetting &setting, int member) : polls_(setting.polls), yields_(setting.shares_core(member)) {}

  template <class Tag> Tag *next(grpc::CompletionQueue &queue, bool &ok) {
    void *tag = nullptr;
    for (unsigned turn = 0; polls_ && turn < bench::kTurnsPerGlance; ++turn) {
      if (queue.AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT)
        return static_cast<Tag *>(tag);
      if (yields_) sched_yield();
    }
    if (polls_) return nullptr;
    auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(bench::kGlance_ms);
    return queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT ? static_cast<Tag *>(tag) : nullptr;
  }

 private:
  bool polls_, yields_;
};

// --- the service -----------------------------------------------------------------------------------------------------

/// A place for one call after the other.
class Place {
 public:
  virtual ~Place() = default;
  /// A call has come, or its answer has gone. False: the queue is closing.
  virtual void go_on(bool ok) = 0;
};

using Service = Baseline::AsyncService;

template <class Request, class Result> class PlaceFor final : public Place {
 public:
  using Responder = grpc::ServerAsyncResponseWriter<Result>;
  using Post = void (Service::*)(grpc::ServerContext *, Request *, Responder *, grpc::CompletionQueue *,
                                 grpc::ServerCompletionQueue *, void *);
  using Answer = void (*)(Request &request, Result &result);

  PlaceFor(Service &service, grpc::ServerCompletionQueue &queue, Post post, Answer answer)
      : service_(service), queue_(queue), post_(post), answer_(answer) {
    await();
  }
  void go_on(bool ok) override {
    if (!ok) return;
    answering_ = !answering_;
    if (!answering_) return await();
    answer_(request_, result_);
    responder_->Finish(result_, grpc::Status::OK, this);
  }

 private:
  void await() {
    responder_.reset();
    context_.emplace();
    responder_.emplace(&*context_);
    (service_.*post_)(&*context_, &request_, &*responder_, &queue_, &queue_, this);
  }

  Service &service_;
  grpc::ServerCompletionQueue &queue_;
  Post post_;
  Answer answer_;
  bool answering_ = false;
  std::optional<grpc::ServerContext> context_;
  std::optional<Responder> responder_;
  Request request_;
  Result result_;
};

class Server {
 public:
  Status open(const RpcSetting &setting, Board &board);
  void run(const RpcSetting &setting, Board &board);
  ~Server();

 private:
  void post_places(const RpcSetting &setting);

  Service service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::list<std::unique_ptr<Place>> places_;
};

Status Server::open(const RpcSetting &setting, Board &board) {
  const auto local = fmt::format("unix-abstract:nessie-bench-grpc-{}", getpid());
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(setting.over_tcp ? "127.0.0.1:0" : local, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_MINIMAL_STACK, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.SetMaxReceiveMessageSize(kMostBytes);
  builder.RegisterService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (!server_) return Error{Code::kIo, "gRPC's service was not created"};
  post_places(setting);
  board.publish_address(setting.service(), setting.over_tcp ? fmt::format("127.0.0.1:{}", port) : local);
  return {};
}

void Server::post_places(const RpcSetting &setting) {
  constexpr int kPerClient = 64;
  for (int i = 0; i < setting.clients * kPerClient; ++i)
    places_.push_back(std::make_unique<PlaceFor<Nothing, Nothing>>(service_, *queue_, &Service::RequestDoNothing,
                                                                   [](Nothing &, Nothing &) {}));
  for (int i = 0; i < setting.clients; ++i) {
    places_.push_back(std::make_unique<PlaceFor<Block, Block>>(
        service_, *queue_, &Service::RequestEcho,
        [](Block &block, Block &echo) { echo.mutable_data()->swap(*block.mutable_data()); }));
    places_.push_back(std::make_unique<PlaceFor<Block, Nothing>>(service_, *queue_, &Service::RequestTake,
                                                                 [](Block &, Nothing &) {}));
  }
}

void Server::run(const RpcSetting &setting, Board &board) {
  Queue queue(setting, setting.service());
  for (bool ok = false;;) {
    if (auto *place = queue.next<Place>(*queue_, ok))
      place->go_on(ok);
    else if (bench::is_over(setting, board))
      return;
  }
}

Server::~Server() {
  if (server_) server_->Shutdown(std::chrono::system_clock::now());
  if (queue_) queue_->Shutdown();
  void *tag;
  bool ok;
  while (queue_ && queue_->Next(&tag, &ok)) {}
}

Status serve(const RpcSetting &setting, Board &board) {
  Server server;
  if (auto status = server.open(setting, board); !status.ok()) return status;
  server.run(setting, board);
  return {};
}

// --- the clients -----------------------------------------------------------------------------------------------------

/// A channel, and a queue for what becomes of its calls.
class Client {
 public:
  Client(const RpcSetting &setting, int member) : waiting_(setting, member) {}
  Status connect(const RpcSetting &setting, Board &board);
  ~Client();
  Client(const Client &) = delete;

  Baseline::Stub &stub() { return *stub_; }
  grpc::CompletionQueue &queue() { return queue_; }
  /// The call that is over; null if something went wrong.
  template <class Call> Call *next();
  const Status &status() const { return status_; }
  void check(const grpc::Status &outcome) {
    if (!outcome.ok()) status_ = Error{Code::kIo, "gRPC: " + outcome.error_message()};
  }

 private:
  Queue waiting_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<Baseline::Stub> stub_;
  Status status_;
};

Status Client::connect(const RpcSetting &setting, Board &board) {
  const auto address = board.address_of(setting.service());
  if (address.empty()) return Error{Code::kPeerLost, "gRPC's service did not start"};
  grpc::ChannelArguments bare;
  bare.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
  bare.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  bare.SetMaxReceiveMessageSize(kMostBytes);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), bare);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + kSilence))
    return Error{Code::kIo, "gRPC's client cannot connect"};
  stub_ = Baseline::NewStub(channel);
  return {};
}

Client::~Client() {
  queue_.Shutdown();
  void *tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {}
}

template <class Call> Call *Client::next() {
  bool ok = false;
  for (auto until = bench::now_s() + kSilence.count(); status_.ok() && bench::now_s() < until;)
    if (auto *call = waiting_.next<Call>(queue_, ok)) {
      check(call->outcome);
      return call;
    }
  if (status_.ok()) status_ = Error{Code::kTimedOut, "gRPC's service fell silent"};
  return nullptr;
}

template <class Result> struct Call {
  std::optional<grpc::ClientContext> context;
  Result result;
  grpc::Status outcome;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Result>> reader;

  template <class Start> void start(Start &&with_context) {
    reader.reset();
    context.emplace();
    reader = with_context(&*context);
    reader->Finish(&result, &outcome, this);
  }
};

/// One call after the other. Of size 0 the empty call; otherwise the method with a block of that size.
template <class Result> class Caller {
 public:
  using Start = std::unique_ptr<grpc::ClientAsyncResponseReader<Result>> (Baseline::Stub::*)(grpc::ClientContext *,
                                                                                             const Block &,
                                                                                             grpc::CompletionQueue *);
  Caller(Client &client, Start start, std::uint64_t size) : client_(client), start_(start) {
    block_.mutable_data()->resize(size, 'x');
  }
  void operator()(bool) {
    if (!client_.status().ok()) return;
    if (block_.data().empty()) {
      empty_.start([&](auto *context) { return client_.stub().AsyncDoNothing(context, {}, &client_.queue()); });
      client_.next<Call<Nothing>>();
    } else {
      full_.start([&](auto *context) { return (client_.stub().*start_)(context, block_, &client_.queue()); });
      client_.next<Call<Result>>();
    }
  }

 private:
  Client &client_;
  Start start_;
  Block block_;
  Call<Nothing> empty_;
  Call<Result> full_;
};

template <class Result, typename Caller<Result>::Start kStart, bool kPaced>
Status time_calls(const RpcSetting &setting, Board &board, int member, std::uint64_t size) {
  Client client(setting, member);
  if (auto status = client.connect(setting, board); !status.ok()) return status;
  if (auto status = bench::meet(setting, board); !status.ok()) return status;
  Caller<Result> caller(client, kStart, size);
  auto &us = board.lane(member).us;
  us = kPaced ? bench::paced_us(bench::kPacedCalls, caller) : bench::typical_us(bench::kSocketRoundTrips, caller);
  return client.status();
}

/// Empty calls, so many in flight at any time.
Status count_calls(const RpcSetting &setting, Board &board, int member, std::uint64_t in_flight) {
  Client client(setting, member);
  if (auto status = client.connect(setting, board); !status.ok()) return status;
  auto start = [&](Call<Nothing> &call) {
    call.start([&](auto *context) { return client.stub().AsyncDoNothing(context, {}, &client.queue()); });
  };
  std::vector<Call<Nothing>> calls(in_flight);
  for (auto &call : calls) start(call);
  auto once = [&](bool) {
    if (auto *call = client.next<Call<Nothing>>()) start(*call);
  };
  bench::tally_for(bench::kWarmUp_s, once);
  if (auto status = bench::meet(setting, board); !status.ok()) return status;
  board.lane(member).tally = bench::tally_for(bench::kTally_s, once);
  for (std::size_t left = 0; left < calls.size() && client.next<Call<Nothing>>(); ++left) {}
  return client.status();
}

using Stub = Baseline::Stub;

}  // namespace

int main(int argc, char **argv) {
  const bench::RpcBaseline baseline{"nessie-bench-grpc",
                                    serve,
                                    {{"round-trip", time_calls<Block, &Stub::AsyncEcho, false>, bench::median_us},
                                     {"paced", time_calls<Block, &Stub::AsyncEcho, true>, bench::median_us},
                                     {"take", time_calls<Nothing, &Stub::AsyncTake, false>, bench::median_us},
                                     {"calls-per-s", count_calls, bench::calls_per_s}}};
  return bench::run_rpc_baseline(baseline, {argv + 1, argv + argc});
}
