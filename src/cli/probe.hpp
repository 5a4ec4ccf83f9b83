// SPDX-License-Identifier: BSD-3-Clause
// Whether and how an endpoint can be reached from here, and how well: a self-test of the connection.
#pragma once

#include <base/config.hpp>
#include <base/credential.hpp>
#include <nessie/result.hpp>
#include <nnti/context.hpp>

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

/// Medians.
struct Measurement {
  double connect_ms = 0;          ///< to set up another connection, by an endpoint that has the transport open
  double half_round_trip_us = 0;  ///< of a message of 8 bytes
  double get_mapped_MBps = 0, put_mapped_MBps = 0;  ///< 1 MiB, the peer's memory is of Endpoint::allocate()
  double get_own_MBps = 0, put_own_MBps = 0;        ///< 1 MiB, the peer's memory is its application's own
  double register_us = 0;                      ///< to register, describe and unregister 1 MiB of the application's here
  std::optional<nnti::Rendezvous> rendezvous;  ///< of large messages; needs a context at the other side
};

/// What became of one URL, or of a list of them.
struct Probe {
  std::string url;
  std::string transport;                              ///< which reaches it; empty: none does
  std::string explanation;                            ///< why this one; or why it cannot be reached
  std::size_t in_place_bytes = 0, message_bytes = 0;  ///< the largest message in place, and at all
  std::optional<Result<Measurement>> test;            ///< if one was asked for
  bool reached() const { return !transport.empty(); }
};

struct ProbeOptions {
  Config config;
  Credential credential;
  bool measure = true;    ///< takes a quarter of a second, and ten at most
  bool contexts = false;  ///< the other side is a context, not only an endpoint
};

/// Connects to `url`, a list perhaps, over any of `transports` (empty: all).
Probe probe(const ProbeOptions &options, const std::string &url, std::vector<std::string> transports = {});

}  // namespace nessie::cli
