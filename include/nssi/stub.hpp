// SPDX-License-Identifier: BSD-3-Clause
// What the stubs and skeletons of `nessie idl` are made of: calls with typed arguments and results.
#pragma once

#include <nssi/nssi.hpp>
#include <xdr/codec.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace nssi {

/// What a call gives: Status where the interface says void.
template <class T> using Outcome = std::conditional_t<std::is_void_v<T>, Status, Result<T>>;

/// A call in progress whose result is a T. Moves; what is said of Call (nssi.hpp) about dropping, threads and fibers
/// holds.
template <class T> class Future {
 public:
  Future() = default;
  /// `is_one_way`: its result is not wanted, and does not come.
  explicit Future(Call call, bool is_one_way = false) : call_(std::move(call)), is_one_way_(is_one_way) {}
  /// A call that could not be made.
  explicit Future(Error error) : fault_(std::move(error)) {}

  /// True once the result, or an error, is here. Drives progress.
  bool test() { return !fault_.ok() || call_.test(); }
  /// As those of Call.
  bool is_over() const { return !fault_.ok() || call_.is_over(); }
  void cancel() { call_.cancel(); }
  void when_over(std::function<void()> callback) {
    if (!fault_.ok()) return callback();
    call_.when_over(std::move(callback));
  }
  /// `co_await std::move(future)` gives what wait() returns.
  auto operator co_await() && {
    struct Awaiter {
      Future future;
      bool await_ready() const { return future.is_over(); }
      void await_suspend(std::coroutine_handle<> rest) {
        future.when_over([rest] { rest.resume(); });
      }
      Outcome<T> await_resume() { return future.wait(); }
    };
    return Awaiter{std::move(*this)};
  }
  /// Waits for the result, which is decoded anew each time; that of a one-way call is as T begins. Errors as
  /// Call::wait; kBadMessage: the result is not of the type that the interface says; kInvalidArgument: the arguments
  /// break a rule of the interface, and were not sent.
  Outcome<T> wait(Deadline deadline = Deadline::never()) {
    if (auto status = settle(deadline); !status.ok()) return status.error();
    if (is_one_way_) return Outcome<T>(Nothing());
    if constexpr (std::is_void_v<T>)
      return call_.view().empty() ? Status() : Error{Code::kBadMessage, "there is a result where none should be"};
    else
      return xdr::decode<T>(call_.view());
  }
  /// As wait(), but does not decode the result.
  Status settle(Deadline deadline = Deadline::never()) { return fault_.ok() ? call_.wait(deadline) : fault_; }
  /// The call itself, for wait_any() of results of several types; one that could not be made is over.
  Call &call() { return call_; }

 private:
  using Nothing = std::conditional_t<std::is_void_v<T>, Status, T>;
  Call call_;
  Status fault_;
  bool is_one_way_ = false;
};

namespace stub {

template <class T> inline constexpr bool kIsFuture = false;
template <class T> inline constexpr bool kIsFuture<Future<T>> = true;

}  // namespace stub

/// A std::vector<Future<T>>, say.
template <class R>
concept RangeOfFutures = std::ranges::forward_range<R> && stub::kIsFuture<std::ranges::range_value_t<R>>;

/// Waits until one of the futures is over: its place. As wait_any() of calls; those that could not be made are over.
template <RangeOfFutures Futures>
Result<std::size_t> wait_any(Futures &&futures, Deadline deadline = Deadline::never()) {
  std::vector<Call *> calls;
  for (auto &future : futures) calls.push_back(&future.call());
  return wait_any(std::span<Call *const>(calls), deadline);
}

