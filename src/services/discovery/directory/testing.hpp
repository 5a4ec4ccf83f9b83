// SPDX-License-Identifier: BSD-3-Clause
// What the directory's tests share: a directory on a thread of its own, and a process that looks or announces.
#pragma once

#include <nssi/testing/testing.hpp>
#include <service/host.hpp>
#include <services/discovery/directory/client/client.hpp>
#include <services/discovery/directory/server/server.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace directory::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The watchdog's: longer than anything takes on a machine that has much else to do.
inline Deadline soon() { return Deadline::in(seconds(60)); }

/// Polls for a state.
template <class State> bool eventually(State state) {
  for (const auto end = soon(); !end.passed(); std::this_thread::sleep_for(milliseconds(1)))
    if (state()) return true;
  return false;
}

inline nssi::RuntimeOptions runtime_options(const std::string &transport, bool listen) {
  auto options = nssi::testing::options_for(transport, listen);
  options.max_fibers = 256;
  return options;
}

/// Serves from a thread until it goes.
class DirectoryThread {
 public:
  explicit DirectoryThread(const std::string &transport, ServerLimits limits = {}) {
    host_ = *nessie::service::Host::open({.runtime = runtime_options(transport, true)});
    (void)*host_->start({.name = "directory"}, [&](const auto &context) { return Server::start(context, limits); });
    runtime = &host_->runtime();
    thread_ = std::thread([this] { host_->run(); });
  }
  ~DirectoryThread() {
    runtime->stop();
    thread_.join();
  }
  DirectoryThread(const DirectoryThread &) = delete;
  nssi::Runtime *runtime = nullptr;

 private:
  std::unique_ptr<nessie::service::Host> host_;
  std::thread thread_;
};

/// A process that looks, or announces. With `drives` a thread drives its runtime all the time.
class Participant {
 public:
  Participant(const std::string &transport, const std::string &where, bool drives = false)
      : runtime(nssi::testing::open_runtime(runtime_options(transport, false))), directory(*runtime, where) {
    if (drives) thread_ = std::thread([this] { runtime->run(); });
  }
  ~Participant() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    runtime->stop();
    thread_.join();
  }
  std::size_t count(std::string_view name) {
    auto got = directory.lookup(name, soon());
    return got.ok() ? got->instances.size() : SIZE_MAX;
  }

  std::unique_ptr<nssi::Runtime> runtime;
  Directory directory;

 private:
  std::thread thread_;
};

inline instance make(const std::string &name, std::uint32_t provider = 0) {
  return {name, "shm://somewhere", 7, 1, provider, {}};
}
inline query named(const std::string &name) { return {false, name}; }

}  // namespace directory::testing
