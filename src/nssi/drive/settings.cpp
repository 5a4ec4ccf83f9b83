// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/drive/settings.hpp>

#include <base/config_reader.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nssi {

namespace {

using nessie::Config;
using Reader = nessie::ConfigReader;

/// The pools that the configuration names, "fast slow" or "fast, slow"; one of the program's by the same name takes
/// what it says.
void read_pools(const Config &config, Reader &read, std::vector<PoolOptions> &pools) {
  for (const auto &name : nessie::split(config.get_or("nssi.pools", ""), ", \t\n"))
    if (std::ranges::find(pools, name, &PoolOptions::name) == pools.end()) pools.push_back({.name = name});
  for (auto &pool : pools) {
    const auto prefix = "nssi.pool." + pool.name;
    read.count((prefix + ".threads").c_str(), pool.threads);
    pool.cores = config.get_or(prefix + ".cores", pool.cores);
  }
}

/// The value whose number is the name's place.
template <class Value>
Status read_name(const Config &config, const std::string &key, const std::vector<std::string> &names, Value &value) {
  const auto text = config.get(key);
  if (!text) return {};
  const auto found = std::ranges::find(names, *text);
  if (found == names.end()) return config.bad_value(key, fmt::format("{}", fmt::join(names, " or ")));
  value = static_cast<Value>(found - names.begin());
  return {};
}

}  // namespace

Result<Settings> read_settings(const Config &config, const Settings &fallback) {
  auto settings = fallback;
  Reader read(config);
  read.duration("nssi.timeout", settings.timeout);
  read.duration("nssi.reconnect", settings.reconnect);
  read.duration("nssi.keep_answers", settings.keep_answers);
  read.size("nssi.max_long", settings.max_long_bytes);
  read.count("nssi.limit.requests", settings.limits.requests);
  read.count("nssi.limit.requests_of_caller", settings.limits.requests_of_caller);
  read.size("nssi.limit.bytes", settings.limits.bytes);
  read.size("nssi.limit.bytes_of_caller", settings.limits.bytes_of_caller);
  read.flag("nssi.statistics", settings.statistics);
  read.flag("nssi.reload_on_hangup", settings.reload_on_hangup);
  settings.prometheus = config.get_or("nssi.prometheus", "");
  settings.trace_folder = config.get_or("nssi.trace", "");
  read.count("nssi.trace.every", settings.trace_every);
  read_pools(config, read, settings.pools);
  if (!read.status().ok()) return read.status().error();
  if (settings.trace_every == 0) return config.bad_value("nssi.trace.every", "1 (every call) or more");
  return settings;
}

Status settle_operation(const Config &config, Operation &operation) {
  const auto prefix = "nssi.op." + operation.name;
  operation.pool = config.get_or(prefix + ".pool", operation.pool);
  auto status = read_name(config, prefix + ".priority", {"low", "normal", "high"}, operation.priority);
  return status.ok() ? read_name(config, prefix + ".role", {"user", "operator"}, operation.role) : status;
}

}  // namespace nssi
