// SPDX-License-Identifier: BSD-3-Clause
// What the C stubs of `nessie idl` call: values encoded by libtirpc's streams, on the runtime in C.
#include <nssi/stub.h>

#include <nssi/c/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace nssi::c_stub {
namespace {

using c_runtime::fail;
using c_runtime::guarded;
using Procedure = nssi_stub_procedure;

/// What fits is encoded, and decoded, without memory from the heap.
constexpr std::size_t kOnStack = 512;

/// Zeroed memory for values of a size that is not known here.
class Memory {
 public:
  explicit Memory(std::size_t size) : heap_(size > kOnStack ? std::calloc(1, size) : nullptr) {
    if (size <= kOnStack) std::memset(stack_, 0, size);
    bytes_ = size > kOnStack ? heap_ : stack_;
  }
  ~Memory() { std::free(heap_); }
  Memory(const Memory &) = delete;
  bool ok() const { return bytes_ != nullptr; }
  char *bytes() { return static_cast<char *>(bytes_); }

 private:
  alignas(std::max_align_t) char stack_[kOnStack];
  void *heap_, *bytes_;
};

/// Values one after the other, each with what encodes it.
class Values {
 public:
  virtual bool code(XDR &stream) const = 0;

 protected:
  ~Values() = default;
};

class OneValue final : public Values {
 public:
  OneValue(nssi_stub_coder coder, void *value) : coder_(coder), value_(value) {}
  bool code(XDR &stream) const override { return coder_ == nullptr || coder_(&stream, value_); }

 private:
  nssi_stub_coder coder_;
  void *value_;
};

/// Arguments that lie where the caller of a stub has them.
class ScatteredArguments final : public Values {
 public:
  ScatteredArguments(const Procedure &procedure, const void *const *at) : procedure_(procedure), at_(at) {}
  bool code(XDR &stream) const override {
    for (std::uint32_t i = 0; i < procedure_.count; ++i)
      if (!procedure_.arguments[i].code(&stream, const_cast<void *>(at_[i]))) return false;
    return true;
  }

 private:
  const Procedure &procedure_;
  const void *const *at_;
};

/// Arguments in the struct that the skeleton decodes them to.
class StructOfArguments final : public Values {
 public:
  StructOfArguments(const Procedure &procedure, char *at) : procedure_(procedure), at_(at) {}
  bool code(XDR &stream) const override {
    bool done = true;
    for (std::uint32_t i = 0; i < procedure_.count && (done || stream.x_op == XDR_FREE); ++i)
      done = procedure_.arguments[i].code(&stream, at_ + procedure_.arguments[i].offset) && done;
    return done;
  }

