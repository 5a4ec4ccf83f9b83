// SPDX-License-Identifier: BSD-3-Clause
// xfer: the transfer service of the Nessie paper, section 5. Arrays of structs of 16 bytes are written and read, as
// arguments and results or as bulk data that the service moves, by one client, by the size of the array, and by many.
// NNTI's own get and put of the same memory show what the service could reach; Open MPI, and libtirpc's calls and
// codec, what others make of it.
#include "machine.hpp"
#include "one_sided.hpp"
#include "repeat.hpp"
#include "rivals.hpp"
#include "timing.hpp"
#include "xdr_libtirpc.h"
#include "xfer_team.hpp"

#include <algorithm>
#include <string>

namespace bench {
namespace {

using nessie::Status;

constexpr std::uint64_t kSizeOfMany = 1 << 20;
/// The most that libtirpc is asked for: its service's memory; and in a quick run, because its calls take so long.
constexpr std::uint64_t kMostOfTirpc = 16 << 20, kMostOfTirpcQuick = 1 << 20;
constexpr const char *kCodec = "encode-decode";
/// What Open MPI is asked for, and the mode under which it is reported; by one client, and by many of one server.
struct Beside {
  const char *one, *many, *mode;
};
constexpr Beside kBesides[] = {
    {"transfer", nullptr, "send"}, {"put", "puts-per-s", "put"}, {"get", "gets-per-s", "get"}};

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {4 << 10, 1 << 20};
  if (options.quick) return {4 << 10, 64 << 10, 1 << 20, 16 << 20};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 1 << 10; size <= 64 << 20; size *= 4) sizes.push_back(size);
  return sizes;
}

std::vector<int> clients_for(const Options &options) {
  if (options.once) return {1, 4};
  return options.quick ? std::vector{1, 64} : std::vector{1, 2, 4, 8, 16, 32, 64};
}

Series series(const std::string &system, const std::string &transport, const std::string &mode, std::uint64_t size,
              int clients = 1) {
  return {system, transport, mode, size, clients, "bandwidth_MBps", "MB/s"};
}

/// The mode of what is counted while many clients are at it. One of them alone is counted as they are.
std::string of_many(const std::string &mode) { return mode + "-counted"; }
/// The mode of one client that uses as many arrays in turn as the most clients have together: as little of them is in
/// the caches.
std::string of_spread(const std::string &mode) { return mode + "-spread"; }

class Xfer {
 public:
  Xfer(const Options &options, Report &report);
  Status measure(int repetition);
  void add_ratios();

 private:
  Status one_client();
  Status many_clients(const Way &way, const std::string &mode, int clients, int arrays);
  Status one_sided();
  Status openmpi();
  Status openmpi_of_many(int clients);
  Status tirpc();
  void codec(std::uint64_t size);
  void add_ratios_of_rdma(std::uint64_t size, const std::string &kind);
  void add_ratios_of_encoded(std::uint64_t size);
  void add_ratios_of_many();

  void add(const std::string &system, const std::string &transport, const std::string &mode, const TimesBySize &times) {
    for (auto [size, us] : times)
      report_.add(series(system, transport, mode, size), repetition_, megabytes_per_s(size, us));
  }
  Series ours(const std::string &mode, std::uint64_t size, int clients = 1) const {
    return series("nessie", options_.transport, mode, size, clients);
  }
  Series mpi(const std::string &mode, std::uint64_t size, int clients = 1) const {
    return series(name_of(Rival::kOpenMpi), name_of(network_), mode, size, clients);
  }

  const Options &options_;
  Report &report_;
  Network network_;
  bool has_openmpi_;
  std::vector<RpcRival> tirpcs_;  ///< over TCP and over UNIX sockets
  std::vector<std::uint64_t> sizes_, sizes_of_tirpc_;
  std::vector<int> clients_;
  int repetition_ = 0;
};

