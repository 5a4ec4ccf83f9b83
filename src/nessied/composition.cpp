// SPDX-License-Identifier: BSD-3-Clause
#include "composition.hpp"

#include "topology.hpp"

#include <base/file.hpp>
#include <base/nearest.hpp>
#include <base/setting_names.hpp>
#include <base/toml_text.hpp>
#include <nssi/drive/pool.hpp>
#include <services/discovery/contact/schemes.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace nessied {

using nessie::Code;

namespace {

Error bad(const std::string &at, const std::string &message) {
  return {Code::kInvalidArgument, at.empty() ? message : at + ": " + message};
}

/// "there is no provider 'nams'; did you mean 'names'?"
std::string there_is_no(const char *kind, const std::string &name, const std::vector<std::string> &names) {
  const auto nearest = nessie::nearest_of(name, names);
  if (!nearest.empty()) return fmt::format("there is no {} '{}'; did you mean '{}'?", kind, name, nearest);
  if (names.empty()) return fmt::format("there is no {} '{}'", kind, name);
  return fmt::format("there is no {} '{}', only {}", kind, name, fmt::join(names, ", "));
}

template <class List, class Member> std::vector<std::string> names_in(const List &list, Member member) {
  std::vector<std::string> names;
  for (const auto &each : list) names.push_back(each.*member);
  return names;
}

// --- the file ---------------------------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Result<Composition> read(const toml::table &table) {
    for (const auto &[key, node] : table) {
      const auto name = std::string(key.str());
      if (name == "provider")
        each_table(node, name, [&](const toml::table &it) { provider(it); });
      else if (name == "pool")
        each_table(node, name, [&](const toml::table &it) { pool(it); });
      else if (name == "announce")
        announce(node);
      else
        setting(name, node);
    }
    if (status_.ok() && made_.providers.empty()) status_ = bad(file_, "there is no [[provider]] in it to host");
    if (!status_.ok()) return status_.error();
    return std::move(made_);
  }

 private:
  std::string at(const toml::node &node) const { return fmt::format("{}, line {}", file_, node.source().begin.line); }
  void fail(const toml::node &node, const std::string &message) {
    if (status_.ok()) status_ = bad(at(node), message);
  }

  void each_table(const toml::node &node, const std::string &name,
                  const std::function<void(const toml::table &)> &take) {
    const auto *array = node.as_array();
    if (array == nullptr || !array->is_homogeneous<toml::table>())
      return fail(node, fmt::format("{0} is a table each, under [[{0}]]", name));
    for (const auto &each : *array) take(*each.as_table());
  }

  std::string text(const toml::node &node, const std::string &key) {
    if (const auto value = node.value_exact<std::string>()) return *value;
    fail(node, fmt::format("{} takes a text in quotes", key));
    return {};
  }
  std::int64_t number(const toml::node &node, const std::string &key) {
    const auto value = node.value_exact<std::int64_t>();
    if (value && *value >= 0 && *value <= std::numeric_limits<std::uint32_t>::max()) return *value;
    fail(node, fmt::format("{} takes a whole number from 0 to {}", key, std::numeric_limits<std::uint32_t>::max()));
    return 0;
  }
  std::vector<std::string> list(const toml::node &node, const std::string &key) {
    std::vector<std::string> all;
    if (const auto *array = node.as_array())
      for (const auto &each : *array) all.push_back(text(each, key));
    else
      all.push_back(text(node, key));
    return all;
  }

  void announce(const toml::node &node) {
    for (auto &place : list(node, "announce")) {
      if (auto status = nessie::service::check_announced(place); !status.ok()) fail(node, status.error().message);
      made_.announce.push_back(std::move(place));
    }
  }
  void setting(const std::string &name, const toml::node &node) {
    if (const auto *table = node.as_table()) {
      for (const auto &[key, inner] : *table) setting(name + "." + std::string(key.str()), inner);
      return;
    }
    if (const auto nearest = nessie::nearest_of(name, {"provider", "pool", "announce"}); !nearest.empty())
      return fail(node, fmt::format("there is no {}; did you mean {}?", name, nearest));
    auto text = nessie::toml_text(node);
    if (!text) return fail(node, fmt::format("no setting takes what {} is given", name));
    made_.settings.push_back({name, *std::move(text), at(node)});
  }
  void pool(const toml::table &table) {
    nssi::PoolOptions made;
    std::optional<std::int64_t> node_number;
    for (const auto &[key, node] : table) {
      const auto name = std::string(key.str());
      if (name == "name")
        made.name = text(node, name);
      else if (name == "threads")
        made.threads = static_cast<std::size_t>(number(node, name));
      else if (name == "cores")
        made.cores = text(node, name);
      else if (name == "numa_node")
        node_number = number(node, name);
      else if (name == "scheduler")
        made.in_order = scheduler(node);
      else
        fail(node, there_is_no("key", name, {"name", "threads", "cores", "numa_node", "scheduler"}));
    }
    if (made.name.empty()) return fail(table, "a pool has a name");
    if (node_number && !made.cores.empty()) return fail(table, "a pool has cores, or a NUMA node, and not both");
    if (node_number) {
      auto cores = cores_of_numa_node(static_cast<unsigned>(*node_number));
      if (!cores.ok()) return fail(table, cores.error().message);
      made.cores = *std::move(cores);
    }
    if (auto status = nssi::check(made); !status.ok()) return fail(table, status.error().message);
    if (std::ranges::count(made_.pools, made.name, &nssi::PoolOptions::name) != 0)
      return fail(table, fmt::format("there are two pools '{}'", made.name));
    made_.pools.push_back(std::move(made));
  }
  /// True: fifo.
  bool scheduler(const toml::node &node) {
    const auto name = text(node, "scheduler");
    if (name != "fifo" && name != "priority") fail(node, there_is_no("scheduler", name, {"fifo", "priority"}));
    return name == "fifo";
  }
  void provider(const toml::table &table) {
    Place made;
    made.at = at(table);
    for (const auto &[key, node] : table) {
      const auto name = std::string(key.str());
      if (name == "name")
        made.name = text(node, name);
      else if (name == "type")
        made.type = text(node, name);
      else if (name == "module")
        made.module = text(node, name);
      else if (name == "number")
        made.number = static_cast<std::uint32_t>(number(node, name));
      else if (name == "pool")
        made.pool = text(node, name);
      else if (name == "settings")
        settings_of(made, node);
      else if (name == "uses")
        uses_of(made, node);
      else
        fail(node, there_is_no("key", name, {"name", "type", "module", "number", "pool", "settings", "uses"}));
    }
    if (made.type.empty()) return fail(table, "a provider has a type");
    if (made.name.empty()) made.name = made.type;
    made_.providers.push_back(std::move(made));
  }
  void settings_of(Place &made, const toml::node &node) {
    const auto *table = node.as_table();
    if (table == nullptr) return fail(node, "settings is a table");
    for (const auto &[key, inner] : *table) {
      auto text = nessie::toml_text(inner);
      if (!text) return fail(inner, fmt::format("no setting takes what {} is given", key.str()));
      made.settings.push_back({std::string(key.str()), *std::move(text), at(inner)});
    }
  }
  void uses_of(Place &made, const toml::node &node) {
    if (const auto *table = node.as_table()) {
      for (const auto &[role, inner] : *table) made.uses.push_back(use_of(std::string(role.str()), inner));
      return;
    }
    for (auto &name : list(node, "uses")) made.uses.push_back({std::nullopt, std::move(name), std::nullopt});
  }
  Use use_of(std::string role, const toml::node &node) {
    const auto *table = node.as_table();
    if (table == nullptr) return {std::move(role), text(node, "uses"), std::nullopt};
    Use made{std::move(role), {}, std::nullopt};
    for (const auto &[key, inner] : *table) {
      const auto name = std::string(key.str());
      if (name == "at")
        made.what = text(inner, name);
      else if (name == "number")
        made.number = static_cast<std::uint32_t>(number(inner, name));
      else
        fail(inner, there_is_no("key", name, {"at", "number"}));
    }
    return made;
  }

  const std::string file_;
  Status status_;
  Composition made_;
};

}  // namespace

