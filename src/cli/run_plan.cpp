// SPDX-License-Identifier: BSD-3-Clause
#include "run_plan.hpp"

#include "allocation.hpp"
#include "keep_apart.hpp"
#include "speech.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace nessie::cli {

bool Plan::is_elsewhere() const { return std::ranges::any_of(placement.servers, std::not_fn(&ServerPlace::here)); }

int Plan::servers_of_a_node() const {
  int most = 1;
  for (const auto &place : placement.servers)
    most = std::max(most, static_cast<int>(std::ranges::count(placement.servers, place.host, &ServerPlace::host)));
  return most;
}

Result<Plan> make_plan(const RunOptions &options, const Environment &environment) {
  PlacementRequest request;
  auto wish = parse_place(options.place.empty() ? "near" : options.place);
  if (!wish) return wish.error();
  request.wish = *std::move(wish);
  request.servers = options.servers;
  if (request.wish.kind != PlaceWish::Kind::kNear || options.dry_run) {
    auto allocation = find_allocation(options.command, environment);
    if (!allocation) return allocation.error();
    request.allocation = *std::move(allocation);
    request.ranks = find_ranks(options.command, environment);
    auto cores = cores_of_this_node();
    if (!cores) return cores.error();
    request.cores = *std::move(cores);
  }
  auto placement = place_servers(request);
  if (!placement) return placement.error();
  if (options.mpmd && has_several_components(environment)) {
    if (request.wish.kind != PlaceWish::Kind::kNear)
      return Error{Code::kInvalidArgument,
                   "in a heterogeneous job --mpmd puts the servers on the component that the "
                   "program leaves free: run without --place"};
    for (auto &server : placement->servers) server.here = false;
  }
  auto command =
      keep_apart(placement->program, placement->servers_only, request.cores.count(), options.command, environment);
  if (!command) return command.error();
  return Plan{*std::move(placement), *std::move(command)};
}

int print(const Plan &plan, const RunOptions &options) {
  fmt::print("{}", describe(plan.placement));
  for (const auto &warning : plan.placement.warnings) say("warning: " + warning);
  if (options.json_file.empty()) return 0;
  const auto written = write_output(options.json_file, to_json(plan.placement).dump(2) + "\n");
  if (!written) say("error: " + written.error().message);
  return written ? 0 : 1;
}

}  // namespace nessie::cli
