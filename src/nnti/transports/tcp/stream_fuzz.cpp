// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer: whatever a peer may send over a stream, while a get of ours is under way and a buffer of ours can be put
// to.
#include "nnti/framed/transfers.hpp"
#include "nnti/transports/tcp/streams.hpp"
#include "nnti/transports/tcp/wire.hpp"

#include <sys/socket.h>
#include <base/testing/fuzz.hpp>

#include <array>
#include <cstdint>
#include <cstring>

namespace {

using namespace nnti;
using namespace nnti::tcp;

struct Ignored final : Completion {
  void on_complete(Status) override {}
};

struct Host final : LinkHost, framed::TransfersHost {
  void on_frame(std::span<const std::byte> frame) override { (void)framed::decode_frame(frame); }
  std::span<std::byte> on_chunk(std::span<const std::byte> header, std::size_t size_bytes) override {
    const auto chunk = framed::decode_chunk(header, size_bytes);
    if (!chunk) return {};
    arriving = *chunk;
    return transfers.on_chunk(arriving, size_bytes);
  }
  void on_chunk_end() override { transfers.on_chunk_received(arriving); }
  void on_chunk_sent(std::uint64_t) override {}
  void on_end(const Error &error) override { nessie::fuzz::require(error.code == Code::kBadMessage); }
  bool pump_chunks() override { return false; }
  Target target_of_put(std::uint64_t key, std::uint64_t offset, std::uint64_t length) override {
    if (key != 1) return {Code::kRefused, {}, nullptr};
    if (offset > memory.size() || length > memory.size() - offset) return {Code::kOutOfRange, {}, nullptr};
    return {Code::kOk, std::span(memory).subspan(offset, length), this};
  }
  void on_breach(const char *) override {}
  void finish_later() override {}
  void pump_transfers_later() override {}
  void answer(std::uint64_t, Code) override {}

  std::vector<std::byte> memory = std::vector<std::byte>(8192);
  framed::ChunkHeader arriving;
  framed::Transfers transfers{static_cast<framed::TransfersHost &>(*this)};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  (void)decode_hello({reinterpret_cast<const std::byte *>(data), size});
  std::array<int, 2> pair{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) return 0;
  const nessie::Fd peer(pair[1]);
  Poller poller;
  Streams streams(poller);
  Host host;
  Ignored ignored;
  std::vector<std::byte> local(8192);
  Link link(nessie::Fd{pair[0]}, streams, host);
  host.transfers.begin_get(local, ignored);
  (void)!::send(peer.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (streams.poll() > 0) host.transfers.finish();
  return 0;
}

namespace {

void append(nessie::fuzz::Bytes &bytes, const framed::ChunkHeader &header) {
  const Prefix prefix{sizeof header, static_cast<std::uint32_t>(header.length)};
  const auto at = bytes.size();
  bytes.resize(at + sizeof prefix + sizeof header + header.length);
  std::memcpy(&bytes[at], &prefix, sizeof prefix);
  std::memcpy(&bytes[at + sizeof prefix], &header, sizeof header);
}

}  // namespace

/// The answer to our get; a put; and both, one of them before a frame.
std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  const framed::ChunkHeader got{.operation = 1, .length = 8192, .type = framed::ChunkType::kGot};
  const framed::ChunkHeader put{.operation = 1, .key = 1, .offset = 100, .length = 3000};
  std::vector<Bytes> corpus(3);
  append(corpus[0], got);
  append(corpus[1], put);
  append(corpus[2], put);
  const Prefix frame{56, 0};
  corpus[2].insert(corpus[2].end(), std::as_bytes(std::span(&frame, 1)).begin(),
                   std::as_bytes(std::span(&frame, 1)).end());
  corpus[2].resize(corpus[2].size() + 56);
  append(corpus[2], got);
  return corpus;
}
