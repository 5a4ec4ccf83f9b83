// SPDX-License-Identifier: BSD-3-Clause
#include "tcp_streams.hpp"

#include "crew.hpp"
#include "page_aligned.hpp"

#include <base/fd.hpp>

#include <fmt/format.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Fd;
using nessie::Result;
using nessie::Status;

constexpr int kPort = 4000;
constexpr auto kLimit = std::chrono::seconds(120);

Error broken(const char *what) { return {Code::kIo, fmt::format("the TCP baseline cannot {}", what), {}, errno}; }

struct Address {
  explicit Address(int stream) {
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(kPort + stream));
    inet_pton(AF_INET, TwoHosts::address(1).c_str(), &name.sin_addr);
  }
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&name); }
  sockaddr_in name{};
};

/// What one member does: the first `streams` receive, each what one of the others sends.
class End {
 public:
  End(Board &board, int member, int streams, std::uint64_t bytes)
      : board_(board), streams_(streams), stream_(member % streams), lane_(board.lane(member)), buffer_(bytes) {}

  Status receive() {
    const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address address(stream_);
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener.get(), address.get(), sizeof address.name) != 0 || ::listen(listener.get(), 1) != 0)
      return broken("listen");
    if (!meet(1)) return broken("begin");
    const Fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!meet(2)) return broken("connect");
    lane_.tally.began_s = now_s();
    if (!read_all(connection.get(), buffer_)) return broken("receive");
    lane_.tally.ended_s = now_s();
    lane_.tally.calls = static_cast<double>(buffer_.size());
    return {};
  }

  Status send() {
    if (!meet(1)) return broken("begin");
    const Fd connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address address(stream_);
    if (::connect(connection.get(), address.get(), sizeof address.name) != 0) return broken("connect");
    if (!meet(2) || !write_all(connection.get(), buffer_)) return broken("send");
    return {};
  }

 private:
  bool meet(int meeting) { return board_.meet(2 * streams_, meeting); }

  Board &board_;
  const int streams_, stream_;
  Lane &lane_;
  PageAligned<std::byte> buffer_;
};

}  // namespace

Result<double> tcp_bandwidth(const TwoHosts &hosts, int streams, std::uint64_t bytes) {
  const auto each = bytes / static_cast<std::uint64_t>(streams);
  auto board = run_crew(2 * streams, Housing::kProcesses, kLimit, [&](Board &shared, int member) -> Status {
    const bool receives = member < streams;
    if (!hosts.enter_network(receives ? 1 : 0)) return broken("enter a host");
    End end(shared, member, streams, each);
    return receives ? end.receive() : end.send();
  });
  if (!board) return board.error();
  return calls_per_s(**board, streams) / 1e6;
}

}  // namespace bench
