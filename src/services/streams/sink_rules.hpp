// SPDX-License-Identifier: BSD-3-Clause
// The setting streams.sinks: which streams servers hand on by themselves, and where to.
#pragma once

#include <nessie/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace streams {

/// "record:GLOB=FILE", "record:GLOB=FOLDER/", "forward:GLOB=PLACE": what becomes of streams whose names match.
struct SinkRule {
  enum class Kind { kRecord, kForward };
  Kind kind = Kind::kRecord;
  std::string glob;    ///< as fnmatch(3) takes it
  std::string target;  ///< a file, a folder for FOLDER/STREAM.nc; or a place
  bool operator==(const SinkRule &) const = default;

  bool matches(const std::string &stream) const;
  std::string name() const;  ///< as it is written
  /// The name by which it reads: that of the rule, if it can be one; otherwise one that stands for it.
  std::string subscription() const;
};

/// Rules between white space. kInvalidArgument: which one cannot be meant, and how it is written.
nessie::Result<std::vector<SinkRule>> parse_sink_rules(std::string_view setting);

}  // namespace streams
