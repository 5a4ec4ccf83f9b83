// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace bench {

nnti::EndpointOptions Options::endpoint(bool listen, const char *spin_us) const {
  nnti::EndpointOptions endpoint;
  endpoint.transports = {transport};
  endpoint.extra_transports = extra_transports;
  endpoint.listen = listen;
  for (const auto &[key, value] : settings) endpoint.config.set(key, value);
  if (*spin_us) endpoint.config.set("nnti.spin_us", spin_us);
  return endpoint;
}

Progress::Progress(int steps) : steps_(steps), shown_(isatty(STDERR_FILENO)) {}

void Progress::step(const std::string &next) {
  if (shown_) fmt::print(stderr, "\r\033[K[{}/{}] {}", ++done_, steps_, next);
}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

}  // namespace bench
