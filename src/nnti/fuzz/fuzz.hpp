// SPDX-License-Identifier: BSD-3-Clause
// Fuzz targets of what reads a peer's bytes. Each takes any bytes and returns; what it must not do is crash, hang, or
// read outside. Built as libFuzzer programs with -DNESSIE_FUZZ=ON (clang), and run by fuzz_test.cpp in any build.
#pragma once

#include "nnti/transport/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nnti::fuzz {

struct IgnoredCompletion final : Completion {
  void on_complete(Status) override {}
};

/// A byte stream into the bootstrap's page decoder.
void decode_pages(std::span<const std::byte> bytes);
/// What a peer says to a connector during the handshake.
void shake_hands(std::span<const std::byte> bytes);
/// A ring's contents, then what a connection does with them: reads, and answers relayed requests.
void read_ring(std::span<const std::byte> bytes);
/// A shared queue's contents, which its reader reads, and another writer writes into.
void read_queue(std::span<const std::byte> bytes);
/// A kind (one byte) and a message, as an endpoint over shm gets it from a peer.
void protocol_messages(std::span<const std::byte> bytes);

/// What a peer's channel sends, and what the network does to it meanwhile: each input is a list of events, of two bytes
/// (what happens, how much) and as many bytes as that says.
void drive_channel(std::span<const std::byte> bytes);

}  // namespace nnti::fuzz
