// SPDX-License-Identifier: BSD-3-Clause
#include "placement.hpp"

#include "speech.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>
#include <base/host.hpp>
#include <base/nearest.hpp>
#include <base/printable.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

namespace nessie::cli {

namespace {

template <class... Arguments> Error wrong(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
  return {Code::kInvalidArgument, fmt::format(text, std::forward<Arguments>(arguments)...)};
}

std::vector<std::string> names_of(const HostList &hosts) {
  std::vector<std::string> names;
  for (const auto &host : hosts) names.push_back(host.name);
  return names;
}

std::string name_some(const std::vector<std::string> &names) {
  constexpr std::size_t kMost = 8;
  if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, … {}", fmt::join(names.begin(), names.begin() + kMost - 1, ", "), names.back());
}

std::string servers_text(int count) { return counted(static_cast<std::uint64_t>(count), "staging server"); }
std::string nodes_text(int count) { return counted(static_cast<std::uint64_t>(count), "node"); }
std::string processes_text(int count) { return count == 1 ? "1 process" : fmt::format("{} processes", count); }

// --- what is wished --------------------------------------------------------------------------------------------------

Error no_place(std::string_view words) {
  const auto meant = nearest_of(words.substr(0, words.find(':')), {"near", "node", "each-node", "numa", "host"});
  return wrong("'{}' is no place{}: it is near, node, node:N, each-node, each-node:N, numa or host:NAME,…",
               printable(words.substr(0, 80)), meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant));
}

std::optional<int> count_of_place(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1) return std::nullopt;
  return std::min(count, kMostHosts);
}

// --- where the servers go --------------------------------------------------------------------------------------------

/// A server's host and, with kNuma, its domain.
struct Spot {
  JobHost host;
  int domain = -1;
};
using Spots = std::vector<Spot>;

/// So many servers, dealt to the hosts in turn.
Spots dealt(int servers, const HostList &hosts) {
  Spots spots;
  for (int i = 0; i < servers; ++i) spots.push_back({hosts[static_cast<std::size_t>(i) % hosts.size()]});
  return spots;
}

/// The host where `nessie run` is, which need not be one of the job's.
JobHost this_host(const HostList &hosts) {
  const auto here = std::ranges::find_if(hosts, &JobHost::here);
  return here != hosts.end() ? *here : JobHost{host_name(), 0, true};
}

Result<Spots> spots_apart(const PlacementRequest &request, HostList &program, HostList &servers_only) {
  const auto &hosts = request.allocation.hosts;
  const int have = static_cast<int>(hosts.size());
  const int nodes = std::max(request.wish.count > 0 ? request.wish.count : request.servers, 1);
  const int servers = request.servers > 0 ? request.servers : nodes;
  if (have <= nodes)
    return wrong(
        "{} for servers alone, and at least one for the program, are more than this job has: {} ({}); ask for more "
        "nodes, or take --place each-node or near",
        nodes_text(nodes), have, name_some(names_of(hosts)));
  if (servers < nodes)
    return wrong("{} cannot be on {}: take as many servers as nodes, or more", servers_text(servers),
                 nodes_text(nodes));
  program.assign(hosts.begin(), hosts.end() - nodes);
  servers_only.assign(hosts.end() - nodes, hosts.end());
  return dealt(servers, servers_only);
}

/// `each` says how many servers there are, and nobody else may.
Result<Spots> spots_on_each(const PlacementRequest &request, int each, bool by_domain) {
  Spots spots;
  for (const auto &host : request.allocation.hosts) {
    for (int i = 0; i < each && std::ssize(spots) <= NESSIE_MOST_SERVERS; ++i)
      spots.push_back({host, by_domain ? i : -1});
  }
  const int made = static_cast<int>(spots.size());
  if (request.servers > 0 && request.servers != made)
    return wrong("--servers {} does not go with a place that has {} on each of {}: leave --servers out",
                 request.servers, servers_text(each), nodes_text(static_cast<int>(request.allocation.hosts.size())));
  return spots;
}

/// Of a job whose hosts nobody told, any host may be.
Result<JobHost> named_host(const std::string &name, const Allocation &allocation) {
  for (const auto &host : allocation.hosts)
    if (host.name == name || (host.here && name == "localhost")) return host;
  if (allocation.source.empty()) return JobHost{name};
  const auto names = names_of(allocation.hosts);
  const auto meant = nearest_of(name, names);
  return wrong("{} is no host of this job's{}: {} names {}", printable(name),
               meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant), allocation.source, name_some(names));
}

