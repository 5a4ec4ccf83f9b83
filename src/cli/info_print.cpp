// SPDX-License-Identifier: BSD-3-Clause
// `nessie info` for people, and for programs.
#include "info.hpp"

#include "memory.hpp"
#include "version.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace nessie::cli {

namespace {

void print_facts(const std::vector<nnti::Fact> &facts, const char *indent) {
  for (const auto &fact : facts) fmt::print("{}{}: {}\n", indent, fact.name, fact.value);
}

void print_transports(const InfoReport &report) {
  fmt::print("Transports of this machine, in order of preference:\n");
  for (const auto &transport : report.transports) {
    fmt::print("  {:<8} {:<14} {}\n", transport.name, transport.available ? "available" : "not available",
               transport.explanation);
    print_facts(transport.facts, "           ");
  }
  fmt::print(
      "An endpoint's URL lists what it can be reached by. Each peer is reached over the first transport of this order\n"
      "that is in its list and can reach it from here; where connecting fails, over the next.\n");
}

void print_machine(const InfoReport &report) {
  fmt::print("\nThresholds:\n");
  print_facts(report.thresholds, "  ");
  fmt::print("\nThis machine, and the limits of this process:\n");
  print_facts(report.limits, "  ");
  fmt::print("  cross-memory attach (reading memory that the application owns): {}\n", report.cross_memory_attach);
  fmt::print("  memory for staging, if nothing else is said: {}\n", default_memory_of_each(1));
  fmt::print("  PnetCDF: {}\n  MPI: {}\n", pnetcdf_version(), mpi_version());
}

const char *name_of(nnti::Rendezvous::Origin origin) {
  switch (origin) {
    case nnti::Rendezvous::Origin::kConfigured: return "configured";
    case nnti::Rendezvous::Origin::kMeasured: return "measured";
    default: return "default: nothing could be found out";
  }
}

void print_rendezvous(const std::vector<Probe> &probes) {
  for (const auto &probe : probes) {
    if (!probe.test || !probe.test->ok() || !(*probe.test)->rendezvous) continue;
    const auto &found = *(*probe.test)->rendezvous;
    const auto from = found.write_from == nnti::Rendezvous::kNever
                          ? std::string("always read by their receiver")
                          : fmt::format("written by their sender from {} KiB on, while their receiver reads {} %",
                                        found.write_from / 1024, found.read_percent);
    fmt::print("  {:<8} large messages are {} ({})\n", probe.transport, from, name_of(found.origin));
  }
}

void print_measurements(const std::vector<Probe> &probes) {
  fmt::print("  {:<8} {:>12} {:>14} {:>11} {:>11} {:>11} {:>11} {:>15}\n", "", "connect", "8 B one way", "get mapped",
             "put mapped", "get own", "put own", "register 1 MiB");
  for (const auto &probe : probes) {
    if (!probe.test) continue;
    if (!probe.test->ok()) {
      fmt::print("  {:<8} failed: {}\n", probe.transport, probe.test->error().message);
      continue;
    }
    const auto &result = **probe.test;
    fmt::print(
        "  {:<8} {:>9.2f} ms {:>11.2f} us {:>6.0f} MB/s {:>6.0f} MB/s {:>6.0f} MB/s {:>6.0f} MB/s {:>12.2f} us\n",
        probe.transport, result.connect_ms, result.half_round_trip_us, result.get_mapped_MBps, result.put_mapped_MBps,
        result.get_own_MBps, result.put_own_MBps, result.register_us);
  }
  fmt::print(
      "  (medians; 1 MiB at a time, of the other side's memory: mapped, that Nessie allocated; own, the\n"
      "  application's)\n");
  print_rendezvous(probes);
}

void print_choice(const Result<Probe> &chosen) {
  if (!chosen.ok()) return fmt::print("  no connection: {}\n", chosen.error().message);
  fmt::print("  chosen: {}\n", chosen->explanation);
  fmt::print("  messages: up to {} bytes in place, up to {} at all\n", chosen->in_place_bytes, chosen->message_bytes);
}

void print_urls(const std::vector<Probe> &probes) {
  for (const auto &probe : probes)
    fmt::print("  {}\n    {}{}\n", probe.url, probe.reached() ? "usable: " : "not usable: ", probe.explanation);
}

void print_connections(const InfoReport &report) {
  if (!report.chosen) return;
  if (report.peer.empty()) {
    fmt::print("\nBetween two processes of this machine (inproc: two endpoints of one process):\n");
    for (const auto &probe : report.probes)
      if (!probe.reached()) fmt::print("  {}: cannot be used: {}\n", probe.url, probe.explanation);
    print_choice(*report.chosen);
    return print_measurements(report.probes);
  }
  fmt::print("\nBetween this process and {}:\n", report.peer);
  print_urls(report.probes);
  print_choice(*report.chosen);
  if (!report.chosen->ok() || !(*report.chosen)->test) return;
  print_measurements(report.probes.size() > 1 && report.probes.front().test ? report.probes
                                                                            : std::vector<Probe>{**report.chosen});
}

// --- JSON -------------------------------------------------------------------------------------------------------------

using nlohmann::json;

json facts_json(const std::vector<nnti::Fact> &facts) {
  auto list = json::array();
  for (const auto &fact : facts) list.push_back({{"name", fact.name}, {"value", fact.value}});
  return list;
}

void add_test(const Probe &probe, json &object) {
  if (!probe.test) return;
  if (!probe.test->ok()) {
    object["error"] = probe.test->error().message;
    return;
  }
  const auto &result = **probe.test;
  object["connect_ms"] = result.connect_ms;
  object["half_round_trip_us"] = result.half_round_trip_us;
  object["get_mapped_MBps"] = result.get_mapped_MBps;
  object["put_mapped_MBps"] = result.put_mapped_MBps;
  object["get_own_MBps"] = result.get_own_MBps;
  object["put_own_MBps"] = result.put_own_MBps;
  object["register_1MiB_us"] = result.register_us;
  if (!result.rendezvous) return;
  const auto from = result.rendezvous->write_from;
  object["written_from_bytes"] = from == nnti::Rendezvous::kNever ? json(nullptr) : json(from);
  object["written_from_is"] = name_of(result.rendezvous->origin);
}

json probe_json(const Probe &probe) {
  json object = {{"url", probe.url}, {"reached", probe.reached()}, {"explanation", probe.explanation}};
  if (!probe.reached()) return object;
  object["transport"] = probe.transport;
  object["in_place_bytes"] = probe.in_place_bytes;
  object["message_bytes"] = probe.message_bytes;
  add_test(probe, object);
  return object;
}

json chosen_json(const std::optional<Result<Probe>> &chosen) {
  if (!chosen) return nullptr;
  return chosen->ok() ? probe_json(**chosen) : json{{"error", chosen->error().message}};
}

}  // namespace

void print_text(const InfoReport &report) {
  print_transports(report);
  print_machine(report);
  print_connections(report);
}

void print_json(const InfoReport &report) {
  auto transports = json::array(), urls = json::array();
  for (const auto &transport : report.transports)
    transports.push_back({{"name", transport.name},
                          {"available", transport.available},
                          {"explanation", transport.explanation},
                          {"facts", facts_json(transport.facts)}});
  for (const auto &probe : report.probes) urls.push_back(probe_json(probe));
  const json all = {{"nessie", NESSIE_VERSION},
                    {"transports", transports},
                    {"thresholds", facts_json(report.thresholds)},
                    {"limits", facts_json(report.limits)},
                    {"cross_memory_attach", report.cross_memory_attach},
                    {"peer", report.peer.empty() ? json(nullptr) : json(report.peer)},
                    {"urls", urls},
                    {"chosen", chosen_json(report.chosen)},
                    {"pnetcdf", pnetcdf_version()},
                    {"mpi", mpi_version()}};
  fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
}

}  // namespace nessie::cli
