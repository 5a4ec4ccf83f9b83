// SPDX-License-Identifier: BSD-3-Clause
// Which providers a process is to have, on which threads: what flags or a TOML file ask for, checked and put in order
// before anything is started. docs/hosting.md is about it. The model is Mochi's Bedrock.
#pragma once

#include <base/config.hpp>
#include <nessie/provider.hpp>
#include <nssi/nssi.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nessied {

using nessie::Error;
using nessie::Result;
using nessie::Status;

/// Whom a provider uses.
struct Use {
  std::optional<std::string> role;      ///< none: the type of the provider that is named
  std::string what;                     ///< a provider of the process, or where one is
  std::optional<std::uint32_t> number;  ///< of one that is elsewhere
};

struct Place {
  std::string name, type;
  std::string module;  ///< the shared object that the type is in; empty: nessied's own, or an earlier one's
  std::optional<std::uint32_t> number;
  std::string pool;
  std::vector<nessie::GivenSetting> settings;  ///< "mode": those of its type, without it
  std::vector<Use> uses;
  std::string at;  ///< "job.toml, line 12"; empty: a flag
};

struct Composition {
  std::vector<Place> providers;
  std::vector<nssi::PoolOptions> pools;
  std::vector<nessie::GivenSetting> settings;  ///< of the process: all that is none of the above
  std::vector<std::string> announce;           ///< places, as nssi::announce() takes them
};

/// "staging,directory": one provider of each type, which has the type's name.
Composition composition_of(const std::vector<std::string> &types);
/// kInvalidArgument, kIo: file, line, and what to correct.
Result<Composition> read_composition(const std::string &path);
Result<Composition> parse_composition(std::string_view text, const std::string &file);

/// What is to be started, in this order.
struct Step {
  const Place *place = nullptr;
  const nessie::ProviderType *type = nullptr;
  std::uint32_t number = 0;
  std::map<std::string, std::string> local;            ///< role → name of a provider that was started before
  std::map<std::string, nessie::UsedProvider> remote;  ///< role → one that is elsewhere
};

/// Checks all of it. kInvalidArgument: an unknown type, pool, role or provider, with the name that comes nearest; a
/// doubled name or number; two of a type of which a process has one; a circle.
Result<std::vector<Step>> plan(const Composition &composition, const std::vector<nessie::ProviderType> &types);

}  // namespace nessied
