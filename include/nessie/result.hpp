// SPDX-License-Identifier: BSD-3-Clause
// Result and Error: how every function of ours fails. A small subset of std::expected.
#pragma once

#include <nessie/codes.h>

#include <cassert>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace nessie {

/// The code of an error, named by what the caller does next (see codes.h).
enum class Code : int {
  kOk = NESSIE_OK,
  kTimedOut = NESSIE_TIMED_OUT,
  kPeerLost = NESSIE_PEER_LOST,
  kRefused = NESSIE_REFUSED,
  kInvalidArgument = NESSIE_INVALID_ARGUMENT,
  kOutOfRange = NESSIE_OUT_OF_RANGE,
  kNotFound = NESSIE_NOT_FOUND,
  kExists = NESSIE_EXISTS,
  kUnsupported = NESSIE_UNSUPPORTED,
  kNoMemory = NESSIE_NO_MEMORY,
  kBusy = NESSIE_BUSY,
  kBadMessage = NESSIE_BAD_MESSAGE,
  kIo = NESSIE_IO,
  kCancelled = NESSIE_CANCELLED,
  kNoResult = NESSIE_NO_RESULT,
  kInternal = NESSIE_INTERNAL,
  kTooLarge = NESSIE_TOO_LARGE,
  kInterrupted = NESSIE_INTERRUPTED,
  kUnavailable = NESSIE_UNAVAILABLE,
};

/// The largest thing that is lost with the operation.
enum class Scope { kOperation, kPeer, kService, kProcess };

/// Why something failed: a code for the program, a cause (errno, or the transport's own code) for the expert, and a
/// sentence for people that says what to do.
struct Error {
  Code code = Code::kInternal;
  std::string message;
  Scope scope = Scope::kOperation;
  int cause = 0;
  /// With kBusy, where it is known: when to try again.
  std::chrono::milliseconds retry_after{0};

  /// "PEER_LOST: the staging server shm://… died (cause 104)".
  std::string to_string() const;
};

/// A value, or the error that kept it from being made.
template <class T> class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T &value() & {
    assert(ok());
    return std::get<0>(state_);
  }
  const T &value() const & {
    assert(ok());
    return std::get<0>(state_);
  }
  T &&value() && {
    assert(ok());
    return std::get<0>(std::move(state_));
  }
  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T &&operator*() && { return std::move(*this).value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }
  const Error &error() const {
    assert(!ok());
    return std::get<1>(state_);
  }
  Code code() const { return ok() ? Code::kOk : error().code; }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an error. Success costs no allocation.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  Status(const Status &other) : error_(other.error_ ? std::make_unique<Error>(*other.error_) : nullptr) {}
  Status &operator=(const Status &other) {
    error_ = other.error_ ? std::make_unique<Error>(*other.error_) : nullptr;
    return *this;
  }
  Status(Status &&) noexcept = default;
  Status &operator=(Status &&) noexcept = default;

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  const Error &error() const {
    assert(!ok());
    return *error_;
  }
  Code code() const { return ok() ? Code::kOk : error_->code; }

 private:
  std::unique_ptr<Error> error_;
};

}  // namespace nessie
