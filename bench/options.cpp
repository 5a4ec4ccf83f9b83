// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

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

}  // namespace bench
