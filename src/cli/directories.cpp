// SPDX-License-Identifier: BSD-3-Clause
#include "commands.hpp"

#include "speech.hpp"

#include <services/discovery/directory/client/client.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>

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

/// A watch is asked anew so often: a directory that does not answer any more is noticed by then.
constexpr std::chrono::seconds kNotice{3};
/// How long a directory that is gone is waited for.
constexpr std::chrono::seconds kPatience{60};

/// "14:03:09": when that is by the clock on the wall.
std::string time_of_day(std::chrono::seconds from_now) {
  const auto when = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + from_now);
  std::tm local{};
  localtime_r(&when, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

/// For people, in whatever form the listings are printed: on stderr, which has no buffer.
void say_connection(std::string_view what) { fmt::print(stderr, "nessie directory: {}\n", what); }

/// The next listing that differs from `seen`. Waits for a directory that is gone, as one that is being started anew,
/// and says so; after kPatience it is the error.
Result<::directory::listing> next_change(::directory::Directory &from, const ::directory::query &what,
                                         const ::directory::listing &seen) {
  std::optional<Deadline> lost_until;
  for (auto at = seen.at;;) {
    auto got = from.watch(what, at, Deadline::in(kNotice));
    if (got.ok()) {
      if (std::exchange(lost_until, std::nullopt)) say_connection("the directory is back");
      at = got->at;
      if (got->instances != seen.instances) return got;
      continue;
    }
    const bool may_come_back = got.code() == Code::kPeerLost || got.code() == Code::kTimedOut;
    if (!may_come_back || (lost_until && lost_until->passed())) return got;
    if (lost_until) continue;
    lost_until = Deadline::in(kPatience);
    say_connection(
        fmt::format("connection lost, trying again until {}: {}", time_of_day(kPatience), got.error().message));
  }
}

/// Until it is killed, the directory is gone, or there were as many changes as were asked for.
int watch(::directory::Directory &from, const DirectoryOptions &options) {
  const ::directory::query what{true, options.name};
  auto last = from.list(options.name, Deadline::in(std::chrono::seconds(options.timeout_s)));
  for (int changes = 0;; ++changes) {
    if (!last.ok()) return fail(last.error());
    print(*last, options);
    if (options.changes != 0 && changes == options.changes) return 0;
    last = next_change(from, what, *last);
  }
}

}  // namespace

int directory(const DirectoryOptions &options) {
  auto config = Config::load();
  if (!config.ok()) return fail(config.error());
  if (!options.where.empty()) config->set("directory", options.where);
  const auto where = ::directory::directory_of(*config);
  if (!where.ok()) return fail(where.error());
  nssi::RuntimeOptions runtime_options;
  runtime_options.endpoint.config = *config;
  runtime_options.endpoint.listen = false;
  auto runtime = nssi::Runtime::open(std::move(runtime_options));
  if (!runtime.ok()) return fail(runtime.error());
  ::directory::Directory from(**runtime, *where);
  return options.action == Action::kWatch ? watch(from, options) : list(from, options);
}

}  // namespace nessie::cli
