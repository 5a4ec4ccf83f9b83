// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/channel/settings.hpp"

#include <fmt/core.h>

namespace nnti::channel {
namespace {

constexpr std::uint64_t kMaxMessages = 1 << 20, kMinBytes = 64 << 10, kMaxBytes = 1 << 30;

Error out_of_bounds(const nessie::Config &config, std::string_view name, std::uint64_t smallest,
                    std::uint64_t largest) {
  return config.bad_value(name, fmt::format("{} to {}", smallest, largest));
}

Status load_limits(const nessie::Config &config, Limits &limits) {
  auto messages = config.get_count("nnti.channel.messages", limits.messages);
  if (!messages.ok()) return messages.error();
  if (*messages < 1 || *messages > kMaxMessages) return out_of_bounds(config, "nnti.channel.messages", 1, kMaxMessages);
  auto bytes = config.get_size("nnti.channel.bytes", limits.bytes);
  if (!bytes.ok()) return bytes.error();
  if (*bytes < kMinBytes || *bytes > kMaxBytes)
    return out_of_bounds(config, "nnti.channel.bytes", kMinBytes, kMaxBytes);
  limits = {static_cast<std::uint32_t>(*messages), static_cast<std::uint32_t>(*bytes)};
  return {};
}

}  // namespace

Result<Settings> Settings::load(const nessie::Config &config) {
  Settings settings;
  struct Line {
    std::string_view name;
    std::chrono::milliseconds *value;
  };
  for (auto [name, value] : {Line{"nnti.reconnect", &settings.reconnect}, Line{"nnti.heartbeat", &settings.heartbeat},
                             Line{"nnti.peer_timeout", &settings.peer_timeout}}) {
    auto duration = config.get_duration(name, *value);
    if (!duration.ok()) return duration.error();
    *value = *duration;
  }
  if (auto status = load_limits(config, settings.limits); !status.ok()) return status.error();
  return settings;
}

}  // namespace nnti::channel