 private:
  const Procedure &procedure_;
  char *at_;
};

/// A stream that counts what is put into it, in 64 bits (xdr_sizeof() has 32).
class Counter {
 public:
  Counter() {
    stream_.x_op = XDR_ENCODE;
    stream_.x_ops = &ops();
    stream_.x_private = &bytes_;
  }
  Counter(const Counter &) = delete;
  XDR &stream() { return stream_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static bool_t add(XDR *stream, std::uint64_t bytes) {
    *static_cast<std::uint64_t *>(stream->x_private) += bytes;
    return TRUE;
  }
  static bool_t put_long(XDR *stream, const long *) { return add(stream, 4); }
  static bool_t put_bytes(XDR *stream, const char *, u_int size) { return add(stream, size); }
  static int32_t *in_place(XDR *, u_int) { return nullptr; }
  static const XDR::xdr_ops &ops() {
    static const auto all = [] {
      XDR::xdr_ops made{};
      made.x_putlong = put_long;
      made.x_putbytes = put_bytes;
      made.x_inline = in_place;
      return made;
    }();
    return all;
  }

  XDR stream_{};
  std::uint64_t bytes_ = 0;
};

/// 0: they cannot be encoded.
std::uint64_t size_of(const Values &values) {
  Counter counter;
  return values.code(counter.stream()) ? counter.bytes() : 0;
}

bool encode(const Values &values, void *bytes, std::size_t size, std::size_t &used) {
  XDR stream;
  ::xdrmem_create(&stream, static_cast<char *>(bytes), static_cast<u_int>(size), XDR_ENCODE);
  if (!values.code(stream)) return false;
  used = xdr_getpos(&stream);
  return true;
}

/// Memory to which a message's bytes go at once. Values that cannot be encoded have been refused before.
void encode_in_place(void *values, void *bytes, std::uint64_t size) {
  std::size_t used = 0;
  if (!encode(*static_cast<const Values *>(values), bytes, size, used)) std::memset(bytes, 0, size);
}

/// False unless the bytes are these values and nothing else.
bool decode(const Values &values, const void *bytes, std::uint64_t size) {
  if (size > std::numeric_limits<u_int>::max()) return false;
  char none = 0;
  XDR stream;
  ::xdrmem_create(&stream, size != 0 ? static_cast<char *>(const_cast<void *>(bytes)) : &none, static_cast<u_int>(size),
                  XDR_DECODE);
  return values.code(stream) && xdr_getpos(&stream) == size;
}

void free_values(const Values &values) {
  XDR stream{};
  stream.x_op = XDR_FREE;
  (void)values.code(stream);
}

/// Has the encoding of `values` sent: small ones by send_bytes(bytes, size), others by send_in_place(size).
template <class SendBytes, class SendInPlace>
int send(const Values &values, const char *name, SendBytes send_bytes, SendInPlace send_in_place) {
  std::array<char, kOnStack> bytes;
  std::size_t used = 0;
  if (encode(values, bytes.data(), bytes.size(), used)) return send_bytes(bytes.data(), used);
  const auto size = size_of(values);
  if (size > std::numeric_limits<u_int>::max())
    return fail(Code::kTooLarge, std::string(name) + ": a message of XDR has less than 4 GiB; send bulk data");
  if (size > kOnStack) return send_in_place(size);
  return fail(Code::kInvalidArgument,
              std::string(name) +
                  ": a value breaks a rule of the interface: a bound is exceeded, a string or an array is "
                  "null, or a union has no such arm");
}

int check_buffer(const Procedure &procedure, const nssi_rt_buffer *buffer) {
  if (procedure.rights == 0) return NESSIE_OK;
  if (c_runtime::is_open(buffer) && (nssi_rt_buffer_rights(buffer) & procedure.rights) == procedure.rights)
    return NESSIE_OK;
  return fail(Code::kInvalidArgument,
              "the bulk buffer is not registered, or not with the rights that the interface asks for: NSSI_RT_READ for "
              "`in`, NSSI_RT_WRITE for `out`");
}

int decode_result(const nssi_rt_call *call, const Procedure &procedure, void *result) {
  if (call->is_one_way) {
    if (result != nullptr) std::memset(result, 0, procedure.result_size);
    return NESSIE_OK;
  }
  const void *bytes = nullptr;
  std::uint64_t size = 0;
  if (int code = nssi_rt_result(call, &bytes, &size); code != NESSIE_OK) return code;
  Memory memory(procedure.result_size);
  if (!memory.ok()) return fail(Code::kNoMemory, "no memory for the result");
  const OneValue value(procedure.code_result, memory.bytes());
  if (!decode(value, bytes, size)) {
    free_values(value);
    return fail(Code::kBadMessage,
                std::string(procedure.name) + ": the result is not of the type that the interface says");
  }
  if (result != nullptr)
    std::memcpy(result, memory.bytes(), procedure.result_size);
  else
    free_values(value);
  return NESSIE_OK;
}

int reply(nssi_rt_request *request, const Procedure &procedure, const void *result) {
  if (procedure.code_result != nullptr && result == nullptr) return fail(Code::kInvalidArgument, "result is null");
  OneValue value(procedure.code_result, const_cast<void *>(result));
  return send(
      value, procedure.name, [&](const void *bytes, std::size_t size) { return nssi_rt_reply(request, bytes, size); },
      [&](std::size_t size) {
        return nssi_rt_reply_encoded(request, size, encode_in_place, static_cast<Values *>(&value));
      });
}

/// What the user's function returned instead of a result. If it is the code of an error that one of our functions
/// returned to it, that goes to the caller as it was.
void reply_failure(nssi_rt_request *request, int code) {
  const Status last = request->last;
  if (!last.ok() && static_cast<int>(last.code()) == code) {
    const auto &error = last.error();
    (void)nssi_rt_reply_error(request, code, static_cast<int32_t>(error.scope), error.cause, error.message.c_str());
  } else if (nssi_rt_reply_error(request, code, NSSI_RT_SCOPE_OPERATION, 0, nullptr) == NESSIE_INVALID_ARGUMENT) {
    (void)nssi_rt_reply_error(request, NESSIE_INTERNAL, NSSI_RT_SCOPE_SERVICE, code,
                              "the service's function returned a code that is none of nessie/codes.h");
  }
}

void answer(nssi_rt_request *request, const Procedure &procedure, const void *service, char *arguments) {
  Memory result(procedure.result_size);
  if (!result.ok()) return reply_failure(request, NESSIE_NO_MEMORY);
  const int code = procedure.call(service, request, arguments, result.bytes());
  if (!request->replied) {
    if (code != NESSIE_OK)
      reply_failure(request, code);
    else if (const int failed = reply(request, procedure, result.bytes()); failed != NESSIE_OK && !request->replied)
      (void)nssi_rt_reply_error(request, failed == NESSIE_TOO_LARGE ? failed : NESSIE_INTERNAL, NSSI_RT_SCOPE_SERVICE,
                                0, nssi_rt_last_error());
  }
  free_values(OneValue(procedure.code_result, result.bytes()));
}

void serve(nssi_rt_request *request, const Procedure &procedure, const void *service) {
  const void *bytes = nullptr;
  std::uint64_t size = 0;
  if (nssi_rt_args(request, &bytes, &size) != NESSIE_OK) return;
  Memory memory(procedure.arguments_size);
  if (!memory.ok()) return reply_failure(request, NESSIE_NO_MEMORY);
  const StructOfArguments arguments(procedure, memory.bytes());
  if (decode(arguments, bytes, size))
    answer(request, procedure, service, memory.bytes());
  else
    (void)nssi_rt_reply_error(request, NESSIE_BAD_MESSAGE, NSSI_RT_SCOPE_OPERATION, 0,
                              "the arguments are not of the types that the service's interface says");
  free_values(arguments);
}

int start(const nssi_rt_client *client, const Procedure &procedure, const void *const *arguments,
          nssi_rt_buffer *buffer, const nssi_rt_call_options *options, nssi_rt_call **call) {
  if (client == nullptr) return fail(Code::kInvalidArgument, "client is null");
  for (std::uint32_t i = 0; i < procedure.count; ++i)
    if (arguments[i] == nullptr)
      return fail(Code::kInvalidArgument, std::string(procedure.name) + ": an argument is null");
  if (int code = check_buffer(procedure, buffer); code != NESSIE_OK) return code;
  nssi_rt_call_options wanted = options != nullptr ? *options : nssi_rt_call_options{};
  if (procedure.rights != 0) wanted.buffer = buffer;
  const nssi_rt_service service{client->peer, procedure.program, procedure.version, client->provider};
  ScatteredArguments values(procedure, arguments);
  return send(
      values, procedure.name,
      [&](const void *bytes, std::size_t size) {
        return nssi_rt_start(client->runtime, &service, procedure.op, bytes, size, &wanted, call);
      },
      [&](std::size_t size) {
        return nssi_rt_start_encoded(client->runtime, &service, procedure.op, size, encode_in_place,
                                     static_cast<Values *>(&values), &wanted, call);
      });
}

}  // namespace
}  // namespace nssi::c_stub