Result<Spots> spots_on_named(const PlacementRequest &request) {
  HostList hosts;
  for (const auto &name : request.wish.hosts) {
    auto host = named_host(name, request.allocation);
    if (!host) return host.error();
    hosts.push_back(*std::move(host));
  }
  const int nodes = static_cast<int>(hosts.size()), servers = request.servers > 0 ? request.servers : nodes;
  if (servers < nodes)
    return wrong("{} cannot be on {}: name fewer, or take more servers", servers_text(servers), nodes_text(nodes));
  return dealt(servers, hosts);
}

Result<Spots> find_spots(const PlacementRequest &request, HostList &program, HostList &servers_only) {
  using Kind = PlaceWish::Kind;
  switch (request.wish.kind) {
    case Kind::kNear: return dealt(std::max(request.servers, 1), {this_host(request.allocation.hosts)});
    case Kind::kNode: return spots_apart(request, program, servers_only);
    case Kind::kEachNode: return spots_on_each(request, std::max(request.wish.count, 1), false);
    case Kind::kNuma: return spots_on_each(request, std::max(static_cast<int>(request.cores.domains.size()), 1), true);
    default: return spots_on_named(request);
  }
}

// --- where the ranks go ----------------------------------------------------------------------------------------------

int slots_of(const JobHost &host, const NodeCores &cores) {
  return std::max(host.slots > 0 ? host.slots : cores.count(), 1);
}

/// As launchers do it: host after host, to its slots; what is left over, to all in turn.
std::vector<int> deal_ranks(const Ranks &ranks, const HostList &hosts, const NodeCores &cores) {
  std::vector<int> dealt;
  int left = ranks.count > 0 ? ranks.count : kMostSlots;
  for (const auto &host : hosts) {
    dealt.push_back(std::min(left, ranks.per_host > 0 ? ranks.per_host : slots_of(host, cores)));
    left -= dealt.back();
  }
  if (ranks.count == 0) return dealt;
  const int on_each = left / static_cast<int>(hosts.size()), more = left % static_cast<int>(hosts.size());
  for (std::size_t i = 0; i < dealt.size(); ++i) dealt[i] += on_each + (static_cast<int>(i) < more ? 1 : 0);
  return dealt;
}

// --- which cores the servers get -------------------------------------------------------------------------------------

/// The last cores of each domain, if so many ranks are spread over the domains.
std::vector<Cores> left_free(const NodeCores &node, int ranks) {
  std::vector<Cores> left;
  const int domains = static_cast<int>(node.domains.size());
  for (int i = 0; i < domains; ++i) {
    const auto &cores = node.domains[static_cast<std::size_t>(i)];
    const auto taken =
        std::min(static_cast<std::size_t>(ranks / domains + (i < ranks % domains ? 1 : 0)), cores.size());
    left.emplace_back(cores.begin() + static_cast<std::ptrdiff_t>(taken), cores.end());
  }
  return left;
}

/// The `part`th of `parts` parts of the cores; empty: there are not enough.
std::string part_of(const std::vector<Cores> &domains, int part, int parts) {
  Cores all;
  for (const auto &cores : domains) all.insert(all.end(), cores.begin(), cores.end());
  if (static_cast<int>(all.size()) < parts) return {};
  const auto bound = [&](int number) { return all.begin() + static_cast<std::ptrdiff_t>(all.size()) * number / parts; };
  return to_text({bound(part), bound(part + 1)});
}

/// The servers of one host, in order, and the ranks that they have beside them.
void share_cores(const NodeCores &node, int ranks, const std::vector<std::pair<ServerPlace *, int>> &servers) {
  if (node.domains.empty()) return;
  const auto free = left_free(node, ranks);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const auto [server, domain] = servers[i];
    const auto number = static_cast<std::size_t>(std::max(domain, 0));
    if (domain >= 0)
      server->cores = to_text(free[number].empty() ? node.domains[number] : free[number]);
    else
      server->cores = part_of(free, static_cast<int>(i), static_cast<int>(servers.size()));
  }
}

int ranks_on(const std::string &host, const Placement &placement) {
  for (std::size_t i = 0; i < placement.program.size(); ++i)
    if (placement.program[i].name == host) return placement.ranks[i];
  return 0;
}

void give_cores(const Spots &spots, const NodeCores &cores, Placement &placement) {
  std::vector<std::string> done;
  for (const auto &spot : spots) {
    const auto &name = spot.host.name;
    if (std::ranges::count(done, name) > 0) continue;
    done.push_back(name);
    std::vector<std::pair<ServerPlace *, int>> servers;
    for (std::size_t i = 0; i < spots.size(); ++i)
      if (spots[i].host.name == name) servers.emplace_back(&placement.servers[i], spots[i].domain);
    share_cores(cores, ranks_on(name, placement), servers);
  }
}

