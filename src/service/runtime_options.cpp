// SPDX-License-Identifier: BSD-3-Clause
#include "service/runtime_options.hpp"

#include <sstream>

namespace nessie::service {

Result<nssi::RuntimeOptions> runtime_options(const Config &config, const char *listen) {
  nssi::RuntimeOptions options;
  options.endpoint.config = config;
  options.endpoint.listen = listen != nullptr;
  std::istringstream transports(listen != nullptr ? config.get_or(listen, "") : "");
  for (std::string each; std::getline(transports, each, ',');)
    if (!each.empty()) options.endpoint.transports.push_back(each);
  if (const auto hex = config.get("credential")) {
    auto credential = Credential::from_hex(*hex);
    if (!credential.ok()) return credential.error();
    options.endpoint.credential = *credential;
  }
  return options;
}

}  // namespace nessie::service