Composition composition_of(const std::vector<std::string> &types) {
  Composition made;
  for (const auto &type : types) {
    auto &place = made.providers.emplace_back();
    place.name = place.type = type;
  }
  return made;
}

Result<Composition> parse_composition(std::string_view text, const std::string &file) {
  toml::table table;
  if (const auto fault = nessie::parse_toml_text(text, table))
    return bad(fmt::format("{}, line {}", file, fault->line), fault->what);
  return Reader(file).read(table);
}

Result<Composition> read_composition(const std::string &path) {
  const auto text = nessie::read_settings_file(path);
  if (!text.ok()) return text.error();
  return parse_composition(*text, path);
}

// --- the plan ---------------------------------------------------------------------------------------------------------

namespace {

std::string role_of(const std::string &use) { return use.ends_with('?') ? use.substr(0, use.size() - 1) : use; }

class Planner {
 public:
  Planner(const Composition &composition, const std::vector<nessie::ProviderType> &types)
      : composition_(composition), types_(types) {}

  Result<std::vector<Step>> make() {
    if (composition_.providers.empty())
      return bad("", "there is nothing to host: name services with --services, or a file with --config");
    for (const auto &setting : composition_.settings)
      if (auto status = check(setting); !status.ok()) return status.error();
    for (const auto &place : composition_.providers)
      if (auto status = check(place); !status.ok()) return status.error();
    for (const auto &place : composition_.providers)
      if (auto status = resolve(place); !status.ok()) return status.error();
    std::vector<const Place *> way;
    for (const auto &place : composition_.providers)
      if (auto status = visit(place, way); !status.ok()) return status.error();
    return std::move(ordered_);
  }

