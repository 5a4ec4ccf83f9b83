// SPDX-License-Identifier: BSD-3-Clause
// What the stubs and skeletons of `nessie idl` are made of: calls with typed arguments and results.
#pragma once

#include <nssi/nssi.hpp>
#include <xdr/codec.hpp>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

namespace nssi {

/// What a call gives: Status where the interface says void.
template <class T> using Outcome = std::conditional_t<std::is_void_v<T>, Status, Result<T>>;

/// A call in progress whose result is a T. Moves; what is said of Call (nssi.hpp) about dropping, threads and fibers
/// holds.
template <class T> class Future {
 public:
  Future() = default;
  explicit Future(Call call) : call_(std::move(call)) {}
  /// A call that could not be made.
  explicit Future(Error error) : fault_(std::move(error)) {}

  /// True once the result, or an error, is here. Drives progress.
  bool test() { return !fault_.ok() || call_.test(); }
  /// Waits for the result, which is decoded anew each time. Errors as Call::wait; kBadMessage: the result is not of the
  /// type that the interface says; kInvalidArgument: the arguments break a rule of the interface, and were not sent.
  Outcome<T> wait(Deadline deadline = Deadline::never()) {
    if (!fault_.ok()) return fault_.error();
    if (auto status = call_.wait(deadline); !status.ok()) return status.error();
    if constexpr (std::is_void_v<T>)
      return call_.result().empty() ? Status() : Error{Code::kBadMessage, "there is a result where none should be"};
    else
      return xdr::decode<T>(call_.result());
  }

 private:
  Call call_;
  Status fault_;
};

namespace stub {

/// What fits is encoded without memory from the heap.
inline constexpr std::size_t kOnStack = 512;

/// Gives `use` the encoding of `values`, one after the other. kInvalidArgument, without using it: one of them breaks a
/// rule of its interface.
template <class Use, class... Values> Status with_encoded(Use use, const Values &...values) {
  xdr::Sizer sizer;
  (sizer(const_cast<Values &>(values)), ...);  // xdr() is written once for reading and writing; Sizer only reads
  if (sizer.fault() != nullptr) return Error{Code::kInvalidArgument, sizer.fault()};
  const auto encode = [&](std::byte *at) {
    xdr::Writer writer(at);
    (writer(const_cast<Values &>(values)), ...);
    use(std::span<const std::byte>(at, sizer.size()));
  };
  if (sizer.size() <= kOnStack) {
    std::array<std::byte, kOnStack> bytes;
    encode(bytes.data());
  } else {
    Bytes bytes(sizer.size());
    encode(bytes.data());
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
    auto status = with_encoded([&](auto bytes) { call = runtime_->call(service_, op, bytes, options); }, arguments...);
    return status.ok() ? Future<T>(std::move(call)) : Future<T>(status.error());
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
    auto status = with_encoded([&](auto bytes) { (void)request.reply(bytes); }, *outcome);
    if (!status.ok()) (void)request.reply_error({Code::kInternal, status.error().message, nessie::Scope::kService});
  }
}

/// A handler that decodes the arguments, calls `method(request, arguments...)`, and replies what it returns. Arguments
/// that cannot be decoded are answered with kBadMessage.
template <class T, class... Arguments, class Method> Handler handler(Method method) {
  return [method](Request &request) {
    std::tuple<Arguments...> arguments;
    xdr::Reader reader(request.args());
    std::apply([&](auto &...each) { reader(each...); }, arguments);
    if (auto status = reader.finish(); !status.ok()) return (void)request.reply_error(status.error());
    reply<T>(request, std::apply([&](const auto &...each) { return method(request, each...); }, arguments));
  };
}

}  // namespace stub
}  // namespace nssi
