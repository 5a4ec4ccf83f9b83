// SPDX-License-Identifier: BSD-3-Clause
// xfer: the transfer service of the Nessie paper, section 5. Arrays of structs of 16 bytes are written and read, as
// arguments and results or as bulk data that the service moves, by one client, by the size of the array, and by many.
// NNTI's own get and put of the same memory show what the service could reach; Open MPI, and libtirpc's calls and
// codec, what others make of it.
#include "comparison.hpp"
#include "machine.hpp"
#include "one_sided.hpp"
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

std::vector<std::uint64_t> sizes_for(const Options &options) {
  if (options.once) return {4 << 10, 1 << 20};
  return options.quick ? sizes_between(4 << 10, 16 << 20, 16) : sizes_between(1 << 10, 64 << 20, 4);
}

std::vector<int> clients_for(const Options &options) {
  if (options.once) return {1, 4};
  return options.quick ? std::vector{1, 64} : std::vector{1, 2, 4, 8, 16, 32, 64};
}

/// The mode of what is counted while many clients are at it. One of them alone is counted as they are.
std::string of_many(const std::string &mode) { return mode + "-counted"; }
/// The mode of one client that uses as many arrays in turn as the most clients have together: as little of them is in
/// the caches.
std::string of_spread(const std::string &mode) { return mode + "-spread"; }

class Xfer final : public Comparison {
 public:
  Xfer(const Options &options, Report &report);

 private:
  Status measure() override;
  void add_ratios() override;
  Status one_client();
  Status many_clients(const Way &way, const std::string &mode, int clients, int arrays);
  Status ask_about_one();
  Status ask_about_many(int clients);
  void codec(std::uint64_t size);
  void add_ratios_of_rdma(std::uint64_t size, const std::string &kind);
  void add_ratios_of_encoded(std::uint64_t size);
  void add_ratios_of_many();
  void compare_openmpi(const Series &mine, const std::string &mode) {
    for (const auto &rival : openmpi_) compare(mine, theirs(rival, mode, mine.size_bytes, mine.clients));
  }

  std::vector<Rival> openmpi_, tirpc_;
  std::vector<std::uint64_t> sizes_, sizes_of_tirpc_;
  std::vector<int> clients_;
};

Xfer::Xfer(const Options &options, Report &report)
    : Comparison(options, report, {"bandwidth_MBps", "MB/s"}),
      openmpi_(those_here({Library::kOpenMpi}, {network_})),
      tirpc_(rpc_rivals_here({Library::kTirpc})),
      sizes_(sizes_for(options)),
      clients_(clients_for(options)) {
  const auto most = options.quick ? kMostOfTirpcQuick : kMostOfTirpc;
  std::ranges::copy_if(sizes_, std::back_inserter(sizes_of_tirpc_), [&](auto size) { return size <= most; });
  if (options.quick) std::erase_if(tirpc_, [](const Rival &it) { return it.network == Network::kTcp; });
}

// --- measuring -------------------------------------------------------------------------------------------------------

Status Xfer::one_client() {
  return add(run_xfer_team(options_, {}, {sizes_.back()}, [&](XferClient &client, Lane &lane) -> Status {
    for (const auto &way : kWays) {
      client.prepare();
      for (auto size : sizes_) {
        const int calls = std::min(transfers_per_batch(size), kRoundTrips);
        lane.leave(way.mode, size, megabytes_per_s(typical_us(calls, [&](bool) { client.call(way, size); }), size));
      }
    }
    return {};
  }));
}

/// `arrays`: of each client's, in turn.
Status Xfer::many_clients(const Way &way, const std::string &mode, int clients, int arrays) {
  const auto lead = [&](XferClient &client, Lane &lane) -> Status {
    client.prepare();
    const auto once = [&](bool) { client.call(way, kSizeOfMany); };
    tally_for(kWarmUp_s, once);
    lane.tally = tally_for(kTally_s, once);
    return {};
  };
  auto board = run_xfer_team(options_, {clients, kRpcDefault}, {kSizeOfMany, arrays}, lead);
  if (!board) return board.error();
  add(ours(mode, kSizeOfMany, clients), megabytes_counted(calls_per_s(**board, clients), kSizeOfMany));
  return {};
}

