// SPDX-License-Identifier: BSD-3-Clause
// Of a process's sockets, exactly those between two fabric addresses are shut down.
#include "nnti/transports/ofi/sockets.hpp"

#include <gtest/gtest.h>
#include <base/fd.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace {

using nessie::Fd;

/// A port of the loopback that takes connections, as an endpoint of libfabric's tcp has one.
struct Port {
  Fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};

  Port() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr *>(&address), size), 0);
    EXPECT_EQ(::listen(listener.get(), 4), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr *>(&address), &size), 0);
  }
  std::span<const std::byte> name() const { return std::as_bytes(std::span(&address, 1)); }
};

struct Connection {
  Fd near{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}, far;

  explicit Connection(const Port &to) {
    EXPECT_EQ(::connect(near.get(), reinterpret_cast<const sockaddr *>(&to.address), sizeof to.address), 0);
    far.reset(::accept4(to.listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  bool lives() const {
    char byte = 0;
    return ::recv(near.get(), &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
};

TEST(OfiSockets, ThoseBetweenTwoAddressesAreShut_InWhicheverDirectionTheyWereMade) {
  Port ours, theirs, another;
  Connection to_them(theirs), to_us(ours), elsewhere(another);
  nnti::ofi::shut_sockets_between(ours.name(), theirs.name());
  EXPECT_FALSE(to_them.lives());
  EXPECT_FALSE(to_us.lives());
  EXPECT_TRUE(elsewhere.lives());
}

TEST(OfiSockets, AnAddressOfAnotherKindMatchesNone) {
  Port ours;
  Connection to_us(ours);
  const std::byte strange[3]{};
  nnti::ofi::shut_sockets_between(ours.name(), strange);
  nnti::ofi::shut_sockets_between(strange, {});
  EXPECT_TRUE(to_us.lives());
}

}  // namespace
