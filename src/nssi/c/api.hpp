// SPDX-License-Identifier: BSD-3-Clause
// What the two sides of the C interface share: the open runtimes, last_error, XDR by libtirpc.
#pragma once

#include <nnti/c/paper_types.hpp>

#include <nssi/nssi.h>
#include <nssi/nssi.hpp>

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>

namespace nssi::c_api {

/// The paper's operations are known by their number alone.
inline constexpr Interface kInterface{0x4E535349, 1};
inline constexpr OpCode kKillOp = 0x4E534B00;  ///< beyond what a user's int opcode of small numbers takes
inline constexpr std::size_t kStubStackBytes = std::size_t{1} << 20;

/// Notes the sentence for nssi_last_error() and returns the code.
int fail(int code, std::string message);
int fail(const Error &error);

/// The body of a function of the header, which returns a code: no exception leaves it.
template <class Body> int guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) { return fail(NSSI_ENOMEM, "no more memory"); } catch (const std::exception &e) {
    return fail(NSSI_EIO, e.what());
  }
}

/// The runtime of an initialised transport; nullptr, with the error noted, if there is none.
std::shared_ptr<Runtime> runtime_of(nssi_rpc_transport transport);

/// The bytes that `proc` makes of `value`, behind `head` bytes of zeros; nothing if it fails.
std::optional<Bytes> xdr_encode(xdrproc_t proc, void *value, std::size_t head = 0);
/// False unless the bytes are exactly one value. The value's own memory is zeroed before by the caller.
bool xdr_decode(xdrproc_t proc, std::span<const std::byte> bytes, void *value);

/// Ends the calls of a runtime that is about to close.
void forget_calls(const Runtime &runtime);
/// Ends the service of a runtime that is about to close.
void forget_service(const Runtime &runtime);
/// Of the stub that runs for a request; for stubs that serve several operations.
struct RunningStub {
  int opcode = 0;
  Runtime *runtime = nullptr;
  const Request *request = nullptr;
};
/// Nothing: not called within that stub.
std::optional<RunningStub> running_stub(unsigned long request_id);
/// From now on the calling fiber is the one that runs the stub of the request. False: this is no fiber of its runtime.
bool adopt_request(unsigned long request_id);

/// Adds nssi_kill's operation to a runtime that has just been opened.
void add_kill(Runtime &runtime);

}  // namespace nssi::c_api
