// SPDX-License-Identifier: BSD-3-Clause
// NSSI's messages, field by field in XDR; README.md in this folder is the format's page.
#pragma once

#include <base/credential.hpp>
#include <nnti/nnti.hpp>
#include <nssi/nssi.hpp>
#include <xdr/codec.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace nssi::wire {

/// The first word of a message: 'N' 'S', the version, the kind.
enum class Kind : std::uint32_t {
  kRequest = 0x4E530201,
  kResult = 0x4E530202,
  kResultFetched = 0x4E530203,  ///< the long result was fetched, or is not wanted: free it
  kCancel = 0x4E530204,
  kCancelled = 0x4E530205,  ///< no transfer of that request is, or will be, under way
  kHello = 0x4E530206,
  kWelcome = 0x4E530207,
  kBusy = 0x4E530208,     ///< the request was turned away; it comes again when it is invited, or not at all
  kInvited = 0x4E530209,  ///< the oldest of the caller's requests that were turned away may come
  kProof = 0x4E53020A,    ///< of a role, for this connection
};

inline constexpr std::uint32_t kNoTimeout = 0xFFFFFFFF;

/// A registered buffer's description.
struct Buffer {
  nnti::RemoteBuffer remote;
  template <class A> void xdr(A &a) {
    a(remote.key, remote.address, remote.size_bytes, remote.location, remote.slot, remote.rights);
  }
};

/// The data of a request that are not one whole buffer: parts of buffers, one after the other. At least one.
struct Segment {
  std::uint32_t buffer = 0;  ///< which of the list's
  std::uint64_t offset = 0, size_bytes = 0;
  template <class A> void xdr(A &a) { a(buffer, offset, size_bytes); }
};
struct Segments {
  std::vector<Buffer> buffers;
  std::vector<Segment> segments;
  template <class A> void xdr(A &a) { a(buffers, segments); }
};
inline constexpr std::size_t kMostSegments = 65536;
constexpr std::size_t list_bytes(std::size_t buffers, std::size_t segments) { return 8 + buffers * 40 + segments * 20; }
inline constexpr std::size_t kMostListBytes = list_bytes(kMostSegments, kMostSegments);
/// Longer lists are fetched by those who need them.
inline constexpr std::size_t kMostInlineListBytes = 1024;

/// How every message starts; all of a ResultFetched, Cancel or Cancelled.
struct Prefix {
  Kind kind = Kind::kRequest;
  std::uint64_t id = 0;
  template <class A> void xdr(A &a) { a(kind, id); }
};

/// A caller's first message on a connection: whose requests will come. Random, the same on all its connections.
using SessionId = std::array<std::byte, 16>;
struct Hello {
  Prefix prefix{Kind::kHello, 0};
  SessionId session{};
  template <class A> void xdr(A &a) { a(prefix, session); }
};

/// The answer: which start of the service's process this is. Random, not 0. `challenge` is for whoever proves a role.
struct Welcome {
  Prefix prefix{Kind::kWelcome, 0};
  std::uint64_t incarnation = 0;
  nessie::Nonce challenge{};
  template <class A> void xdr(A &a) { a(prefix, incarnation, challenge); }
};

/// That the caller is an operator: over its session and the challenge, under the operators' credential; and over the
/// URL that it connected to: it proves nothing to a service that cannot be reached there.
struct RoleProof {
  Prefix prefix{Kind::kProof, 0};
  std::string url;
  nessie::Proof proof{};
  template <class A> void xdr(A &a) { a(prefix, url, proof); }
};
inline std::string role_of_operator(std::string_view url) { return "nssi operator of " + std::string(url); }

/// Nothing but a bit of what a message carries.
struct Flag {
  template <class A> void xdr(A &) {}
};

/// A message ends with a word of bits, `carries`, that says which of some more fields it has, and those fields.
template <class... Fields> std::uint32_t carried(const std::optional<Fields> &...fields) {
  std::uint32_t bits = 0, bit = 1;
  ((bits |= (fields.has_value() ? 1U : 0U) * bit, bit <<= 1), ...);
  return bits;
}
/// Those fields, in their order, after the word. Read, they are there afterwards if it says so.
template <class A, class... Fields> void carry(A &a, std::uint32_t carries, std::optional<Fields> &...fields) {
  if (carries >= 1U << sizeof...(Fields)) a.fail("a message carries what this version does not know");
  if constexpr (A::kReads) {
    std::uint32_t bit = 1;
    (((carries & bit) != 0 ? void(fields.emplace()) : fields.reset(), bit <<= 1), ...);
  }
  ((fields ? a(*fields) : void()), ...);
}

/// Which trace a request belongs to, and of which of its spans it is a part; see README.md.
struct Trace {
  std::uint64_t id = 0, span = 0;
  template <class A> void xdr(A &a) { a(id, span); }
};

/// How every request starts.
struct RequestHead {
  Prefix prefix{Kind::kRequest, 0};
  Interface interface;
  std::uint32_t provider = 0, op = 0;
  std::uint32_t timeout_ms = kNoTimeout;  ///< how long the caller still waits
  template <class A> void xdr(A &a, std::uint32_t &carries) {
    a(prefix.kind, prefix.id, interface.program, interface.version, provider, op, timeout_ms, carries);
  }
};

