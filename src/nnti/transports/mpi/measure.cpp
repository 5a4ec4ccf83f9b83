// SPDX-License-Identifier: BSD-3-Clause
// The transport mpi beside the MPI underneath, between two ranks, in one run:
//   mpiexec -n 2 build/tests/nnti_mpi_measure [rounds]
// One JSON line a figure, then one a ratio. Both ranks poll.
#include <nnti/mpi.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

namespace {

using namespace std::chrono_literals;
using nnti::Deadline;

constexpr int kTurns = 200, kTransfers = 8, kInFlight = 4;
constexpr std::size_t kBulkBytes = 16 << 20;
constexpr auto kPatience = 60s;

[[noreturn]] void fail(const std::string &why) {
  fmt::print(stderr, "nnti_mpi_measure: {}\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

double seconds(const std::function<void()> &work) {
  const auto begin = nessie::Clock::now();
  work();
  return std::chrono::duration<double>(nessie::Clock::now() - begin).count();
}

struct Counter final : nnti::Completion {
  void on_complete(nnti::Status status) override {
    if (!status.ok()) fail(status.error().message);
    ++completed;
  }
  int completed = 0;
};

/// Rank 1 echoes messages; an empty one ends its turn. Its first message to rank 0 describes its buffer.
struct Side final : nnti::EventSink {
  void on_message(nnti::PeerId from, std::span<const std::byte> message) override {
    ++received;
    last = message.size();
    if (message.size() == sizeof remote) std::memcpy(&remote, message.data(), sizeof remote);
    if (echoes && !message.empty() && !endpoint->send(from, message).ok()) fail("cannot echo");
  }
  void on_peer_connected(nnti::PeerId id) override { peer = id; }
  void on_peer_lost(nnti::PeerId, const nnti::Error &error) override { fail(error.message); }
  template <class State> void until(State state) {
    const auto watchdog = Deadline::in(kPatience);
    for (unsigned turn = 0; !state(); ++turn) {
      endpoint->progress();
      if (turn % 65536 == 65535 && watchdog.passed()) fail("no progress");
    }
  }

  std::unique_ptr<nnti::Endpoint> endpoint;
  nnti::PeerId peer;
  nnti::RemoteBuffer remote;
  std::size_t received = 0, last = 0;
  bool echoes = false;
};

int my_rank = 0;

// --- MPI itself -----------------------------------------------------------------------------------------------------------

double mpi_half_round_trip_us() {
  std::array<char, 8> word{};
  return 1e6 / (2 * kTurns) * seconds([&] {
           for (int i = 0; i < kTurns; ++i) {
             if (my_rank == 0) MPI_Send(word.data(), 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
             MPI_Recv(word.data(), 8, MPI_BYTE, 1 - my_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
             if (my_rank == 1) MPI_Send(word.data(), 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
           }
         });
}

double mpi_bandwidth_MBps(std::vector<std::byte> &mine) {
  std::array<MPI_Request, kTransfers> requests;
  const auto time = seconds([&] {
    for (int i = 0; i < kTransfers; ++i) {
      auto *at = mine.data() + static_cast<std::size_t>(i % kInFlight) * kBulkBytes;
      if (i >= kInFlight) MPI_Wait(&requests[static_cast<std::size_t>(i - kInFlight)], MPI_STATUS_IGNORE);
      auto *request = &requests[static_cast<std::size_t>(i)];
      if (my_rank == 0)
        MPI_Irecv(at, kBulkBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, request);
      else
        MPI_Isend(at, kBulkBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, request);
    }
    MPI_Waitall(kInFlight, requests.data() + kTransfers - kInFlight, MPI_STATUSES_IGNORE);
  });
  return kTransfers * static_cast<double>(kBulkBytes) / time / 1e6;
}

// --- NNTI over it -----------------------------------------------------------------------------------------------------------

void say(Side &side, std::span<const std::byte> message) {
  if (!side.endpoint->send(side.peer, message).ok()) fail("cannot send");
}

double nnti_half_round_trip_us(Side &side) {
  if (my_rank == 1) {
    side.until([&, turns = side.received + kTurns] { return side.received == turns; });
    return 0;
  }
  const std::array<std::byte, 8> word{};
  return 1e6 / (2 * kTurns) * seconds([&] {
           for (int i = 0; i < kTurns; ++i) {
             const auto before = side.received;
             say(side, word);
             side.until([&] { return side.received != before; });
           }
         });
}

double nnti_bandwidth_MBps(Side &side, bool get, std::vector<std::byte> &mine) {
  Counter counter;
  if (my_rank == 1) {
    side.until([&, turns = side.received + 1] { return side.received == turns; });
    return 0;
  }
  const auto time = seconds([&] {
    for (int i = 0; i < kTransfers; ++i) {
      side.until([&] { return i - counter.completed < kInFlight; });
      const auto at = static_cast<std::size_t>(i % kInFlight) * kBulkBytes;
      const auto local = std::span(mine).subspan(at, kBulkBytes);
      if (get)
        side.endpoint->get(side.peer, side.remote, at, local, counter);
      else
        side.endpoint->put(side.peer, side.remote, at, local, counter);
    }
    side.until([&] { return counter.completed == kTransfers; });
  });
  say(side, {});
  return kTransfers * static_cast<double>(kBulkBytes) / time / 1e6;
}

// --- the run ------------------------------------------------------------------------------------------------------------------

void connect(Side &side) {
  nnti::EndpointOptions options;
  options.transports = {"mpi"};
  options.extra_transports = {&nnti::mpi::transport_kind()};
  auto opened = nnti::Endpoint::open(std::move(options), side);
  if (!opened.ok()) fail(opened.error().message);
  side.endpoint = std::move(*opened);
  std::array<char, 256> url{};
  std::strncpy(url.data(), side.endpoint->url().c_str(), url.size() - 1);
  MPI_Bcast(url.data(), url.size(), MPI_CHAR, 1, MPI_COMM_WORLD);
  if (my_rank == 1) return side.until([&] { return side.peer.value != 0; });
  auto peer = side.endpoint->connect(url.data(), Deadline::in(kPatience));
  if (!peer.ok()) fail(peer.error().message);
  side.peer = *peer;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

using Figures = std::map<std::string, std::vector<double>>;

void report(const Figures &figures) {
  for (const auto &[name, values] : figures)
    fmt::print("{{\"figure\": \"{}\", \"median\": {:.3f}, \"min\": {:.3f}, \"max\": {:.3f}, \"n\": {}}}\n", name,
               median(values), *std::ranges::min_element(values), *std::ranges::max_element(values), values.size());
  const auto ratio = [&](const char *ours, const char *theirs) {
    fmt::print("{{\"ratio\": \"{} / {}\", \"of_medians\": {:.3f}}}\n", ours, theirs,
               median(figures.at(ours)) / median(figures.at(theirs)));
  };
  ratio("nessie half_round_trip_us", "mpi half_round_trip_us");
  ratio("nessie get_MBps", "mpi MBps");
  ratio("nessie put_MBps", "mpi MBps");
}

void measure(int rounds) {
  Side side;
  side.echoes = my_rank == 1;
  connect(side);
  std::vector<std::byte> mine(kInFlight * kBulkBytes, std::byte{1});
  auto buffer = side.endpoint->register_memory(mine, nnti::Rights::kReadWrite);
  if (!buffer.ok()) fail(buffer.error().message);
  if (my_rank == 1) {
    auto description = buffer->describe_for(side.peer);
    if (!description.ok()) fail(description.error().message);
    say(side, std::as_bytes(std::span(&*description, 1)));
  } else {
    side.until([&] { return side.received == 1; });
  }
  Figures figures;
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    const auto note = [&](const char *name, double value) {
      if (round >= 0) figures[name].push_back(value);
      MPI_Barrier(MPI_COMM_WORLD);
    };
    note("mpi half_round_trip_us", mpi_half_round_trip_us());
    note("nessie half_round_trip_us", nnti_half_round_trip_us(side));
    note("mpi MBps", mpi_bandwidth_MBps(mine));
    note("nessie get_MBps", nnti_bandwidth_MBps(side, true, mine));
    note("nessie put_MBps", nnti_bandwidth_MBps(side, false, mine));
  }
  if (my_rank == 0) report(figures);
}

}  // namespace

int main(int argc, char **argv) {
  int provided = 0, size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) fail("start it with mpiexec -n 2");
  measure(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 15);
  MPI_Finalize();
  return 0;
}
