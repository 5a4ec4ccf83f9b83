// SPDX-License-Identifier: BSD-3-Clause
// What servers hand on by themselves: the setting streams.sinks.
#pragma once

#include <services/streams/sink_rules.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::streams::sinks {

using Rule = ::streams::SinkRule;

/// As parse_sink_rules(), with places as Target::place() takes them.
Result<std::vector<Rule>> parse_rules(std::string_view setting);

/// A thread for each stream that a rule matches, from when the stream is seen until it has ended. Each is a named
/// subscription, which servers begin with the stream if they have the same rules (ServerOptions::sinks): so it has all
/// of its steps, and servers which are started anew go on where they were. Files and streams that are there are
/// continued if they are of the same stream. Another one of that name is recorded beside it, in FILE.2, FILE.3, ….
/// What goes wrong is logged, once, and tried again.
class Sinks {
 public:
  /// `at`: where the servers are, which need not answer yet. kNoMemory: no thread.
  static Result<std::unique_ptr<Sinks>> start(std::vector<Rule> rules, std::string at);
  ~Sinks();
  /// Ends what is being handed on, as its destructor does; the subscriptions stay. Takes a few seconds at most, as long
  /// as the servers answer. Any thread, and again.
  void end();

 private:
  struct State;
  explicit Sinks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace nessie::streams::sinks