Xfer::Xfer(const Options &options, Report &report)
    : options_(options),
      report_(report),
      network_(network_of(options.transport)),
      has_openmpi_(!those_here({Rival::kOpenMpi}).empty()),
      tirpcs_(rpc_rivals_here({Rival::kTirpc})),
      sizes_(sizes_for(options)),
      clients_(clients_for(options)) {
  const auto most = options.quick ? kMostOfTirpcQuick : kMostOfTirpc;
  std::ranges::copy_if(sizes_, std::back_inserter(sizes_of_tirpc_), [&](auto size) { return size <= most; });
  if (options.quick) std::erase_if(tirpcs_, [](const RpcRival &it) { return it.network == Network::kTcp; });
}

// --- measuring -------------------------------------------------------------------------------------------------------

Status Xfer::one_client() {
  ServiceTeam team;
  auto board = board_for(team);
  const auto lead = [&](XferClient &client, Lane &lane) -> Status {
    auto *next = lane.values.data();
    for (const auto &way : kWays) {
      client.prepare();
      for (auto size : sizes_)
        *next++ = typical_us(std::min(transfers_per_batch(size), kRoundTrips), [&](bool) { client.call(way, size); });
    }
    return {};
  };
  if (auto status = run_xfer_team(options_, team, {sizes_.back()}, *board, lead); !status.ok()) return status;
  const auto *value = board->lane(0).values.data();
  for (const auto &way : kWays)
    for (auto size : sizes_) add("nessie", options_.transport, way.mode, {{size, *value++}});
  return {};
}

/// `arrays`: of each client's, in turn.
Status Xfer::many_clients(const Way &way, const std::string &mode, int clients, int arrays) {
  ServiceTeam team{clients, kRpcDefault};
  auto board = board_for(team);
  const auto lead = [&](XferClient &client, Lane &lane) -> Status {
    client.prepare();
    const auto once = [&](bool) { client.call(way, kSizeOfMany); };
    tally_for(kWarmUp_s, once);
    lane.tally = tally_for(kTally_s, once);
    return {};
  };
  if (auto status = run_xfer_team(options_, team, {kSizeOfMany, arrays}, *board, lead); !status.ok()) return status;
  report_.add(ours(mode, kSizeOfMany, clients), repetition_,
              calls_per_s(*board, clients) * static_cast<double>(kSizeOfMany) / 1e6);
  return {};
}

Status Xfer::one_sided() {
  auto times = one_sided_times(options_, sizes_);
  if (!times) return times.error();
  for (const char *mode : kOneSided) add("nessie", options_.transport, mode, (*times)[mode]);
  return {};
}

Status Xfer::openmpi() {
  if (!has_openmpi_) return {};
  std::vector<Question> questions;
  for (const auto &beside : kBesides) questions.push_back({beside.one, sizes_});
  auto answers = ask(Rival::kOpenMpi, {network_}, questions);
  if (!answers) return answers.error();
  for (const auto &beside : kBesides)
    add(name_of(Rival::kOpenMpi), name_of(network_), beside.mode, (*answers)[beside.one]);
  return {};
}

/// Messages of many to one would be received one after the other; puts and gets are not.
Status Xfer::openmpi_of_many(int clients) {
  if (!has_openmpi_) return {};
  std::vector<Question> questions;
  for (const auto &beside : kBesides)
    if (beside.many) questions.push_back({beside.many, {kSizeOfMany}});
  auto answers = ask(Rival::kOpenMpi, {network_, clients, true}, questions);
  if (!answers) return answers.error();
  for (const auto &beside : kBesides)
    if (beside.many)
      for (auto [size, rate] : (*answers)[beside.many])
        report_.add(mpi(of_many(beside.mode), size, clients), repetition_, rate * static_cast<double>(size) / 1e6);
  return {};
}

Status Xfer::tirpc() {
  for (const auto &it : tirpcs_) {
    auto answers = ask(it.rival, {it.network}, {{"write-encode", sizes_of_tirpc_}, {"read-encode", sizes_of_tirpc_}});
    if (!answers) return answers.error();
    for (const char *mode : {"write-encode", "read-encode"})
      add(name_of(it.rival), name_of(it.network), it.mode(mode), (*answers)[mode]);
  }
  return {};
}

