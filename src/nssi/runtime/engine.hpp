// SPDX-License-Identifier: BSD-3-Clause
// The inside of a Runtime: a core, and on it the calls that are made here and the services that are offered.
#pragma once

#include <nssi/call/client.hpp>
#include <nssi/drive/core.hpp>
#include <nssi/runtime/hangup.hpp>
#include <nssi/serve/server.hpp>

#include <limits>

namespace nssi {

class Engine final : public Core, private nnti::EventSink, private HangupSink {
 public:
  static Result<std::unique_ptr<Engine>> open(RuntimeOptions options);
  /// Ends what is under way; nothing else is called afterwards. False: handlers in pools' threads do not end. The
  /// engine must then not be destroyed.
  bool close();
  ~Engine() override;

  Client &client() { return client_; }
  Server &server() { return server_; }
  const std::string &prometheus() const { return prometheus_; }

  // --- any thread ---------------------------------------------------------------------------------------------------
  void run();
  void stop();
  void stop_when_done(Deadline deadline);
  Result<PeerId> connect(std::string_view url, Deadline deadline, const std::stop_token &stop = {});
  void disconnect(PeerId peer);
  void flush_trace();

  // --- the driver ---------------------------------------------------------------------------------------------------
  Status reconfigure(const nessie::Config &config);
  const nessie::Config &config() const { return config_; }
  Status add_operation(Operation operation);
  void set_limits(const Limits &limits);
  Statistics statistics();

 private:
  explicit Engine(const RuntimeOptions &options) : Core(options), add_to_statistics_(options.add_to_statistics) {}
  void on_message(PeerId from, std::span<const std::byte> message) override;
  void on_peer_connected(PeerId peer) override;
  void on_peer_lost(PeerId peer, const Error &error) override;
  void on_hangup() override;
  void on_turn() override;
  void on_expiry() override;
  Deadline next_deadline() const override;
  bool on_dropped(PeerId peer, const Error &error, std::chrono::milliseconds patience) override;

  /// It was told to stop when it is done.
  bool finishes() const { return finish_by_.load(std::memory_order_relaxed) != kNotFinishing; }
  bool has_finished();
  /// Puts into the operation what the configuration says of it. Its pool; null: the driver's thread. Errors as
  /// Runtime::add_operation().
  Result<Pool *> settle(Operation &operation) const;
  void reload_now();
  void apply(const Settings &settings);

  Client client_{*this};
  Server server_{*this};
  std::atomic<bool> stop_{false}, reload_{false};
  static constexpr Clock::rep kNotFinishing = std::numeric_limits<Clock::rep>::max();
  std::atomic<Clock::rep> finish_by_{kNotFinishing};  ///< see stop_when_done()
  const Clock::time_point opened_at_ = Clock::now();
  const std::function<void(Statistics &)> add_to_statistics_;
  std::string prometheus_;  ///< where numbers are offered; empty: nowhere
  nessie::Config config_;
  Settings program_;  ///< what holds where the configuration says nothing
  std::optional<Hangup> hangup_;
};

}  // namespace nssi
