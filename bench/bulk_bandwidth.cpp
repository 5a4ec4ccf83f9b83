// SPDX-License-Identifier: BSD-3-Clause
// bulk-bandwidth: one-sided get and put between two processes, of memory that Nessie allocated ("mapped": the peer maps
// it) and of the application's own. memcpy, process_vm_readv and writev, and Open MPI show what the machine allows.
#include "baselines.hpp"
#include "child.hpp"
#include "machine.hpp"
#include "options.hpp"
#include "timing.hpp"

#include <nnti/nnti.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <optional>

namespace bench {
namespace {

using nessie::Deadline;
using nessie::Error;
using nessie::Status;

const std::vector<std::uint64_t> kSizes{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
const std::vector<std::uint64_t> kSmallSizes{4 << 10, 1 << 20};

nnti::EndpointOptions endpoint_options(const Options &options, bool listen) {
  nnti::EndpointOptions endpoint;
  endpoint.transports = {options.transport};
  endpoint.listen = listen;
  endpoint.config.set("nnti.spin_us", "1000000");
  return endpoint;
}

/// What the owner of the memory tells the one who reaches into it.
struct Invitation {
  char url[1024] = {};
};
struct Descriptions {
  nnti::RemoteBuffer mapped, application;
};

class Owner : public nnti::EventSink {
 public:
  void on_message(nnti::PeerId, std::span<const std::byte>) override {}
  void on_peer_connected(nnti::PeerId peer) override { peer_ = peer; }
  void on_peer_lost(nnti::PeerId, const Error &) override { lost_ = true; }
  /// Serves until the peer, or the parent, is gone. Returns the exit code.
  int serve(const Options &options, std::size_t size, int from_parent, int to_parent);

 private:
  bool describe(const nnti::RegisteredBuffer &mapped, const nnti::RegisteredBuffer &application, int to_parent) const;

  std::optional<nnti::PeerId> peer_;
  bool lost_ = false;
};

bool closed(int descriptor) {
  pollfd state{descriptor, POLLIN, 0};
  return poll(&state, 1, 0) > 0;
}

bool Owner::describe(const nnti::RegisteredBuffer &mapped, const nnti::RegisteredBuffer &application,
                     int to_parent) const {
  auto first = mapped.describe_for(*peer_), second = application.describe_for(*peer_);
  if (!first || !second) return false;
  Descriptions descriptions{*first, *second};
  return write_all(to_parent, std::as_bytes(std::span(&descriptions, 1)));
}

int Owner::serve(const Options &options, std::size_t size, int from_parent, int to_parent) {
  Pin pin(1);
  auto endpoint = nnti::Endpoint::open(endpoint_options(options, true), *this);
  if (!endpoint) return 1;
  std::vector<std::byte> memory(size, std::byte{1});
  auto mapped = (*endpoint)->allocate(size, nnti::Rights::kReadWrite);
  auto application = (*endpoint)->register_memory(memory, nnti::Rights::kReadWrite);
  if (!mapped || !application) return 1;
  std::ranges::fill(mapped->bytes(), std::byte{1});
  Invitation invitation;
  (*endpoint)->url().copy(invitation.url, sizeof invitation.url - 1);
  if (!write_all(to_parent, std::as_bytes(std::span(&invitation, 1)))) return 1;
  bool described = false;
  while (!lost_ && !closed(from_parent)) {
    (*endpoint)->progress();
    if (peer_ && !described && !(described = describe(*mapped, *application, to_parent))) return 1;
    (*endpoint)->wait(Deadline::in(std::chrono::milliseconds(10)));
  }
  return 0;
}

class Flag final : public nnti::Completion {
 public:
  void on_complete(Status status) override {
    status_ = std::move(status);
    complete_ = true;
  }
  bool complete() const { return complete_; }
  const Status &status() const { return status_; }

 private:
  bool complete_ = false;
  Status status_;
};

class Visitor : public nnti::EventSink {
 public:
  void on_message(nnti::PeerId, std::span<const std::byte>) override {}
  void on_peer_lost(nnti::PeerId, const Error &) override {}
};

/// Starts one transfer of the first `size` bytes and waits for its end.
template <class Start> Status transfer(nnti::Endpoint &endpoint, Start &&start) {
  Flag flag;
  start(flag);
  while (!flag.complete())
    if (endpoint.progress() == 0 && !flag.complete()) endpoint.wait(Deadline::in(std::chrono::seconds(1)));
  return flag.status();
}

Series series(std::string system, std::string transport, std::string mode, std::uint64_t size) {
  return {std::move(system), std::move(transport), std::move(mode), size, 1, "bandwidth_MBps", "MB/s"};
}

Status measure_buffer(nnti::Endpoint &endpoint, nnti::PeerId owner, const nnti::RemoteBuffer &remote,
                      std::span<std::byte> local, const std::function<void(const char *what, double us)> &tell) {
  Status status;
  auto keep = [&](Status now) {
    if (status.ok()) status = std::move(now);
  };
  int calls = transfers_per_batch(local.size());
  tell("get", typical_us(calls, [&] {
         keep(transfer(endpoint, [&](Flag &flag) { endpoint.get(owner, remote, 0, local, flag); }));
       }));
  tell("put", typical_us(calls, [&] {
         keep(transfer(endpoint, [&](Flag &flag) { endpoint.put(owner, remote, 0, local, flag); }));
       }));
  return status;
}

Status measure_nessie(const Options &options, const std::vector<std::uint64_t> &sizes, int repetition, Report &report) {
  auto largest = sizes.back();
  Partner partner([&](int in, int out) { return Owner().serve(options, largest, in, out); });
  Invitation invitation;
  if (!partner.read_value(invitation))
    return Error{nessie::Code::kUnsupported,
                 fmt::format("no endpoint over '{}'; `nessie info` says why", options.transport)};
  Pin pin(0);
  Visitor visitor;
  auto endpoint = nnti::Endpoint::open(endpoint_options(options, false), visitor);
  if (!endpoint) return endpoint.error();
  auto owner = (*endpoint)->connect(invitation.url, Deadline::in(std::chrono::seconds(30)));
  if (!owner) return owner.error();
  Descriptions remote;
  if (!partner.read_value(remote))
    return Error{nessie::Code::kPeerLost, "the process that owns the memory ended early"};
  std::vector<std::byte> local(largest, std::byte{2});
  for (auto size : sizes)
    for (bool mapped : {true, false}) {
      auto status = measure_buffer(**endpoint, *owner, mapped ? remote.mapped : remote.application,
                                   std::span(local).first(size), [&](const char *what, double us) {
                                     auto mode = fmt::format("{}-{}", what, mapped ? "mapped" : "application");
                                     report.add(series("nessie", options.transport, mode, size), repetition,
                                                megabytes_per_s(size, us));
                                   });
      if (!status.ok()) return status;
    }
  (*endpoint)->disconnect(*owner);
  return {};
}

void add(Report &report, int repetition, const TimesBySize &times, const std::string &system,
         const std::string &transport, const std::string &mode) {
  for (auto [size, us] : times)
    report.add(series(system, transport, mode, size), repetition, megabytes_per_s(size, us));
}

Status measure_baselines(const std::vector<std::uint64_t> &sizes, int repetition, Report &report) {
  auto copies = copy_times(sizes);
  if (!copies) return copies.error();
  add(report, repetition, copies->memcpy_get, "memcpy", "memory", "get");
  add(report, repetition, copies->memcpy_put, "memcpy", "memory", "put");
  add(report, repetition, copies->process_vm_readv, "process_vm_readv", "kernel", "get");
  add(report, repetition, copies->process_vm_writev, "process_vm_writev", "kernel", "put");
  auto mpi = openmpi_times("transfer", sizes);
  if (!mpi) return mpi.error();
  add(report, repetition, *mpi, "openmpi", "shm", "send");
  return {};
}

void add_ratios(const Options &options, const std::vector<std::uint64_t> &sizes, Report &report) {
  for (auto size : sizes)
    for (std::string what : {"get", "put"}) {
      auto ours = [&](const char *kind) { return series("nessie", options.transport, what + kind, size); };
      report.add_ratio(ours("-mapped"), series("memcpy", "memory", what, size));
      report.add_ratio(ours("-application"),
                       series(what == "get" ? "process_vm_readv" : "process_vm_writev", "kernel", what, size));
      report.add_ratio(ours("-mapped"), series("openmpi", "shm", "send", size));
      report.add_ratio(ours("-application"), series("openmpi", "shm", "send", size));
    }
}

}  // namespace

Status bulk_bandwidth(const Options &options, Report &report) {
  const auto &sizes = options.once ? kSmallSizes : kSizes;
  int repetitions = options.repetitions(9, 3);
  Progress progress(repetitions);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    progress.step("get and put");
    auto status = measure_nessie(options, sizes, repetition, report);
    if (status.ok()) status = measure_baselines(sizes, repetition, report);
    if (!status.ok()) return status;
  }
  add_ratios(options, sizes, report);
  return {};
}

}  // namespace bench
