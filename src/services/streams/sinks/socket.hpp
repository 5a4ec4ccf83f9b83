// SPDX-License-Identifier: BSD-3-Clause
// TCP sockets that wait no longer than they are told to.
#pragma once

#include <base/clock.hpp>
#include <base/fd.hpp>
#include <nessie/result.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace nessie::streams::sinks {

struct HostPort {
  std::string host, port;
  /// "HOST:PORT", "[::1]:PORT", ":PORT". kInvalidArgument.
  static Result<HostPort> parse(std::string_view text);
};

/// kTimedOut. kPeerLost: nobody listens there, or the host is not known; the cause is errno.
Result<Fd> connect_to(const HostPort &where, Deadline deadline);
/// Port 0: any that is free. kInvalidArgument: there is no such address; kIo: another one listens there.
Result<Fd> listen_at(const HostPort &where);
/// What connects next. kTimedOut.
Result<Fd> accept_from(const Fd &listener, Deadline deadline);
/// "127.0.0.1:4711"
std::string address_of(const Fd &socket);

/// Until there is something to read, or the connection has ended. kTimedOut.
Status await_readable(const Fd &socket, Deadline deadline);
/// All of it. kTimedOut: the other side has not taken, or sent, all of it. kPeerLost: it has closed.
Status send_all(const Fd &socket, std::span<const std::byte> bytes, Deadline deadline);
Status receive_all(const Fd &socket, std::span<std::byte> bytes, Deadline deadline);

}  // namespace nessie::streams::sinks
