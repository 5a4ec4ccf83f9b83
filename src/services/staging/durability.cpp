// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/durability.hpp>

#include <base/config.hpp>

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>

namespace staging {

using nessie::Code;
using nessie::Error;
using nessie::Result;

namespace {

constexpr std::array<std::pair<std::string_view, Durability>, 4> kNames = {{{"memory", Durability::kMemory},
                                                                            {"replicated", Durability::kReplicated},
                                                                            {"logged", Durability::kLogged},
                                                                            {"durable", Durability::kInFile}}};

}  // namespace

Result<Durability> durability_named(std::string_view name) {
  const auto *found = std::ranges::find(kNames, name, [](const auto &each) { return each.first; });
  if (found != kNames.end()) return found->second;
  return Error{Code::kInvalidArgument,
               fmt::format("'{}' is no durability: memory, replicated, logged and durable are", name)};
}

std::string_view name_of(Durability durability) {
  const auto *found = std::ranges::find(kNames, durability, [](const auto &each) { return each.second; });
  return found != kNames.end() ? found->first : "as the run's";
}

Result<DurabilityRules> DurabilityRules::parse(std::string_view text) {
  DurabilityRules rules;
  for (const auto &word : nessie::split(std::string(text), " \t\n,")) {
    const auto equals = word.rfind('=');
    const auto named = durability_named(equals == std::string::npos ? word : word.substr(equals + 1));
    if (!named.ok()) return named.error();
    if (equals == 0) return Error{Code::kInvalidArgument, fmt::format("'{}' has no pattern before its '='", word)};
    if (equals == std::string::npos)
      rules.otherwise_ = *named;
    else
      rules.rules_.emplace_back(word.substr(0, equals), *named);
  }
  return rules;
}

Durability DurabilityRules::of(const std::string &path) const {
  const auto name = path.substr(path.rfind('/') + 1);
  for (const auto &[pattern, durability] : rules_) {
    const auto &matched = pattern.find('/') == std::string::npos ? name : path;
    if (::fnmatch(pattern.c_str(), matched.c_str(), 0) == 0) return durability;
  }
  return otherwise_;
}

}  // namespace staging
