// SPDX-License-Identifier: BSD-3-Clause
// Two MPI jobs become one world through a port of MPI; see two_jobs_test.sh.
//   jobs_test accept FILE     writes the port's name into FILE, and serves
//   jobs_test connect FILE    takes it from there, and asks
#include <nnti/mpi.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

using namespace std::chrono_literals;
using nnti::Deadline;

constexpr auto kPatience = 60s;
constexpr std::size_t kBytes = 20'000'000;

[[noreturn]] void fail(const std::string &why) {
  std::fprintf(stderr, "jobs_test: %s\n", why.c_str());
  std::exit(1);
}

template <class T> T valid(nnti::Result<T> result) {
  if (!result.ok()) fail(result.error().to_string());
  return std::move(*result);
}

struct OtherJob {
  MPI_Comm between = MPI_COMM_NULL, all = MPI_COMM_NULL;
};

OtherJob meet_other_job(bool accepts, const char *file) {
  std::array<char, MPI_MAX_PORT_NAME> port{};
  MPI_Comm between = MPI_COMM_NULL, all = MPI_COMM_NULL;
  if (accepts) {
    MPI_Open_port(MPI_INFO_NULL, port.data());
    std::ofstream(std::string(file) + ".new") << port.data();
    std::rename((std::string(file) + ".new").c_str(), file);
    MPI_Comm_accept(port.data(), MPI_INFO_NULL, 0, MPI_COMM_SELF, &between);
  } else {
    std::ifstream(file).getline(port.data(), port.size());
    MPI_Comm_connect(port.data(), MPI_INFO_NULL, 0, MPI_COMM_SELF, &between);
  }
  MPI_Intercomm_merge(between, accepts ? 0 : 1, &all);
  return {between, all};
}

/// Open MPI's MPI_Finalize() says farewell through each communicator that is left between jobs, and closes its TCP
/// connections without waiting for the other job: the later one would write into a closed connection, and may then hang
/// for ever. (MPI_Comm_disconnect() asks both jobs' PMIx servers for a fence, which does not end either.)
void leave_other_job(OtherJob &job) {
  MPI_Barrier(job.all);
  MPI_Comm_free(&job.all);
  MPI_Comm_free(&job.between);
}

struct Side final : nnti::EventSink, nnti::Completion {
  void on_message(nnti::PeerId, std::span<const std::byte> message) override {
    if (message.size() == sizeof remote) std::memcpy(&remote, message.data(), sizeof remote);
  }
  void on_peer_connected(nnti::PeerId id) override { peer = id; }
  void on_peer_lost(nnti::PeerId, const nnti::Error &) override { lost = true; }
  void on_complete(nnti::Status status) override {
    if (!status.ok()) fail(status.error().to_string());
    complete = true;
  }
  template <class State> void until(State state) {
    for (const auto watchdog = Deadline::in(kPatience); !state();) {
      if (watchdog.passed()) fail("no progress");
      if (endpoint->progress() == 0) endpoint->wait(Deadline::in(10ms));
    }
  }
  std::unique_ptr<nnti::Endpoint> endpoint;
  nnti::PeerId peer;
  nnti::RemoteBuffer remote;
  bool complete = false, lost = false;
};

void open(Side &side, MPI_Comm all, bool listen) {
  nnti::EndpointOptions options;
  options.transports = {"mpi"};
  options.extra_transports = {&nnti::mpi::transport_kind()};
  options.listen = listen;
  options.config.set("nnti.mpi.world", valid(nnti::mpi::join(all, Deadline::in(kPatience))));
  side.endpoint = valid(nnti::Endpoint::open(std::move(options), side));
}

void serve(MPI_Comm all) {
  Side side;
  open(side, all, true);
  std::array<char, 128> url{};
  std::strncpy(url.data(), side.endpoint->url().c_str(), url.size() - 1);
  MPI_Bcast(url.data(), url.size(), MPI_CHAR, 0, all);
  side.until([&] { return side.peer.value != 0; });
  std::vector<std::byte> memory(kBytes, std::byte{42});
  const auto buffer = valid(side.endpoint->register_memory(memory, nnti::Rights::kRemoteRead));
  const auto description = valid(buffer.describe_for(side.peer));
  if (!side.endpoint->send(side.peer, std::as_bytes(std::span(&description, 1))).ok()) fail("cannot send");
  side.until([&] { return side.lost; });
}

void ask(MPI_Comm all) {
  Side side;
  open(side, all, false);
  std::array<char, 128> url{};
  MPI_Bcast(url.data(), url.size(), MPI_CHAR, 0, all);
  side.peer = valid(side.endpoint->connect(url.data(), Deadline::in(kPatience)));
  side.until([&] { return side.remote.size_bytes != 0; });
  std::vector<std::byte> local(kBytes);
  side.endpoint->get(side.peer, side.remote, 0, local, side);
  side.until([&] { return side.complete; });
  if (local != std::vector<std::byte>(kBytes, std::byte{42})) fail("other bytes arrived");
  std::puts("read the other job's memory");
}

}  // namespace

int main(int argc, char **argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (argc != 3) fail("usage: jobs_test accept|connect FILE");
  const bool accepts = std::string(argv[1]) == "accept";
  auto other = meet_other_job(accepts, argv[2]);
  accepts ? serve(other.all) : ask(other.all);
  leave_other_job(other);
  MPI_Finalize();
  return 0;
}
