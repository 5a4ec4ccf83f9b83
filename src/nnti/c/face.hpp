// SPDX-License-Identifier: BSD-3-Clause
// What the C interfaces share: numbers, options from the environment, the contexts of this process, errors. Their
// headers declare the same names with different types, so this one includes neither.
#pragma once

#include <nnti/context.hpp>

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace nnti::face {

/// NNTI_result_t; alike in both.
#define NNTI_NUMBER(name, number, number_in_trios) k##name = number,
enum Number : int { NESSIE_RESULTS(NNTI_NUMBER, NNTI_NUMBER) };
#undef NNTI_NUMBER

Number number_of(Code code);
/// "NNTI_ETIMEDOUT", or "unknown NNTI result".
const char *name_of(int number);

/// How a call of a C interface ends: a number, and a sentence for nnti_last_error().
struct Outcome {
  Number number = kOK;
  std::string message;
  Outcome() = default;
  Outcome(Number n, std::string text) : number(n), message(std::move(text)) {}
  Outcome(const Error &error) : number(number_of(error.code)), message(error.message) {}
  Outcome(const Status &status) {
    if (!status.ok()) *this = Outcome(status.error());
  }
  bool ok() const { return number == kOK; }
};

bool was_open(ProcessId id);

inline Outcome null_argument() { return {kEINVAL, "an argument is NULL"}; }
inline Outcome not_open() { return {kENOTINIT, "the transport is not open; call NNTI_init first"}; }
/// For calls that name their transport by a buffer of ours: `call` gets what `find` finds by its owner.
template <class Buffer, class Find, class Call> Outcome with_owner(const Buffer *buffer, Find find, Call call) {
  constexpr int kBuffer = 1113;  // NNTI_dt_buffer
  if (buffer == nullptr) return null_argument();
  if (buffer->datatype != kBuffer) return {kEINVAL, "the buffer's handle is none; register it first"};
  const ProcessId owner{buffer->buffer_owner.peer.instance};
  if (auto found = find(owner)) return call(found);
  if (was_open(owner)) return not_open();
  return {kEPERM, "the buffer is a peer's; this can only be done with one's own"};
}

/// Handles of peers' buffers.
template <class Buffer, class Convert>
Outcome read_remotes(const Buffer **list, std::uint64_t count, Convert convert, std::vector<BufferHandle> &out) {
  if (list == nullptr) return null_argument();
  for (std::uint64_t i = 0; i < count; ++i) {
    if (list[i] == nullptr) return null_argument();
    out.push_back(convert(*list[i]));
  }
  return {};
}

/// Empty, as if there were none: more than a buffer may have. A caller's wrong count is not believed.
std::vector<std::span<std::byte>> pieces_of(char **segments, const std::uint64_t *lengths, std::uint64_t count);
Outcome copy_url(const Context &context, char *url, std::uint64_t max_bytes);

/// How the operation of `event` ended.
Outcome outcome_of(const Event &event);

/// Remembers the sentence for this thread.
Number report(const Outcome &outcome);
const std::string &last_error();

/// Runs a call; nothing is thrown into C.
void log_exception(const std::exception &error);
template <class Call> Number guarded(Call call) noexcept {
  try {
    return report(call());
  } catch (const std::bad_alloc &) { return kENOMEM; } catch (const std::exception &error) {
    log_exception(error);
    return kEIO;
  }
}

/// Milliseconds; -1: for ever; 0: not at all. kInvalidArgument: another negative number.
Result<Deadline> deadline_of(int timeout_ms);

/// What an enumeration's bytes say: a C program may pass any number.
template <class Enumeration> int number_of(const Enumeration &value) {
  static_assert(sizeof value == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

/// What EndpointOptions::transports must be for the transport with this number. kInvalidArgument: there is none;
/// kUnsupported: it does not exist here; the message lists those that do.
Result<std::vector<std::string>> transports_numbered(int id);

/// Settings and credential from the environment. `my_url` asks for where to listen (null: anywhere). `ignored`: names
/// of transports of old, whose URLs are taken for advice that means nothing here.
Result<ContextOptions> options_for(int transport, const char *my_url, std::span<const std::string_view> ignored = {});

/// The contexts of this process, by the process id that handles carry; so that a handle that is not one of ours, or no
/// longer, is told apart.
void add_context(std::shared_ptr<Context> context);
std::shared_ptr<Context> find_context(ProcessId id);
std::shared_ptr<Context> remove_context(ProcessId id);

}  // namespace nnti::face
