// SPDX-License-Identifier: BSD-3-Clause
#include "base/setting_names.hpp"

#include "base/nearest.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace nessie {
namespace {

/// In one of these everything is a setting of Nessie's.
constexpr std::string_view kGroups[] = {"nnti.", "nssi.", "staging.", "run.", "directory."};
constexpr std::string_view kPrefix = "NESSIE_";
/// Variables that are no settings, but Nessie's.
constexpr std::string_view kOtherVariables[] = {"NESSIE_CONFIG", "NESSIE_LOG"};

/// "nssi.op.*.pool" → "nssi.op.", ".pool".
struct Pattern {
  explicit Pattern(std::string_view name)
      : head(name.substr(0, name.find('*'))), tail(name.substr(std::min(name.size(), name.find('*') + 1))) {}
  bool matches(std::string_view key) const {
    return key.size() > head.size() + tail.size() && key.starts_with(head) && key.ends_with(tail);
  }
  std::string_view head, tail;
};

bool is_pattern(std::string_view name) { return name.find('*') != std::string_view::npos; }

bool is_setting(std::string_view key) {
  return std::ranges::any_of(setting_names(), [&](const std::string &name) {
    return is_pattern(name) ? Pattern(name).matches(key) : name == key;
  });
}

/// The settings that `key` may be meant as; of those with a `*` its own part stands there: "nssi.op.fetch.rol" may be
/// "nssi.op.fetch.role".
std::vector<std::string> candidates_for(std::string_view key) {
  std::vector<std::string> candidates;
  for (const auto &name : setting_names()) {
    const Pattern pattern(name);
    const auto last = key.rfind('.');
    if (!is_pattern(name))
      candidates.push_back(name);
    else if (key.starts_with(pattern.head) && last != std::string_view::npos && last > pattern.head.size())
      candidates.push_back(std::string(key.substr(0, last)) + std::string(pattern.tail));
  }
  return candidates;
}

/// As variable_of(), of names with a `*` too, without the prefix.
std::string capitals_of(std::string_view key) {
  std::string name;
  for (char c : key) {
    auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) || c == '*' ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

bool is_variable(std::string_view variable) {
  return std::ranges::find(kOtherVariables, variable) != std::end(kOtherVariables) ||
         std::ranges::any_of(setting_names(), [&](const std::string &name) {
           const auto capitals = std::string(kPrefix) + capitals_of(name);
           return is_pattern(name) ? Pattern(capitals).matches(variable) : capitals == variable;
         });
}

}  // namespace

const std::vector<std::string> &setting_names() {
  static const auto *names = new std::vector<std::string>{
      "close",
      "credential",
      "credential_file",
      "directory",
      "directory.entries",
      "directory.entries_per_caller",
      "directory.listen",
      "directory.watches",
      "directory.watches_per_caller",
      "listen",
      "memory",
      "nnti.channel",
      "nnti.channel.bytes",
      "nnti.channel.messages",
      "nnti.channel_setup",
      "nnti.eager_max",
      "nnti.eager_memory",
      "nnti.encrypt",
      "nnti.faulty.break",
      "nnti.faulty.delay",
      "nnti.faulty.duplicate",
      "nnti.faulty.loss",
      "nnti.faulty.reorder",
      "nnti.faulty.seed",
      "nnti.faulty.silent",
      "nnti.faulty.transient",
      "nnti.heartbeat",
      "nnti.inproc.name",
      "nnti.job_size",
      "nnti.lane",
      "nnti.mailbox",
      "nnti.mpi.library",
      "nnti.mpi.setup_timeout",
      "nnti.mpi.world",
      "nnti.ofi.address",
      "nnti.ofi.mr_local",
      "nnti.ofi.port",
      "nnti.ofi.provider",
      "nnti.peer_timeout",
      "nnti.reconnect",
      "nnti.registration_cache",
      "nnti.registration_cache.mib",
      "nnti.registration_cache.regions",
      "nnti.rendezvous.read_percent",
      "nnti.rendezvous.write_from",
      "nnti.send_queue",
      "nnti.shared_queue",
      "nnti.shm.cma",
      "nnti.spin_us",
      "nnti.ucx.address",
      "nnti.ucx.port",
      "nnti.ucx.tls",
      "nssi.keep_answers",
      "nssi.limit.bytes",
      "nssi.limit.bytes_of_caller",
      "nssi.limit.requests",
      "nssi.limit.requests_of_caller",
      "nssi.max_long",
      "nssi.op.*.pool",
      "nssi.op.*.priority",
      "nssi.op.*.role",
      "nssi.pool.*.cores",
      "nssi.pool.*.threads",
      "nssi.pools",
      "nssi.prometheus",
      "nssi.reconnect",
      "nssi.reload_on_hangup",
      "nssi.statistics",
      "nssi.timeout",
      "nssi.trace",
      "nssi.trace.every",
      "operator_credential",
      "run.linger",
      "run.start_timeout",
      "servers",
      "staging.board_dir",
      "staging.buffer",
      "staging.index",
      "staging.listen",
      "staging.memory",
      "staging.mode",
      "staging.run_dir",
      "staging.servers",
      "staging.timeout",
      "transfer.most_encoded",
      "transfer.piece",
      "transfer.threads",
  };
  return *names;
}

std::string variable_of(std::string_view key) { return std::string(kPrefix) + capitals_of(key); }

std::string doubt_about_key(std::string_view key) {
  if (is_setting(key)) return {};
  if (key == "log") return "log is not read from here; set NESSIE_LOG";
  const auto nearest = nearest_of(key, candidates_for(key));
  if (!nearest.empty()) return fmt::format("there is no setting {}; did you mean {}?", key, nearest);
  const bool is_ours = std::ranges::any_of(kGroups, [&](std::string_view group) { return key.starts_with(group); });
  return is_ours ? fmt::format("there is no setting {}", key) : std::string();
}

std::string doubt_about_variable(std::string_view variable) {
  if (!variable.starts_with(kPrefix) || is_variable(variable)) return {};
  std::vector<std::string> names{"LOG", "CONFIG"};
  for (const auto &name : setting_names())
    if (!is_pattern(name)) names.push_back(capitals_of(name));
  const auto nearest = nearest_of(variable.substr(kPrefix.size()), names);
  return nearest.empty() ? std::string()
                         : fmt::format("{} is no setting; did you mean {}{}?", variable, kPrefix, nearest);
}

}  // namespace nessie
