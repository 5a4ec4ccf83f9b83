// SPDX-License-Identifier: BSD-3-Clause
#include "probe.hpp"

#include <nnti/nnti.hpp>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <vector>

namespace nessie::cli {

namespace {

constexpr auto kTimeout = std::chrono::seconds(20);
constexpr std::size_t kMessageBytes = 64;
constexpr std::size_t kBulkBytes = 16 << 20;
constexpr int kRoundTrips = 2000;
constexpr int kBulkRuns = 9;

/// The partner's buffers, as it tells them: it is this same program.
struct Buffers {
  nnti::RemoteBuffer allocated, own;
};
constexpr std::byte kAskForBuffers{1};
constexpr std::byte kEcho{2};

Result<std::unique_ptr<nnti::Endpoint>> open_endpoint(const Config &config, nnti::EventSink &sink, bool listen,
                                                      const Credential &credential) {
  nnti::EndpointOptions options;
  options.credential = credential;
  options.listen = listen;
  options.config = config;
  return nnti::Endpoint::open(std::move(options), sink);
}

// --- the partner
// ------------------------------------------------------------------------------------------------------

class Partner final : public nnti::EventSink {
 public:
  Status serve(const Config &config, const Credential &credential, int url_fd);

 private:
  void on_message(nnti::PeerId from, std::span<const std::byte> message) override;
  void on_peer_lost(nnti::PeerId, const Error &) override { done_ = true; }
  void send_buffers(nnti::PeerId to);

  std::unique_ptr<nnti::Endpoint> endpoint_;
  std::optional<nnti::RegisteredBuffer> allocated_, own_;
  bool done_ = false;
};

Status Partner::serve(const Config &config, const Credential &credential, int url_fd) {
  auto endpoint = open_endpoint(config, *this, true, credential);
  if (!endpoint) return endpoint.error();
  endpoint_ = std::move(*endpoint);
  std::vector<std::byte> memory(kBulkBytes, std::byte{1});
  auto allocated = endpoint_->allocate(kBulkBytes, nnti::Rights::kRemoteRead);
  auto own = endpoint_->register_memory(memory, nnti::Rights::kRemoteRead);
  if (!allocated || !own) return allocated ? own.error() : allocated.error();
  std::fill(allocated->bytes().begin(), allocated->bytes().end(), std::byte{1});
  allocated_.emplace(std::move(*allocated));
  own_.emplace(std::move(*own));
  const auto &url = endpoint_->url();
  if (write(url_fd, url.data(), url.size()) != static_cast<ssize_t>(url.size()))
    return Error{Code::kIo, "pipe", Scope::kProcess, errno};
  close(url_fd);
  const auto deadline = Deadline::in(2 * kTimeout);
  while (!done_ && !deadline.passed()) {
    if (endpoint_->progress() == 0) endpoint_->wait(deadline);
  }
  own_.reset();
  allocated_.reset();
  endpoint_.reset();
  return {};
}

void Partner::on_message(nnti::PeerId from, std::span<const std::byte> message) {
  if (message.empty()) return;
  if (message[0] == kAskForBuffers) return send_buffers(from);
  (void)endpoint_->send(from, message);
}

void Partner::send_buffers(nnti::PeerId to) {
  const auto allocated = allocated_->describe_for(to);
  const auto own = own_->describe_for(to);
  Buffers buffers;
  if (allocated) buffers.allocated = *allocated;
  if (own) buffers.own = *own;
  (void)endpoint_->send(to, std::as_bytes(std::span(&buffers, 1)));
}

// --- this side
// --------------------------------------------------------------------------------------------------------

class Prober final : public nnti::EventSink {
 public:
  Status connect(const Config &config, const Credential &credential, const std::string &url);
  Result<ProbeResult> describe() const;
  Status measure(ProbeResult &result);

 private:
  struct Done final : nnti::Completion {
    void on_complete(Status status) override {
      outcome = std::move(status);
      complete = true;
    }
    Status outcome;
    bool complete = false;
  };

  void on_message(nnti::PeerId, std::span<const std::byte> message) override {
    reply_.assign(message.begin(), message.end());
  }
  void on_peer_lost(nnti::PeerId, const Error &error) override { lost_ = error; }
  Status exchange(std::span<const std::byte> message);
  Result<double> median_round_trip_us();
  Result<double> median_get_MBps(const nnti::RemoteBuffer &remote);
  Status get(const nnti::RemoteBuffer &remote, std::span<std::byte> local);
  template <class Condition> Status progress_until(Condition condition);

