// SPDX-License-Identifier: BSD-3-Clause
#include "directories.hpp"

#include "failure.hpp"

#include <service/runtime_options.hpp>
#include <services/directory/client/client.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace nessie::cli {

namespace {

using Action = DirectoryOptions::Action;

int fail(const Error &error) { return say_failure("directory", error.message); }

nlohmann::ordered_json to_json(const ::directory::instance &it) {
  auto attributes = nlohmann::ordered_json::object();
  for (const auto &each : it.attributes) attributes[std::string(each.name)] = std::string(each.value);
  return {{"name", std::string(it.name)}, {"url", std::string(it.url)}, {"program", it.program_number},
          {"version", it.version_number}, {"provider", it.provider},    {"attributes", std::move(attributes)}};
}

void print_json(const ::directory::listing &listing) {
  auto instances = nlohmann::ordered_json::array();
  for (const auto &each : listing.instances) instances.push_back(to_json(each));
  fmt::print("{}\n", nlohmann::ordered_json{{"incarnation", fmt::format("{:016x}", listing.at.incarnation)},
                                            {"generation", listing.at.generation},
                                            {"instances", std::move(instances)}}
                         .dump());
}

void print_text(const ::directory::instance &it) {
  fmt::print("{}  program 0x{:08x} version {} provider {}  {}\n", static_cast<const std::string &>(it.name),
             it.program_number, it.version_number, it.provider, static_cast<const std::string &>(it.url));
  for (const auto &each : it.attributes)
    fmt::print("    {} = {}\n", static_cast<const std::string &>(each.name),
               static_cast<const std::string &>(each.value));
}

void print(const ::directory::listing &listing, const DirectoryOptions &options) {
  if (options.json) {
    print_json(listing);
  } else {
    if (options.action == Action::kWatch) fmt::print("--- {} instances\n", listing.instances.size());
    for (const auto &each : listing.instances) print_text(each);
  }
  std::fflush(stdout);
}

int list(::directory::Directory &from, const DirectoryOptions &options) {
  const auto deadline = Deadline::in(std::chrono::seconds(options.timeout_s));
  const bool is_one = options.action == Action::kLookup;
  const auto listing = is_one ? from.lookup(options.name, deadline) : from.list(options.name, deadline);
  if (!listing.ok()) return fail(listing.error());
  print(*listing, options);
  if (!is_one || !listing->instances.empty()) return 0;
  return fail({Code::kNotFound,
               fmt::format("nobody has announced '{}'; `nessie directory list` shows what there is", options.name)});
}

/// Until it is killed, the directory is gone, or there were as many changes as were asked for. Waits for a directory
/// that is being started anew.
int watch(::directory::Directory &from, const DirectoryOptions &options) {
  const ::directory::query all{true, options.name};
  auto last = from.list(options.name, Deadline::in(std::chrono::seconds(options.timeout_s)));
  for (int changes = 0;; ++changes) {
    if (!last.ok()) return fail(last.error());
    print(*last, options);
    if (options.changes != 0 && changes == options.changes) return 0;
    const auto seen = *last;
    do { last = from.watch(all, last->at, Deadline::never()); } while (last.ok() && last->instances == seen.instances);
  }
}

}  // namespace

int directory(const DirectoryOptions &options) {
  auto config = Config::load();
  if (!config.ok()) return fail(config.error());
  if (!options.where.empty()) config->set("directory", options.where);
  const auto where = ::directory::directory_of(*config);
  if (!where.ok()) return fail(where.error());
  auto runtime_options = service::runtime_options(*config, nullptr);
  if (!runtime_options.ok()) return fail(runtime_options.error());
  auto runtime = nssi::Runtime::open(std::move(*runtime_options));
  if (!runtime.ok()) return fail(runtime.error());
  ::directory::Directory from(**runtime, *where);
  return options.action == Action::kWatch ? watch(from, options) : list(from, options);
}

}  // namespace nessie::cli