/// libtirpc's, into memory that is there, and out of it: what a call does at its two ends, and nothing between.
void Xfer::codec(std::uint64_t size) {
  Pin pin(0);
  PageAligned<transfer::data_t> array(size / sizeof(transfer::data_t));
  transfer::fill(array, 1);
  PageAligned<std::byte> message(size + sizeof(std::uint32_t));
  const auto count = static_cast<unsigned>(array.size());
  bool good = true;
  const auto us = typical_us(std::max(1, transfers_per_batch(size) / 16), [&](bool) {
    good = good && tirpc_encode(TIRPC_STRUCTS, array.data(), count, message.data(), message.size()) &&
           tirpc_decode(TIRPC_STRUCTS, message.data(), message.size(), array.data(), count);
  });
  if (good) add("libtirpc", "memory", kCodec, {{size, us}});
}

Status Xfer::measure(int repetition) {
  repetition_ = repetition;
  auto status = one_sided();
  if (status.ok()) status = one_client();
  if (status.ok()) status = openmpi();
  if (status.ok()) status = tirpc();
  for (auto size : sizes_) codec(size);
  for (int clients : clients_) {
    for (const auto &way : kWaysOfMany)
      if (status.ok()) status = many_clients(way, of_many(way.mode), clients, 1);
    if (status.ok()) status = openmpi_of_many(clients);
  }
  for (const auto &way : kWaysOfMany)
    if (way.mapped && status.ok()) status = many_clients(way, of_spread(way.mode), 1, clients_.back());
  return status;
}

// --- ratios ----------------------------------------------------------------------------------------------------------

/// A write is a get of the service's, a read its put.
void Xfer::add_ratios_of_rdma(std::uint64_t size, const std::string &kind) {
  const auto write = ours("write-rdma-" + kind, size), read = ours("read-rdma-" + kind, size);
  report_.add_ratio(write, ours("get-" + kind, size));
  report_.add_ratio(read, ours("put-" + kind, size));
  report_.add_ratio(write, read);
  for (const char *theirs : {"send", "put"}) report_.add_ratio(write, mpi(theirs, size));
  report_.add_ratio(read, mpi("get", size));
}

void Xfer::add_ratios_of_encoded(std::uint64_t size) {
  for (const std::string what : {"write", "read"}) {
    const auto encoded = ours(what + "-encode", size);
    for (const char *bulk : {"-rdma-mapped", "-rdma-copied"}) report_.add_ratio(encoded, ours(what + bulk, size));
    report_.add_ratio(encoded, series("libtirpc", "memory", kCodec, size));
    for (const auto &it : tirpcs_)
      report_.add_ratio(encoded, series(name_of(it.rival), name_of(it.network), it.mode(what + "-encode"), size));
    report_.add_ratio(ours(what + "-rdma-validated", size), ours(what + "-rdma-mapped", size));
  }
}

void Xfer::add_ratios_of_many() {
  const auto alone = clients_.front();
  for (int clients : clients_)
    for (const auto &way : kWaysOfMany) {
      const auto counted = ours(of_many(way.mode), kSizeOfMany, clients);
      if (clients != alone) report_.add_ratio(counted, ours(of_many(way.mode), kSizeOfMany, alone));
      if (clients == clients_.back()) report_.add_ratio(counted, ours(of_spread(way.mode), kSizeOfMany));
      const bool writes = way.kind == Way::Kind::kWriteEncode || way.kind == Way::Kind::kWriteRdma;
      report_.add_ratio(counted, mpi(of_many(writes ? "put" : "get"), kSizeOfMany, clients));
    }
}

void Xfer::add_ratios() {
  for (auto size : sizes_) {
    add_ratios_of_rdma(size, "mapped");
    add_ratios_of_rdma(size, "application");
    add_ratios_of_encoded(size);
  }
  add_ratios_of_many();
}

}  // namespace

Status xfer(const Options &options, Report &report) {
  Xfer xfer(options, report);
  return compare_on_fit_cores(options.repetitions(5, 2), report, "arrays", xfer);
}

}  // namespace bench
