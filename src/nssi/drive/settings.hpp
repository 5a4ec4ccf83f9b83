// SPDX-License-Identifier: BSD-3-Clause
// What the configuration says of a runtime (docs/configuration.md, NSSI).
#pragma once

#include <nssi/nssi.hpp>

#include <base/config.hpp>

#include <chrono>

namespace nssi {

struct Settings {
  std::chrono::milliseconds timeout{30000}, reconnect{1000}, keep_answers{600000};
  std::size_t max_long_bytes = std::size_t{1} << 30;
  Limits limits;
  std::vector<PoolOptions> pools;
  bool statistics = true;
  std::string prometheus;  ///< where its endpoint listens; empty: nowhere
  bool reload_on_hangup = false;
  std::string trace_folder;  ///< empty: nothing is traced
  std::uint64_t trace_every = 1;
};

/// What the configuration does not say stays as in `fallback`. kInvalidArgument names the setting.
Result<Settings> read_settings(const nessie::Config &config, const Settings &fallback);

/// `nssi.op.NAME.pool` and `nssi.op.NAME.priority` of the operation's name. kInvalidArgument.
Status settle_operation(const nessie::Config &config, Operation &operation);

}  // namespace nssi
