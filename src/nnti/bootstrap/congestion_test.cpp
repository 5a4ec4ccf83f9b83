// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/bootstrap/congestion.hpp"

#include "base/fd.hpp"
#include "nnti/bootstrap/bootstrap.hpp"
#include "nnti/bootstrap/network_address.hpp"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace nnti {
namespace {

std::string control_of(int socket) {
  std::array<char, 64> name{};
  auto size = static_cast<socklen_t>(name.size() - 1);
  EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
  return name.data();
}

nessie::Fd new_socket() { return nessie::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

std::string control_of_the_host() { return control_of(new_socket().get()); }

sockaddr_in loopback(unsigned number, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
  address.sin_port = htons(port);
  return address;
}

class Congestion : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listening = bootstrap::listen_tcp("127.0.0.1", 0);
    ASSERT_TRUE(listening.ok());
    listening_ = std::move(*listening);
  }
  nessie::Fd accept() { return nessie::Fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  std::uint16_t port() const { return port_of(listening_.get()); }

  nessie::Fd listening_;
};

TEST_F(Congestion, OnOneHost_NeitherEndEverHasThatOfTheHost) {
  const auto connecting = bootstrap::connect_tcp("127.0.0.1", port());
  ASSERT_TRUE(connecting.ok());
  const nessie::Fd accepted = accept();
  for (const int socket : {connecting->get(), accepted.get()}) {
    EXPECT_EQ(control_of(socket), "reno");
    congestion::choose(socket);
    EXPECT_EQ(control_of(socket), "reno");
  }
}

/// Two addresses of the loopback are as good as two hosts.
TEST_F(Congestion, BetweenHosts_BothEndsGetThatOfTheHost) {
  const nessie::Fd connecting = new_socket();
  congestion::begin_without_pace(connecting.get());
  const auto own = loopback(1, 0), peer = loopback(0, port());
  ASSERT_EQ(::bind(connecting.get(), reinterpret_cast<const sockaddr *>(&own), sizeof own), 0);
  ASSERT_EQ(::connect(connecting.get(), reinterpret_cast<const sockaddr *>(&peer), sizeof peer), 0);
  const nessie::Fd accepted = accept();
  for (const int socket : {connecting.get(), accepted.get()}) {
    congestion::choose(socket);
    EXPECT_EQ(control_of(socket), control_of_the_host());
  }
}

TEST_F(Congestion, AnotherOne_IsLeftAlone) {
  const auto connecting = bootstrap::connect_tcp("127.0.0.1", port());
  ASSERT_TRUE(connecting.ok());
  constexpr std::string_view other = "cubic";
  if (::setsockopt(connecting->get(), IPPROTO_TCP, TCP_CONGESTION, other.data(), other.size()) != 0)
    GTEST_SKIP() << "this kernel has no other control for everybody";
  congestion::choose(connecting->get());
  EXPECT_EQ(control_of(connecting->get()), other);
}

}  // namespace
}  // namespace nnti
