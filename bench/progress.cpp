// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace bench {

Progress::Progress(int steps) : steps_(steps), shown_(isatty(STDERR_FILENO)) {}

void Progress::step(const std::string &next) {
  if (shown_) fmt::print(stderr, "\r\033[K[{}/{}] {}", ++done_, steps_, next);
}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

}  // namespace bench
