// SPDX-License-Identifier: BSD-3-Clause
// Where steps are to go, as a user says it.
#pragma once

#include "services/streams/sinks/step.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace nessie::streams::sinks {

/// What a sink needs besides.
struct SinkContext {
  std::chrono::milliseconds patience{60'000};  ///< with others that are not there
  Stop stop = [] { return false; };
  std::function<void(std::string_view)> say = [](std::string_view) {};  ///< what goes wrong, and does not end it
};

class Target {
 public:
  /// A file, as Recorder writes it.
  static Result<Target> file(std::string path, bool append);
  /// "tcp://HOST:PORT": a program that speaks TCP.md. Otherwise servers, as nssi::find() takes them (of which one that
  /// has just such a URL is named by its contact file); `name`: of the stream there, empty: as here. kInvalidArgument.
  static Result<Target> place(std::string where, std::string name, bool append, std::uint64_t bytes_per_s);

  /// Errors as Recorder::open() and Forwarder::open(); who speaks TCP.md is connected to with the first step.
  Result<std::unique_ptr<Sink>> open(const Origin &origin, const SinkContext &context) const;
  const std::string &where() const { return where_; }

 private:
  enum class Kind { kFile, kSocket, kServers };
  Kind kind_ = Kind::kFile;
  std::string where_, name_;
  bool append_ = false;
  std::uint64_t bytes_per_s_ = 0;
};

}  // namespace nessie::streams::sinks