/// A Request that carries nothing but arguments, as most do: the same bytes.
struct PlainRequest : RequestHead {
  std::span<const std::byte> args;
  template <class A> void xdr(A &a) {
    static_assert(!A::kReads);
    std::uint32_t carries = 0;
    RequestHead::xdr(a, carries);
    a(args);
  }
};

struct Request : RequestHead {
  std::uint32_t carries = 0;          ///< of one that was decoded: whether it has any of these
  std::optional<Buffer> data;         ///< the caller's bulk buffer
  std::optional<Buffer> long_args;    ///< arguments that did not fit, left at the caller; `args` is empty then
  std::optional<Flag> does_not_wait;  ///< if the service is busy: its caller does not want it to be invited
  std::optional<Flag> is_one_way;     ///< answered when its handler begins
  std::optional<Flag> data_is_list;   ///< `data` holds a list of segments, left at the caller
  std::optional<std::span<const std::byte>> segments;  ///< instead of `data`: the list; borrowed from the message
  std::optional<Trace> trace;                          ///< somebody watches it
  std::span<const std::byte> args;                     ///< borrowed from the message
  /// Of all arguments, wherever they lie.
  std::uint64_t args_bytes() const { return args.size() + (long_args ? long_args->remote.size_bytes : 0); }
  template <class A> void xdr(A &a) {
    const auto before = carries;
    auto now = A::kReads ? 0 : carried(data, long_args, does_not_wait, is_one_way, data_is_list, segments, trace);
    RequestHead::xdr(a, now);
    if constexpr (A::kReads) carries = now;
    if ((before | now) != 0) carry(a, now, data, long_args, does_not_wait, is_one_way, data_is_list, segments, trace);
    a(args);
  }
};

struct Failure {
  std::uint32_t code = 0, scope = 0;
  std::int32_t cause = 0;
  std::string_view message;  ///< borrowed from the message
  template <class A> void xdr(A &a) { a(code, scope, cause, message); }
};

/// A Result that is nothing but bytes, as most are: the same bytes.
struct PlainResult {
  Prefix prefix{Kind::kResult, 0};
  std::span<const std::byte> result;  ///< borrowed from the message
  template <class A> void xdr(A &a) {
    std::uint32_t carries = 0;
    a(prefix.kind, prefix.id, carries);
    if (carries != 0) a.fail("the result is more than bytes");
    a(result);
  }
  /// False: the message is not one, but perhaps another Result; this is then unspecified.
  bool read(std::span<const std::byte> message) {
    xdr::Reader reader(message);
    xdr(reader);
    return reader.ok() && reader.left() == 0 && prefix.kind == Kind::kResult;
  }
};

struct Result {
  Prefix prefix{Kind::kResult, 0};
  std::optional<Failure> failure;
  std::optional<Buffer> long_result;  ///< left at the server until it hears ResultFetched
  std::span<const std::byte> result;  ///< borrowed from the message
  template <class A> void xdr(A &a) {
    auto carries = A::kReads ? 0 : carried(failure, long_result);
    a(prefix.kind, prefix.id, carries);
    carry(a, carries, failure, long_result);
    a(result);
  }
};

/// `retry_after_ms` is the service's guess of when it will have room.
struct Busy {
  Prefix prefix{Kind::kBusy, 0};
  std::uint32_t retry_after_ms = 0;
  template <class A> void xdr(A &a) { a(prefix, retry_after_ms); }
};

/// To the service whose number the caller's requests bear.
struct Invited {
  Prefix prefix{Kind::kInvited, 0};
  Interface interface;
  std::uint32_t provider = 0;
  template <class A> void xdr(A &a) { a(prefix, interface.program, interface.version, provider); }
};

/// The prefix of a message that may be anything; none if it is not one of ours.
inline std::optional<Prefix> prefix_of(std::span<const std::byte> message) {
  constexpr std::size_t kPrefixBytes = 12;
  if (message.size() < kPrefixBytes) return std::nullopt;
  Prefix prefix;
  xdr::Reader reader(message.first(kPrefixBytes));
  reader(prefix);
  const bool known = prefix.kind >= Kind::kRequest && prefix.kind <= Kind::kProof;
  return known ? std::optional(prefix) : std::nullopt;
}
/// kBadMessage unless the bytes are exactly one request (result) whose buffers' rights are known ones; it is then
/// unspecified.
nessie::Status decode_request(std::span<const std::byte> message, Request &request);
/// kBadMessage unless the bytes are exactly one list, each of whose segments is within one of its buffers.
nessie::Status decode_segments(std::span<const std::byte> list, Segments &segments);
nessie::Status decode_result(std::span<const std::byte> message, Result &result);

/// Of nessie/codes.h, and not success; and a scope that there is.
bool is_error(std::int64_t code, std::int64_t scope);
/// Its text is cut at 2048 bytes, or up to 3 before: where a character begins.
Failure to_failure(const nessie::Error &error);
nessie::Error to_error(const Failure &failure);

/// Every transport takes messages of this size.
inline constexpr std::size_t kAlwaysFits = 4096;
/// Arguments of up to this size go along with their request wherever the service is.
inline constexpr std::size_t kShortArgs = 1024;
/// The bytes of a request (result) apart from its args (result) and a list of segments: what does not fit a message is
/// sent as a long one.
inline constexpr std::size_t kMaxRequestOverhead = 12 + 5 * 4 + 4 + 2 * 40 + 16 + 4 + 3;
inline constexpr std::size_t kMaxResultOverhead = 12 + 4 + 40 + 4 + 3;

}  // namespace nssi::wire
