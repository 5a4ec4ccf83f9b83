// SPDX-License-Identifier: BSD-3-Clause
#include "service/runtime_options.hpp"

namespace nessie::service {

Result<nssi::RuntimeOptions> runtime_options(const Config &config, const char *listen) {
  nssi::RuntimeOptions options;
  options.endpoint.config = config;
  options.endpoint.listen = listen != nullptr;
  if (listen != nullptr) options.endpoint.transports = split(config.get_or(listen, ""), ",");
  return options;
}

}  // namespace nessie::service