// --- what to warn of -------------------------------------------------------------------------------------------------

void warn_of_ranks(const PlacementRequest &request, Placement &placement) {
  int slots = 0;
  for (const auto &host : placement.program) slots += slots_of(host, request.cores);
  if (request.ranks.count <= slots) return;
  placement.warnings.push_back(fmt::format(
      "{} of the program have {} on the nodes that are left for it ({})", processes_text(request.ranks.count),
      counted(static_cast<std::uint64_t>(slots), "slot"), name_some(names_of(placement.program))));
}

void warn_of_full_nodes(const PlacementRequest &request, Placement &placement) {
  std::vector<std::string> full;
  for (const auto &server : placement.servers) {
    const bool has_room = ranks_on(server.host, placement) < request.cores.count();
    if (!has_room && std::ranges::count(full, server.host) == 0) full.push_back(server.host);
  }
  if (!full.empty())
    placement.warnings.push_back(
        fmt::format("the program has a process for each core of {}: the staging servers there take "
                    "from it; start fewer processes, or take --place node",
                    name_some(full)));
}

}  // namespace

Result<PlaceWish> parse_place(std::string_view words) {
  using Kind = PlaceWish::Kind;
  if (words == "near") return PlaceWish{};
  if (words == "numa") return PlaceWish{Kind::kNuma, 0, {}};
  const auto colon = words.find(':');
  const auto word = words.substr(0, colon);
  const auto rest = colon == std::string_view::npos ? "" : words.substr(colon + 1);
  if (word == "host" && !split(rest, ",").empty()) return PlaceWish{Kind::kHosts, 0, split(rest, ",")};
  const auto count = count_of_place(rest);
  if ((word != "node" && word != "each-node") || (colon != std::string_view::npos && !count)) return no_place(words);
  return PlaceWish{word == "node" ? Kind::kNode : Kind::kEachNode, count.value_or(0), {}};
}

Result<Placement> place_servers(const PlacementRequest &request) {
  Placement placement;
  placement.program = request.allocation.hosts;
  const auto spots = find_spots(request, placement.program, placement.servers_only);
  if (!spots) return spots.error();
  if (std::ssize(*spots) > NESSIE_MOST_SERVERS)
    return wrong("these are more than {}, and there may be no more of a run", servers_text(NESSIE_MOST_SERVERS));
  for (const auto &spot : *spots)
    placement.servers.push_back({static_cast<int>(placement.servers.size()), spot.host.name, spot.host.here, ""});
  placement.ranks = deal_ranks(request.ranks, placement.program, request.cores);
  if (request.wish.kind == PlaceWish::Kind::kNear) return placement;
  give_cores(*spots, request.cores, placement);
  warn_of_ranks(request, placement);
  warn_of_full_nodes(request, placement);
  return placement;
}

std::string cores_by_index(const std::vector<ServerPlace> &places) {
  std::vector<std::string> cores;
  for (const auto &place : places) cores.push_back(place.cores);
  const bool any = std::ranges::any_of(cores, [](const auto &each) { return !each.empty(); });
  return any ? fmt::format("{}", fmt::join(cores, "/")) : std::string();
}

std::string describe(const Placement &placement) {
  std::string text;
  for (const auto &server : placement.servers)
    text += fmt::format("server {}: {}{}, {}\n", server.index, printable(server.host), server.here ? " (here)" : "",
                        server.cores.empty() ? "any core" : "cores " + server.cores);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < placement.program.size(); ++i)
    parts.push_back(fmt::format("{} on {}", placement.ranks[i], printable(placement.program[i].name)));
  const int ranks = std::accumulate(placement.ranks.begin(), placement.ranks.end(), 0);
  return text + fmt::format("program: {}: {}\n", processes_text(ranks), fmt::join(parts, ", "));
}

nlohmann::json to_json(const Placement &placement) {
  auto servers = nlohmann::json::array(), program = nlohmann::json::array();
  for (const auto &server : placement.servers) {
    servers.push_back(
        {{"index", server.index}, {"host", to_utf8(server.host)}, {"here", server.here}, {"cores", nullptr}});
    if (!server.cores.empty()) servers.back()["cores"] = server.cores;
  }
  for (std::size_t i = 0; i < placement.program.size(); ++i)
    program.push_back({{"host", to_utf8(placement.program[i].name)}, {"processes", placement.ranks[i]}});
  return {{"servers", servers}, {"program", program}, {"warnings", placement.warnings}};
}

}  // namespace nessie::cli