Status Xfer::ask_about_one() {
  auto status = ask(openmpi_, {},
                    {{"transfer", sizes_, "send", megabytes_per_s},
                     {"put", sizes_, "put", megabytes_per_s},
                     {"get", sizes_, "get", megabytes_per_s}});
  if (!status.ok()) return status;
  return ask(tirpc_, {},
             {{"write-encode", sizes_of_tirpc_, "write-encode", megabytes_per_s},
              {"read-encode", sizes_of_tirpc_, "read-encode", megabytes_per_s}});
}

/// Messages of many to one would be received one after the other; puts and gets are not.
Status Xfer::ask_about_many(int clients) {
  return ask(openmpi_, {clients, true},
             {{"puts-per-s", {kSizeOfMany}, of_many("put"), megabytes_counted},
              {"gets-per-s", {kSizeOfMany}, of_many("get"), megabytes_counted}});
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
  if (good) add(series("libtirpc", "memory", kCodec, size), megabytes_per_s(us, size));
}

Status Xfer::measure() {
  auto status = add(run_one_sided(options_, sizes_));
  if (status.ok()) status = one_client();
  if (status.ok()) status = ask_about_one();
  for (auto size : sizes_) codec(size);
  for (int clients : clients_) {
    for (const auto &way : kWaysOfMany)
      if (status.ok()) status = many_clients(way, of_many(way.mode), clients, 1);
    if (status.ok()) status = ask_about_many(clients);
  }
  for (const auto &way : kWaysOfMany)
    if (way.mapped && status.ok()) status = many_clients(way, of_spread(way.mode), 1, clients_.back());
  return status;
}

// --- ratios ----------------------------------------------------------------------------------------------------------

/// A write is a get of the service's, a read its put.
void Xfer::add_ratios_of_rdma(std::uint64_t size, const std::string &kind) {
  const auto write = ours("write-rdma-" + kind, size), read = ours("read-rdma-" + kind, size);
  compare(write, ours("get-" + kind, size));
  compare(read, ours("put-" + kind, size));
  compare(write, read);
  for (const char *theirs : {"send", "put"}) compare_openmpi(write, theirs);
  compare_openmpi(read, "get");
}

void Xfer::add_ratios_of_encoded(std::uint64_t size) {
  for (const std::string what : {"write", "read"}) {
    const auto encoded = ours(what + "-encode", size);
    for (const char *bulk : {"-rdma-mapped", "-rdma-copied"}) compare(encoded, ours(what + bulk, size));
    compare(encoded, series("libtirpc", "memory", kCodec, size));
    for (const auto &rival : tirpc_) compare(encoded, theirs(rival, what + "-encode", size));
    compare(ours(what + "-rdma-validated", size), ours(what + "-rdma-mapped", size));
  }
}

void Xfer::add_ratios_of_many() {
  const auto alone = clients_.front();
  for (int clients : clients_)
    for (const auto &way : kWaysOfMany) {
      const auto counted = ours(of_many(way.mode), kSizeOfMany, clients);
      if (clients != alone) compare(counted, ours(of_many(way.mode), kSizeOfMany, alone));
      if (clients == clients_.back()) compare(counted, ours(of_spread(way.mode), kSizeOfMany));
      const bool writes = way.kind == Way::Kind::kWriteEncode || way.kind == Way::Kind::kWriteRdma;
      compare_openmpi(counted, of_many(writes ? "put" : "get"));
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
  return Xfer(options, report).run_on_fit_cores(options.repetitions(5, 2), "arrays");
}

}  // namespace bench
