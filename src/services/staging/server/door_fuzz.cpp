// SPDX-License-Identifier: BSD-3-Clause
// Anybody on the node may talk to the door. Whatever a visitor says, he is answered or sent away in the end.
#include <services/staging/board.h>
#include <services/staging/server/door.hpp>

#include <base/testing/fuzz.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>

using namespace nessie::fuzz;
using namespace staging;

namespace {

const std::string &door() {
  static const auto door = Door::open([](const FileIdentity &, const std::function<void()> &done) { done(); },
                                      [](const std::function<void()> &alive) { alive(); });
  require(door.ok());
  return (*door)->name();
}

nessie::Fd knock() {
  nessie::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  door().copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + door().size());
  require(::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), size) == 0);
  return socket;
}

void say(const nessie::Fd &socket, const void *words, std::size_t size) {
  (void)!::send(socket.get(), words, size, MSG_NOSIGNAL);
}

}  // namespace

/// The first byte of what is left is the size of the next packet.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto socket = knock();
  for (std::span left(data, size); !left.empty();) {
    const auto packet = left.subspan(1, std::min<std::size_t>(left[0], left.size() - 1));
    say(socket, packet.data(), packet.size());
    left = left.subspan(1 + packet.size());
  }
  const nessie_board_place file{1, 2};
  say(socket, &file, sizeof file);
  pollfd event{socket.get(), POLLIN, 0};
  require(::poll(&event, 1, -1) == 1);
  return 0;
}
