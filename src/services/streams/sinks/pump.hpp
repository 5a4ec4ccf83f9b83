// SPDX-License-Identifier: BSD-3-Clause
// From a stream to a sink: each step is ended, which acknowledges it, when it is safe there.
#pragma once

#include "services/streams/sinks/step.hpp"

#include <base/clock.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::streams::sinks {

/// The step that a reader has open. Not to outlive it.
class StreamStep : public Step {
 public:
  /// `wanted`: only these variables; empty: all. `since`: constants that were put in that step or a later one are new.
  /// kNotFound: the step has not one of those that are wanted; of a program's file it may have them later.
  static Result<StreamStep> open(Reader &reader, const std::vector<std::string> &wanted, std::uint64_t since,
                                 std::chrono::milliseconds patience);
  std::uint64_t number() const override { return reader_->step(); }
  const std::vector<Variable> &variables() const override { return variables_; }
  const std::vector<Attribute> &attributes() const override { return reader_->attributes(); }
  bool is_new(const Variable &constant) const override { return reader_->put_in(constant.name) >= since_; }
  const Source *source() const override { return reader_->source(); }
  bool is_wanted(std::string_view variable) const override {
    return wanted_.empty() || std::ranges::count(wanted_, variable) != 0;
  }
  Status get(const Variable &variable, const Box &box, std::span<std::byte> destination) override;
  std::uint64_t bytes() const { return bytes_; }  ///< that were got

 private:
  StreamStep(Reader &reader, const std::vector<std::string> &wanted, std::uint64_t since,
             std::chrono::milliseconds patience)
      : reader_(&reader), wanted_(wanted), since_(since), patience_(patience) {}
  Reader *reader_;
  std::vector<std::string> wanted_;
  std::uint64_t since_;
  std::chrono::milliseconds patience_;
  std::vector<Variable> variables_;
  std::uint64_t bytes_ = 0;
};

struct Progress {
  std::uint64_t steps = 0;    ///< that were handed on
  std::uint64_t bytes = 0;    ///< of their arrays
  std::uint64_t skipped = 0;  ///< that were there already
  std::uint64_t missing = 0;  ///< that went before they were seen
  std::uint64_t gaps = 0;     ///< Sink::missing()
  std::uint64_t last = 0;     ///< number of the last one that is there
  bool has_ended = false;     ///< the stream has,
  std::string why_ended;      ///< as Reader::why_ended()
};

struct PumpOptions {
  std::vector<std::string> variables;  ///< empty: all
  /// With servers that are gone, or writers who died.
  std::chrono::milliseconds patience{30'000};
  std::uint64_t most_steps = 0;  ///< 0: all
  Stop stop = [] { return false; };
  std::function<void(const Progress &)> on_step = [](const Progress &) {};
  /// What has gone wrong, and does not end it.
  std::function<void(std::string_view)> say = [](std::string_view) {};
};

/// Opens a reader; tries again within the patience where servers, the stream, or the place of one who was killed just
/// before, are not there yet. Errors as Reader::open(); kCancelled.
Result<Reader> open_reader(std::string_view name, const ReaderOptions &options, std::chrono::milliseconds patience,
                           const Stop &stop);

/// Hands on until the stream has ended, it is told to stop, or there were as many steps as were wanted. `progress`
/// holds whatever comes. The reader stays open. Errors: the sink's; the reader's, when they last for longer than the
/// patience.
Status pump(Reader &reader, Sink &sink, const PumpOptions &options, Progress &progress);

}  // namespace nessie::streams::sinks
