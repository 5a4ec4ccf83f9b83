// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/recording.hpp"

#include <base/printable.hpp>

#include <fmt/core.h>

namespace nessie::streams::sinks {

Error of_another(const std::string &path, const Origin &has, const Origin &wanted) {
  return {
      Code::kInvalidArgument,
      fmt::format("{} has the stream '{}' of {}: name another file", printable(path), has.stream,
                  has.stream == wanted.stream ? "another run, or of a file that was made anew since" : "that name")};
}

}  // namespace nessie::streams::sinks
