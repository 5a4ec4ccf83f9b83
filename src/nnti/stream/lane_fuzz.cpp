// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may send over a lane, while a get of ours is under way and a buffer of ours can be put to.
#include "nnti/stream/hello.hpp"
#include "nnti/stream/lane_connection.hpp"

#include <sys/socket.h>

#include <array>
#include <cstdint>

namespace {

using namespace nnti;
using namespace nnti::stream;

struct Ignored final : Completion {
  void on_complete(Status) override {}
};

struct Host final : LaneHost {
  void on_frame(std::span<const std::byte>) override {}
  void on_lane_end(const Error &) override {}
  TransfersHost::Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) override {
    if (key != 1) return {Code::kRefused, {}, nullptr};
    if (offset > memory.size() || length > memory.size() - offset) return {Code::kOutOfRange, {}, nullptr};
    return {Code::kOk, std::span(memory).subspan(offset, length), this};
  }
  void answer_transfer(std::uint64_t, Code) override {}
  std::vector<std::byte> memory = std::vector<std::byte>(512);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  (void)decode_lane_hello({reinterpret_cast<const std::byte *>(data), size});
  std::array<int, 2> pair{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) return 0;
  const nessie::Fd peer(pair[1]);
  Poller poller;
  LaneSet set(poller);
  Host host;
  Ignored ignored;
  std::vector<std::byte> local(512);
  LaneConnection lane(nessie::Fd(pair[0]), set, host);
  lane.transfers().begin_get(1, local, ignored);
  (void)!::send(peer.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (set.poll() > 0) set.finish();
  return 0;
}
