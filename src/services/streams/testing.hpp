// SPDX-License-Identifier: BSD-3-Clause
// For tests: servers in this process.
#pragma once

#include <nssi/discovery.hpp>
#include <nssi/testing/testing.hpp>
#include <service/host.hpp>
#include <services/streams/server/server.hpp>
#include <services/streams/testing/arrays.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace streams::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A server on a thread of its own, until it goes.
class ServerThread {
 public:
  /// `announced`: a contact file, besides.
  explicit ServerThread(const ServerOptions &options = {}, const std::string &announced = {},
                        const std::string &transport = "shm") {
    auto with = nssi::testing::options_for(transport, true);
    with.max_fibers = 256;
    host_ = *nessie::service::Host::open({.runtime = std::move(with)});
    auto started = host_->start({.name = "streams"}, [&](const auto &context) {
      auto server = Server::start(context, options);
      if (server.ok()) provider_ = server->get();
      return server;
    });
    if (!started.ok()) throw std::runtime_error(started.error().message);
    thread_ = std::thread([this] { host_->run(); });
    if (!announced.empty()) announcement_.emplace(*nssi::announce(host_->runtime(), "file:" + announced, {}, soon()));
  }
  ~ServerThread() {
    announcement_.reset();
    host_->end();
    thread_.join();
    host_->finish();
  }
  ServerThread(const ServerThread &) = delete;
  std::string at() const { return host_->runtime().url(); }
  /// Of those that it measures.
  double figure(std::string_view name) {
    std::promise<double> figure;
    host_->runtime().post([&] {
      provider_->measure([&](std::string_view each, const auto &, double value) {
        if (each == name) figure.set_value(value);
      });
    });
    return figure.get_future().get();
  }

 private:
  std::unique_ptr<nessie::service::Host> host_;
  nessie::Provider *provider_ = nullptr;
  std::optional<nssi::Announcement> announcement_;
  std::thread thread_;
};

/// Several servers that share their streams.
class Servers {
 public:
  explicit Servers(std::uint32_t count = 1, const ServerOptions &options = {}) : options_(options) {
    options_.servers = count;
    for (options_.index = 0; options_.index < count; ++options_.index) {
      all_.push_back(std::make_unique<ServerThread>(options_));
      options_.first = all_.front()->at();
    }
  }
  /// The last one ends first.
  ~Servers() {
    while (!all_.empty()) all_.pop_back();
  }
  std::string at() const { return all_.front()->at(); }
  double figure(std::uint32_t index, std::string_view name) { return all_[index]->figure(name); }
  /// One that is not the first ends, and another one comes in its place.
  void restart(std::uint32_t index) {
    all_[index].reset();
    options_.index = index;
    all_[index] = std::make_unique<ServerThread>(options_);
  }

 private:
  ServerOptions options_;
  std::vector<std::unique_ptr<ServerThread>> all_;
};

}  // namespace streams::testing
