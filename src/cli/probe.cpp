// SPDX-License-Identifier: BSD-3-Clause
#include "probe.hpp"

#include <nnti/nnti.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace nessie::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto kConnectTimeout = 10s;
constexpr auto kTestTimeout = 10s;
constexpr std::size_t kPingBytes = 8;

/// One quantity is measured for so long, and so often at least.
struct Effort {
  std::chrono::milliseconds time;
  int least_runs;
};
constexpr Effort kPings{60ms, 20}, kTransfers{35ms, 3}, kRegistrations{20ms, 3};

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// The median time of `run`, in microseconds. The first run warms up.
Result<double> median_us(const Effort &effort, const std::function<Status()> &run) {
  if (auto warm = run(); !warm.ok()) return warm.error();
  std::vector<double> times;
  for (const auto end = Deadline::in(effort.time);
       static_cast<int>(times.size()) < effort.least_runs || !end.passed();) {
    const auto start = Clock::now();
    if (auto status = run(); !status.ok()) return status.error();
    times.push_back(microseconds_since(start));
  }
  return median(std::move(times));
}

class Prober final : public nnti::EventSink {
 public:
  Status open(const ProbeOptions &options, std::vector<std::string> transports);
  Status connect(const std::string &url);
  void describe(Probe &probe) const;
  Result<Measurement> measure(const std::string &url);

 private:
  struct Done final : nnti::Completion {
    void on_complete(Status status) override {
      outcome = std::move(status);
      complete = true;
    }
    Status outcome;
    bool complete = false;
  };
  using Memory = nnti::ProbeMemory;

  void on_message(nnti::PeerId, std::span<const std::byte>) override {}
  void on_peer_lost(nnti::PeerId, const Error &) override {}
  Status finish(Done &done);
  Status ping();
  Status register_once();
  Status measure_memory(Memory memory, double &get_MBps, double &put_MBps);

  std::unique_ptr<nnti::Endpoint> endpoint_;
  nnti::PeerId peer_;
  std::vector<std::byte> local_ = std::vector<std::byte>(nnti::kProbeBytes);
  Deadline deadline_ = Deadline::never();
};

Status Prober::open(const ProbeOptions &options, std::vector<std::string> transports) {
  nnti::EndpointOptions wanted;
  wanted.transports = std::move(transports);
  wanted.credential = options.credential;
  wanted.listen = false;
  wanted.config = options.config;
  auto endpoint = nnti::Endpoint::open(std::move(wanted), *this);
  if (!endpoint.ok()) return endpoint.error();
  endpoint_ = std::move(*endpoint);
  return {};
}

Status Prober::connect(const std::string &url) {
  auto peer = endpoint_->connect(url, Deadline::in(kConnectTimeout));
  if (!peer.ok()) return peer.error();
  peer_ = *peer;
  return {};
}

void Prober::describe(Probe &probe) const {
  probe.transport = endpoint_->transport_of(peer_);
  probe.explanation = endpoint_->explain(peer_);
  probe.in_place_bytes = endpoint_->max_in_place_bytes(peer_);
  probe.message_bytes = endpoint_->max_message_bytes(peer_);
}

/// The operation's memory is lent until it completes: a peer that does not answer is given up.
Status Prober::finish(Done &done) {
  while (!done.complete && !deadline_.passed())
    if (endpoint_->progress() == 0 && !done.complete) endpoint_->wait(deadline_);
  if (done.complete) return done.outcome;
  endpoint_->disconnect(peer_);
  return Error{Code::kTimedOut, "the test did not end in time; is the other side stopped, or very busy?"};
}

Status Prober::ping() {
  Done done;
  endpoint_->ping(peer_, kPingBytes, done);
  return finish(done);
}

Status Prober::register_once() {
  auto buffer = endpoint_->register_memory(local_, nnti::Rights::kReadWrite);
  if (!buffer.ok()) return buffer.error();
  auto description = buffer->describe_for(peer_);
  return description.ok() ? Status() : Status(description.error());
}

Status Prober::measure_memory(Memory memory, double &get_MBps, double &put_MBps) {
  nnti::RemoteBuffer remote;
  Done borrowed;
  endpoint_->borrow_memory(peer_, memory, remote, borrowed);
  if (auto status = finish(borrowed); !status.ok()) return status;
  auto put_us = median_us(kTransfers, [&] {
    Done done;
    endpoint_->put(peer_, remote, 0, local_, done);
    return finish(done);
  });
  if (!put_us.ok()) return put_us.error();
  auto get_us = median_us(kTransfers, [&] {
    Done done;
    endpoint_->get(peer_, remote, 0, local_, done);
    return finish(done);
  });
  if (!get_us.ok()) return get_us.error();
  put_MBps = static_cast<double>(nnti::kProbeBytes) / *put_us;
  get_MBps = static_cast<double>(nnti::kProbeBytes) / *get_us;
  return {};
}

/// The first connection has opened the transport, too, which takes much longer.
Result<Measurement> Prober::measure(const std::string &url) {
  Measurement result;
  endpoint_->disconnect(peer_);
  const auto start = Clock::now();
  if (auto status = connect(url); !status.ok()) return status.error();
  result.connect_ms = microseconds_since(start) / 1000;
  deadline_ = Deadline::in(kTestTimeout);
  auto round_trip_us = median_us(kPings, [this] { return ping(); });
  if (!round_trip_us.ok()) return round_trip_us.error();
  result.half_round_trip_us = *round_trip_us / 2;
  if (auto status = measure_memory(Memory::kAllocated, result.get_mapped_MBps, result.put_mapped_MBps); !status.ok())
    return status.error();
  if (auto status = measure_memory(Memory::kOwn, result.get_own_MBps, result.put_own_MBps); !status.ok())
    return status.error();
  auto register_us = median_us(kRegistrations, [this] { return register_once(); });
  if (!register_us.ok()) return register_us.error();
  result.register_us = *register_us;
  return result;
}

/// Where sending becomes worth while beside reading, over the transport that is measured. Empty: it cannot be found
/// out.
std::optional<nnti::Rendezvous> measure_rendezvous(const ProbeOptions &options, const std::string &url,
                                                   const std::string &transport) {
  constexpr int kAttempts = 3;
  nnti::ContextOptions wanted;
  wanted.transports = {transport};
  wanted.credential = options.credential;
  wanted.listen = false;
  wanted.config = options.config;
  auto context = nnti::Context::open(std::move(wanted));
  if (!context.ok()) return std::nullopt;
  auto peer = (*context)->connect(url, Deadline::in(kConnectTimeout));
  std::optional<nnti::Rendezvous> found;
  for (int i = 0; i < kAttempts && peer.ok(); ++i) {
    auto measured = (*context)->rendezvous_with((*peer)->process, Deadline::in(kTestTimeout));
    if (measured.ok()) found = *measured;
    if (!found || found->origin != nnti::Rendezvous::Origin::kDefault) break;
  }
  (*context)->close();
  return found;
}

}  // namespace

Probe probe(const ProbeOptions &options, const std::string &url, std::vector<std::string> transports) {
  Probe result;
  result.url = url;
  Prober prober;
  auto status = prober.open(options, std::move(transports));
  if (status.ok()) status = prober.connect(url);
  if (!status.ok()) {
    result.explanation = status.error().message;
    return result;
  }
  prober.describe(result);
  if (options.measure) result.test = prober.measure(url);
  if (options.contexts && result.test && result.test->ok())
    (*result.test)->rendezvous = measure_rendezvous(options, url, result.transport);
  return result;
}

}  // namespace nessie::cli