 private:
  const nessie::ProviderType *type_of(const Place &place) const {
    const auto found = std::ranges::find(types_, place.type, &nessie::ProviderType::name);
    return found == types_.end() ? nullptr : &*found;
  }
  /// Nessie's own, or one of a type of provider.
  Status check(const nessie::GivenSetting &setting) const {
    const auto type = setting.name.substr(0, setting.name.find('.'));
    if (auto doubt = nessie::doubt_about_key(setting.name); !doubt.empty()) return bad(setting.source, doubt);
    if (nessie::is_setting(setting.name) || std::ranges::count(types_, type, &nessie::ProviderType::name) != 0)
      return {};
    return bad(setting.source,
               fmt::format("there is no setting {}; `nessie info --settings` lists them", setting.name));
  }
  /// It alone, and beside those before it.
  Status check(const Place &place) {
    const auto *type = type_of(place);
    if (type == nullptr)
      return bad(place.at, there_is_no("type of provider", place.type, names_in(types_, &nessie::ProviderType::name)));
    Step step{&place, type, 0, {}, {}};
    for (const auto &[name, other] : steps_) {
      if (name == place.name && !type->is_single)
        return bad(place.at, fmt::format("there are two providers '{}': give each a name of its own", name));
      if (other.type != type) continue;
      if (type->is_single) return bad(place.at, fmt::format("a process can have one provider of type {}", type->name));
      if (place.number == other.number)
        return bad(place.at, fmt::format("'{}' and '{}' have the same number", place.name, name));
      step.number = std::max(step.number, other.number + 1);
    }
    step.number = place.number.value_or(step.number);
    if (!place.pool.empty() && !type->takes_pool)
      return bad(place.at, fmt::format("a {} runs on the thread that drives: leave out its pool", type->name));
    if (!place.pool.empty() && std::ranges::count(composition_.pools, place.pool, &nssi::PoolOptions::name) == 0)
      return bad(place.at, there_is_no("pool", place.pool, names_in(composition_.pools, &nssi::PoolOptions::name)));
    for (const auto &setting : place.settings)
      if (const auto doubt = nessie::doubt_about_key(place.type + "." + setting.name); !doubt.empty())
        return bad(setting.source, doubt);
    steps_.emplace(place.name, std::move(step));
    return {};
  }

  /// What it uses.
  Status resolve(const Place &place) {
    auto &step = steps_.at(place.name);
    std::vector<std::string> roles;
    for (const auto &use : step.type->uses) roles.push_back(role_of(use));
    for (const auto &[role, what, number] : place.uses) {
      const auto found = steps_.find(what);
      if (found == steps_.end() && !(role && nessie::service::is_place(what)))
        return bad(place.at, there_is_no("provider", what, names_in(composition_.providers, &Place::name)));
      if (found != steps_.end() && number)
        return bad(place.at, fmt::format("'{}' is in this process, and its number known: leave it out", what));
      const auto as = role ? *role : found->second.type->name;
      if (std::ranges::count(roles, as) == 0)
        return bad(place.at, roles.empty()
                                 ? fmt::format("a {} uses no others", place.type)
                                 : fmt::format("a {} uses no {}, only {}", place.type, as, fmt::join(roles, ", ")));
      if (found != steps_.end() && found->second.type->name != as)
        return bad(place.at, fmt::format("'{}' is a {}, and not a {}", what, found->second.type->name, as));
      if (found == steps_.end())
        step.remote[as] = {what, number.value_or(0)};
      else
        step.local[as] = what;
    }
    for (const auto &use : step.type->uses)
      if (!use.ends_with('?') && !step.local.contains(use) && !step.remote.contains(use))
        return bad(place.at,
                   fmt::format("'{0}' uses a {1}: say which, as uses = {{ {1} = \"NAME\" }}", place.name, use));
    return {};
  }

  /// Those that it uses first. `way`: who is on the way to here.
  Status visit(const Place &place, std::vector<const Place *> &way) {
    if (std::ranges::find(ordered_, &place, &Step::place) != ordered_.end()) return {};
    if (const auto before = std::ranges::find(way, &place); before != way.end()) {
      std::string names;
      for (auto at = before; at != way.end(); ++at) names += (*at)->name + " -> ";
      return bad(place.at, fmt::format("each uses the next, in a circle: {}{}", names, place.name));
    }
    way.push_back(&place);
    const auto &step = steps_.at(place.name);
    for (const auto &[role, name] : step.local)
      if (auto status = visit(*steps_.at(name).place, way); !status.ok()) return status;
    way.pop_back();
    ordered_.push_back(step);
    return {};
  }

  const Composition &composition_;
  const std::vector<nessie::ProviderType> &types_;
  std::map<std::string, Step> steps_;  ///< by name
  std::vector<Step> ordered_;
};

}  // namespace

Result<std::vector<Step>> plan(const Composition &composition, const std::vector<nessie::ProviderType> &types) {
  return Planner(composition, types).make();
}

}  // namespace nessied