  std::unique_ptr<nnti::Endpoint> endpoint_;
  nnti::PeerId peer_;
  std::vector<std::byte> reply_;
  Status lost_;
};

template <class Condition> Status Prober::progress_until(Condition condition) {
  const auto deadline = Deadline::in(kTimeout);
  while (!condition()) {
    if (!lost_) return lost_;
    if (deadline.passed()) return Error{Code::kTimedOut, "the partner process did not answer"};
    if (endpoint_->progress() == 0) endpoint_->wait(deadline);
  }
  return {};
}

Status Prober::connect(const Config &config, const Credential &credential, const std::string &url) {
  auto endpoint = open_endpoint(config, *this, false, credential);
  if (!endpoint) return endpoint.error();
  endpoint_ = std::move(*endpoint);
  auto peer = endpoint_->connect(url, Deadline::in(kTimeout));
  if (!peer) return peer.error();
  peer_ = *peer;
  return {};
}

Result<ProbeResult> Prober::describe() const {
  ProbeResult result;
  result.transport = endpoint_->transport_of(peer_);
  result.explanation = endpoint_->explain(peer_);
  return result;
}

Status Prober::exchange(std::span<const std::byte> message) {
  reply_.clear();
  if (auto sent = endpoint_->send(peer_, message); !sent) return sent;
  return progress_until([this] { return !reply_.empty(); });
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Result<double> Prober::median_round_trip_us() {
  std::array<std::byte, kMessageBytes> message{kEcho};
  std::vector<double> times;
  for (int i = 0; i < kRoundTrips; ++i) {
    const auto start = Clock::now();
    if (auto done = exchange(message); !done) return done.error();
    times.push_back(microseconds_since(start));
  }
  return median(std::move(times));
}

Status Prober::get(const nnti::RemoteBuffer &remote, std::span<std::byte> local) {
  Done done;
  endpoint_->get(peer_, remote, 0, local, done);
  auto waited = progress_until([&] { return done.complete; });
  if (done.complete) return done.outcome;
  endpoint_->disconnect(peer_);  // completes it: `done` and `local` must not be lent any longer
  return waited;
}

Result<double> Prober::median_get_MBps(const nnti::RemoteBuffer &remote) {
  if (remote.size_bytes == 0) return 0.0;
  std::vector<std::byte> local(kBulkBytes);
  std::vector<double> rates;
  for (int i = 0; i < kBulkRuns; ++i) {
    const auto start = Clock::now();
    if (auto done = get(remote, local); !done) return done.error();
    rates.push_back(static_cast<double>(kBulkBytes) / microseconds_since(start));
  }
  return median(std::move(rates));
}

Status Prober::measure(ProbeResult &result) {
  if (auto asked = exchange(std::span(&kAskForBuffers, 1)); !asked) return asked;
  Buffers buffers;
  if (reply_.size() != sizeof buffers) return Error{Code::kBadMessage, "the partner process sent something odd"};
  std::memcpy(&buffers, reply_.data(), sizeof buffers);
  const auto round_trip = median_round_trip_us();
  if (!round_trip) return round_trip.error();
  const auto allocated = median_get_MBps(buffers.allocated);
  if (!allocated) return allocated.error();
  const auto own = median_get_MBps(buffers.own);
  if (!own) return own.error();
  result.round_trip_us = *round_trip;
  result.get_allocated_MBps = *allocated;
  result.get_own_MBps = *own;
  return {};
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 1024> part{};
  for (ssize_t got; (got = read(fd, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  return text;
}

Result<ProbeResult> probe_partner(const Config &config, const Credential &credential, const std::string &url) {
  Prober prober;
  if (auto connected = prober.connect(config, credential, url); !connected) return connected.error();
  auto result = prober.describe();
  if (!result) return result;
  if (auto measured = prober.measure(*result); !measured) return measured.error();
  return result;
}

}  // namespace

Result<ProbeResult> probe_two_processes(const Config &config) {
  const auto credential = Credential::generate();
  std::array<int, 2> url_pipe{};
  if (pipe(url_pipe.data()) != 0) return Error{Code::kIo, "cannot make a pipe", Scope::kProcess, errno};
  const pid_t partner = fork();
  if (partner == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(url_pipe[0]);
    const auto served = Partner().serve(config, credential, url_pipe[1]);
    _exit(served ? 0 : 1);
  }
  close(url_pipe[1]);
  if (partner < 0) return Error{Code::kIo, "cannot fork", Scope::kProcess, errno};
  const auto url = read_all(url_pipe[0]);
  close(url_pipe[0]);
  auto result = probe_partner(config, credential, url);
  kill(partner, SIGKILL);
  waitpid(partner, nullptr, 0);
  return result;
}

Result<ProbeResult> probe_url(const Config &config, const std::string &url) {
  const auto hex = config.get("credential");
  auto credential = hex ? Credential::from_hex(*hex) : Result<Credential>(Credential());
  if (!credential) return credential.error();
  Prober prober;
  if (auto connected = prober.connect(config, *credential, url); !connected) return connected.error();
  return prober.describe();
}

}  // namespace nessie::cli
