// SPDX-License-Identifier: BSD-3-Clause
// rpc-latency: how long a request takes to its handler and its result back, between two processes on two cores. Open
// MPI's ping-pong (polling) and an echo through sockets (sleeping) show what the machine allows.
#include "child.hpp"
#include "machine.hpp"
#include "options.hpp"
#include "repeat.hpp"
#include "rivals.hpp"
#include "sockets.hpp"
#include "timing.hpp"

#include <nssi/nssi.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <thread>

namespace bench {
namespace {

using nessie::Deadline;
using nessie::Result;
using nessie::Status;

constexpr nssi::Interface kInterface{0x20004E02, 1};
enum Op : nssi::OpCode { kOpNothing = 1, kOpEcho = 2 };

struct Waiting {
  const char *mode;
  const char *spin_us;  ///< nnti.spin_us: how long a wait polls before it sleeps
  bool paced;           ///< the service sleeps when a call comes
};
constexpr Waiting kPolling{"polling", "1000000", false};
constexpr Waiting kBlocking{"blocking", "0", true};

/// Of a request's arguments and of its result; 0: the no-op.
const std::vector<std::uint64_t> kSizes{0, 64, 256, 1024, 4096};
/// The no-op is set beside MPI's 8-byte message.
std::uint64_t baseline_size(std::uint64_t size) { return size == 0 ? 8 : size; }

nssi::RuntimeOptions runtime_options(const Options &options, const Waiting &waiting, bool listen) {
  nssi::RuntimeOptions runtime;
  runtime.endpoint.transports = {options.transport};
  runtime.endpoint.listen = listen;
  runtime.endpoint.config.set("nnti.spin_us", waiting.spin_us);
  return runtime;
}

Status add_operations(nssi::Runtime &runtime) {
  auto status = runtime.add_operation({kInterface, 0, kOpNothing, "nothing", nssi::HandlerKind::kShort,
                                       [](nssi::Request &request) { static_cast<void>(request.reply().ok()); }});
  if (!status.ok()) return status;
  return runtime.add_operation({kInterface, 0, kOpEcho, "echo", nssi::HandlerKind::kShort,
                                [](nssi::Request &request) { static_cast<void>(request.reply(request.args()).ok()); }});
}

/// The service's process: tells its URL, serves until the pipe from the parent is closed.
int serve(const Options &options, const Waiting &waiting, int from_parent, int to_parent) {
  Pin pin(1);
  auto runtime = nssi::Runtime::open(runtime_options(options, waiting, true));
  if (!runtime || !add_operations(**runtime).ok()) return 1;
  std::string url = (*runtime)->url();
  url.resize(1024);
  if (!write_all(to_parent, std::as_bytes(std::span(url)))) return 1;
  std::thread watcher([&] {
    char none;
    while (::read(from_parent, &none, 1) > 0) {}
    (*runtime)->stop();
  });
  (*runtime)->run();
  watcher.join();
  return 0;
}

Result<FiguresBySize> call_all_sizes(nssi::Runtime &runtime, nssi::PeerId service, const Waiting &waiting) {
  FiguresBySize times;
  Status status;
  for (auto size : kSizes) {
    nssi::Bytes argument(size);
    nssi::CallOptions options;
    options.deadline = Deadline::in(std::chrono::seconds(60));
    auto once = [&](bool) {
      if (status.ok()) status = runtime.call({service, kInterface, 0}, size == 0 ? kOpNothing : kOpEcho, argument, options).wait();
    };
    times[size] = waiting.paced ? paced_us(kPacedCalls, once) : typical_us(kRoundTrips, once);
    if (!status.ok()) return status.error();
  }
  return times;
}

Result<FiguresBySize> nessie_round_trips(const Options &options, const Waiting &waiting) {
  Partner partner([&](int in, int out) { return serve(options, waiting, in, out); });
  std::string url(1024, '\0');
  if (!partner.read(std::as_writable_bytes(std::span(url))))
    return nessie::Error{nessie::Code::kUnsupported,
                         fmt::format("no service over '{}'; `nessie info` says why", options.transport)};
  url.resize(url.find('\0'));
  Pin pin(0);
  auto runtime = nssi::Runtime::open(runtime_options(options, waiting, false));
  if (!runtime) return runtime.error();
  auto service = (*runtime)->connect(url, Deadline::in(std::chrono::seconds(30)));
  if (!service) return service.error();
  return call_all_sizes(**runtime, *service, waiting);
}

Series series(std::string system, std::string transport, const Waiting &waiting, std::uint64_t size) {
  return {std::move(system), std::move(transport), waiting.mode, size, 1, "round_trip_us", "us"};
}

Status add(Report &report, const Result<FiguresBySize> &times, int repetition, const std::string &system,
           const std::string &transport, const Waiting &waiting) {
  if (!times) return times.error();
  for (auto [size, us] : *times) report.add(series(system, transport, waiting, size), repetition, us);
  return {};
}

Result<FiguresBySize> openmpi_round_trips(const std::vector<std::uint64_t> &sizes) {
  auto answers = ask(Rival::kOpenMpi, {}, {{"round-trip", sizes}});
  if (!answers) return answers.error();
  return (*answers)["round-trip"];
}

Status measure_once(const Options &options, int repetition, Report &report) {
  std::vector<std::uint64_t> sizes;
  for (auto size : kSizes) sizes.push_back(baseline_size(size));
  auto status = add(report, nessie_round_trips(options, kPolling), repetition, "nessie", options.transport, kPolling);
  if (status.ok()) status = add(report, openmpi_round_trips(sizes), repetition, "openmpi", "shm", kPolling);
  if (status.ok())
    status = add(report, nessie_round_trips(options, kBlocking), repetition, "nessie", options.transport, kBlocking);
  if (status.ok())
    status = add(report, socket_round_trips(SocketKind::kUnix, SocketWait::kSleeps, sizes), repetition, "socket",
                 "unix", kBlocking);
  return status;
}

}  // namespace

Status rpc_latency(const Options &options, Report &report) {
  auto status = repeat_on_fit_cores(options.repetitions(15, 7), report, "round trips",
                                    [&](int repetition) { return measure_once(options, repetition, report); });
  if (!status.ok()) return status;
  for (auto size : kSizes) {
    report.add_ratio(series("nessie", options.transport, kPolling, size),
                     series("openmpi", "shm", kPolling, baseline_size(size)));
    report.add_ratio(series("nessie", options.transport, kBlocking, size),
                     series("socket", "unix", kBlocking, baseline_size(size)));
  }
  return {};
}

}  // namespace bench