/// Waits for all of them; each one's wait() then returns at once. ok if all are, their results not looked at; otherwise
/// the error of the first that is not, kTimedOut if it was still in progress.
template <RangeOfFutures Futures> Status wait_all(Futures &&futures, Deadline deadline = Deadline::never()) {
  Status first;
  for (auto &future : futures) {
    auto status = future.settle(deadline);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

/// The same operation of several services, each with its client: a Future for each, in their order.
///
///     auto sums = nssi::multicast(clients, &ATLAS::FIRST::Client::ADD_async, 40, 2);
///     if (auto status = nssi::wait_all(sums); !status.ok()) …
///
/// `arguments`: those of the operation, with its CallOptions at the end if they are not the defaults.
template <class Clients, class Client, class T, class... Parameters, class... Arguments>
std::vector<Future<T>> multicast(Clients &&clients, Future<T> (Client::*operation)(Parameters...),
                                 const Arguments &...arguments) {
  std::vector<Future<T>> futures;
  for (auto &client : clients) {
    if constexpr (sizeof...(Arguments) == sizeof...(Parameters))
      futures.push_back((client.*operation)(arguments...));
    else
      futures.push_back((client.*operation)(arguments..., CallOptions()));
  }
  return futures;
}

namespace stub {

/// What fits is encoded without memory from the heap.
inline constexpr std::size_t kOnStack = 512;

/// Has the encoding of `values`, one after the other, sent: small ones by send(bytes), others by send(size, encoder).
/// kInvalidArgument, without sending: one of them breaks a rule of its interface.
template <class Send, class... Values> Status send_encoded(Send send, const Values &...values) {
  xdr::Sizer sizer;
  (sizer(const_cast<Values &>(values)), ...);  // xdr() is written once for reading and writing; Sizer only reads
  if (sizer.fault() != nullptr) return Error{Code::kInvalidArgument, sizer.fault()};
  const auto encode = [&](std::span<std::byte> at) {
    xdr::Writer writer(at.data());
    (writer(const_cast<Values &>(values)), ...);
  };
  if (sizer.size() > kOnStack) {
    send(sizer.size(), Encoder(std::cref(encode)));
  } else {
    std::array<std::byte, kOnStack> bytes;
    encode(bytes);
    send(std::span<const std::byte>(bytes).first(sizer.size()));
  }
  return {};
}

/// The calling side of one interface. Copies; any thread.
class Client {
 public:
  Client(Runtime &runtime, const Service &service) : runtime_(&runtime), service_(service) {}
  const Service &service() const { return service_; }

 protected:
  template <class T, class... Arguments>
  Future<T> start(OpCode op, const CallOptions &options, const Arguments &...arguments) {
    Call call;
    auto status =
        send_encoded([&](const auto &...args) { call = runtime_->call(service_, op, args..., options); }, arguments...);
    return status.ok() ? Future<T>(std::move(call), options.one_way) : Future<T>(status.error());
  }
  /// With memory that the service reads or writes, as `rights` say.
  template <class T, class... Arguments>
  Future<T> start_bulk(OpCode op, nnti::Rights rights, const nnti::RegisteredBuffer &data, CallOptions options,
                       const Arguments &...arguments) {
    if (!data.valid() || (data.rights() | rights) != data.rights())
      return Future<T>(Error{Code::kInvalidArgument,
                             "the bulk buffer is not registered, or not with the rights that "
                             "the interface asks for: read for `in`, write for `out`"});
    options.data = &data;
    return start<T>(op, options, arguments...);
  }

 private:
  Runtime *runtime_;
  Service service_;
};

template <class T> void reply(Request &request, const Outcome<T> &outcome) {
  if (!outcome.ok()) return (void)request.reply_error(outcome.error());
  if constexpr (std::is_void_v<T>) {
    (void)request.reply();
  } else {
    auto status = send_encoded([&](const auto &...result) { (void)request.reply(result...); }, *outcome);
    if (!status.ok()) (void)request.reply_error({Code::kInternal, status.error().message, nessie::Scope::kService});
  }
}

/// Arguments that were used, for the next request: what is decoded into memory that exists needs none from the kernel.
/// Any thread.
template <class Arguments> class Spares {
 public:
  ~Spares() {
    for (auto &spare : all_) delete spare.load();
  }
  std::unique_ptr<Arguments> take() {
    for (auto &spare : all_)
      if (spare.load(std::memory_order_relaxed) != nullptr)
        if (auto *one = spare.exchange(nullptr); one != nullptr) return std::unique_ptr<Arguments>(one);
    return std::make_unique<Arguments>();
  }
  void give_back(std::unique_ptr<Arguments> one, std::size_t bytes) {
    if (bytes > kMostBytes) return;
    for (auto &spare : all_) {
      Arguments *none = nullptr;
      if (!spare.compare_exchange_strong(none, one.get())) continue;
      (void)one.release();  // it lies there now
      return;
    }
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;
  std::array<std::atomic<Arguments *>, 2> all_{};
};

/// A handler that decodes the arguments, calls `method(request, arguments...)`, and replies what it returns. Arguments
/// that cannot be decoded are answered with kBadMessage.
template <class T, class... Arguments, class Method> Handler handler(Method method) {
  using All = std::tuple<Arguments...>;
  const auto serve = [method](Request &request, All &arguments) {
    xdr::Reader reader(request.args());
    std::apply([&](auto &...each) { reader(each...); }, arguments);
    if (auto status = reader.finish(); !status.ok()) return (void)request.reply_error(status.error());
    reply<T>(request, std::apply([&](const auto &...each) { return method(request, each...); }, arguments));
  };
  if constexpr (std::is_trivially_destructible_v<All>) {
    return [serve](Request &request) {
      All arguments{};
      serve(request, arguments);
    };
  } else {
    return [serve, spares = std::make_shared<Spares<All>>()](Request &request) {
      const auto size_bytes = request.args().size();
      auto arguments = spares->take();
      serve(request, *arguments);
      spares->give_back(std::move(arguments), size_bytes);
    };
  }
}

/// The operations of a provider, as a server offers them; those that come after one that could not be are not offered.
struct Offering {
  Runtime &runtime;
  Interface interface;
  std::uint32_t provider;
  std::string pool;  ///< of handlers that are fibers
  Status status;

  void add(OpCode op, const char *name, HandlerKind kind, Handler handler, Handler arrival = {}) {
    if (status.ok())
      status = runtime.add_operation({interface, provider, op, name, kind, std::move(handler), std::move(arrival), true,
                                      kind == HandlerKind::kFiber ? pool : std::string()});
  }
};

}  // namespace stub
}  // namespace nssi