using namespace nssi::c_stub;

int nssi_stub_start(const nssi_rt_client *client, const nssi_stub_procedure *procedure, const void *const *arguments,
                    nssi_rt_buffer *buffer, const nssi_rt_call_options *options, nssi_rt_call **call) {
  return guarded([&] { return start(client, *procedure, arguments, buffer, options, call); });
}

int nssi_stub_wait(nssi_rt_call *call, const nssi_stub_procedure *procedure, int32_t timeout_ms, void *result) {
  const int code = nssi_rt_wait(call, timeout_ms);
  return code != NESSIE_OK ? code : guarded([&] { return decode_result(call, *procedure, result); });
}

int nssi_stub_call(const nssi_rt_client *client, const nssi_stub_procedure *procedure, const void *const *arguments,
                   nssi_rt_buffer *buffer, const nssi_rt_call_options *options, void *result) {
  nssi_rt_call *call = nullptr;
  if (int code = nssi_stub_start(client, procedure, arguments, buffer, options, &call); code != NESSIE_OK) return code;
  const int code = nssi_stub_wait(call, procedure, -1, result);
  (void)nssi_rt_free_call(call);
  return code;
}

int nssi_stub_check(const void *service) {
  return service != nullptr ? NESSIE_OK : fail(nssi::Code::kInvalidArgument, "service is null");
}

int nssi_stub_offer(nssi_rt_runtime *runtime, uint32_t provider, const nssi_stub_procedure *procedure,
                    nssi_rt_handler handler, const void *service, int32_t kind) {
  const nssi_rt_operation operation{
      procedure->program,         procedure->version, provider, procedure->op, procedure->name, kind, 1, handler,
      const_cast<void *>(service)};
  return nssi_rt_add_operation(runtime, &operation);
}

void nssi_stub_serve(nssi_rt_request *request, const nssi_stub_procedure *procedure, const void *service) {
  const int code = guarded([&] {
    serve(request, *procedure, service);
    return nssi::Status();
  });
  if (code != NESSIE_OK) (void)nssi_rt_reply_error(request, code, NSSI_RT_SCOPE_OPERATION, 0, nullptr);
}

int nssi_stub_reply(nssi_rt_request *request, const nssi_stub_procedure *procedure, const void *result) {
  return guarded([&] { return reply(request, *procedure, result); });
}
