// SPDX-License-Identifier: BSD-3-Clause
// Steps over TCP to any program: TCP.md, the sender's side.
#pragma once

#include "services/streams/sinks/frames.hpp"
#include "services/streams/sinks/image.hpp"
#include "services/streams/sinks/rate.hpp"
#include "services/streams/sinks/socket.hpp"

#include <chrono>

namespace nessie::streams::sinks {

struct SenderOptions {
  HostPort to;
  Origin origin;
  std::uint64_t bytes_per_s = 0;  ///< 0: as fast as it goes
  /// With a receiver that is not there, or does not answer.
  std::chrono::milliseconds patience{60'000};
  Stop stop = [] { return false; };
};

/// Sends each step until the receiver says that it is safe: over a new connection when one is lost. Holds one image of
/// a step in memory.
class Sender : public Sink {
 public:
  /// Connects with the first step.
  explicit Sender(SenderOptions options)
      : options_(std::move(options)), rate_(options_.bytes_per_s), images_(options_.origin) {}
  std::uint64_t wanted() const override { return wanted_; }
  /// kTimedOut: no receiver within the patience, or it has not answered. kRefused: it cannot take the step, and why.
  /// kNoMemory, kTooLarge: as ImageMaker::make(). kCancelled.
  Status take(Step &step) override;
  /// A receiver that has all steps, and is gone, has not to be told.
  Status finish() override;
  /// How often a connection was made.
  std::uint64_t connections() const { return connections_; }

 private:
  Status deliver(const Head &head, std::span<const std::byte> image);
  Status connect();
  Status send_once(const Head &head, std::span<const std::byte> image);
  Result<Answer> receive_answer();

  SenderOptions options_;
  Rate rate_;
  ImageMaker images_;
  Fd socket_;
  std::uint64_t wanted_ = 0, connections_ = 0;
};

}  // namespace nessie::streams::sinks
