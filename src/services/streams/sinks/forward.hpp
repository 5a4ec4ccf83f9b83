// SPDX-License-Identifier: BSD-3-Clause
// A stream in other servers: a reader here, a writer there.
#pragma once

#include "services/streams/sinks/rate.hpp"
#include "services/streams/sinks/step.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace nessie::streams::sinks {

struct ForwardOptions {
  std::string to;       ///< the other servers, as nssi::find() takes it
  std::string name;     ///< of the stream there
  Origin origin;        ///< of the stream here
  bool append = false;  ///< goes on with the stream that is there
  std::uint64_t bytes_per_s = 0;
  /// With servers that are not there.
  std::chrono::milliseconds patience{60'000};
  Stop stop = [] { return false; };
  std::function<void(std::string_view)> say = [](std::string_view) {};  ///< what goes wrong, and does not end it
};

/// Puts each step there as the step of the same number, or of one that is less by as many as were gone when it began.
/// How many these are an attribute of the stream says, `nessie_shift`; by it, and by the number of the stream's next
/// step, one who appends knows what is there. When the link is cut, or he has been killed, no step is there twice.
class Forwarder : public Sink {
 public:
  /// kExists: another one writes a stream of that name there. kInvalidArgument: what is there to be continued is of
  /// another stream. Others as Writer::open().
  static Result<std::unique_ptr<Forwarder>> open(ForwardOptions options);
  std::uint64_t wanted() const override;
  /// kTimedOut, kPeerLost: the servers have not been there for longer than the patience. Others as Writer says.
  Status take(Step &step) override;
  Status finish() override;
  /// How often a writer was opened.
  std::uint64_t connections() const { return connections_; }

 private:
  explicit Forwarder(ForwardOptions options) : options_(std::move(options)), rate_(options_.bytes_per_s) {}
  Status connect(bool append, Deadline deadline);
  Status learn_shift(Deadline deadline);
  Status put(Step &step);
  Status begin();
  Status describe(const Step &step);
  Status put_variable(const Variable &variable, Step &step);
  Status end();
  Status say_attribute(const Attribute &attribute);

  ForwardOptions options_;
  Rate rate_;
  std::optional<Writer> writer_;
  std::optional<std::int64_t> shift_;  ///< a step's number here, less its number there; nothing: none is there
  std::map<std::string, Variable> defined_;
  std::vector<Attribute> said_;
  bool has_constants_ = false;      ///< they were put by this writer
  bool source_has_failed_ = false;  ///< it was the stream here that could not be read
  std::uint64_t connections_ = 0;
};

}  // namespace nessie::streams::sinks
