// SPDX-License-Identifier: BSD-3-Clause
// One staging server in a program's process.
#pragma once

#include <base/config.hpp>
#include <base/credential.hpp>
#include <nessie/result.hpp>
#include <service/host.hpp>
#include <staging.hpp>

#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace embedded {

struct ServerStart {
  nessie::Config config;
  nessie::Credential credential;  ///< its clients have it, too
  int index = 0, of = 1;
  std::string folder;  ///< for its ledger
  std::string boards;  ///< where boards were prepared; empty: nowhere
  int most_boards = 0;
};

class Server {
 public:
  /// Its threads begin. Errors as service::Host::open() and Host::start(); kExists: every place in the folder is taken.
  static nessie::Result<std::unique_ptr<Server>> start(ServerStart start);
  /// Ends it.
  ~Server();
  Server(const Server &) = delete;

  const std::string &url() const { return host_->runtime().url(); }
  /// Returns when all that it has acknowledged is in the files, and its threads have ended. What it has done; the
  /// ledger is there until the server is destroyed.
  staging::ReportResult end();
  /// Where its report belongs: nobody else's in the folder is called so.
  const std::string &report_name() const { return report_name_; }

 private:
  explicit Server(ServerStart start) : start_(std::move(start)) {}
  nessie::Status open();
  nessie::Status take_place();
  nessie::Status host_in(int place);

  const ServerStart start_;
  std::unique_ptr<nessie::service::Host> host_;
  std::string ledger_path_, report_name_;
  staging::ReportResult report_;
  std::thread thread_;
  int descriptors_ = 0;  ///< numbers from this on are the program's
};

}  // namespace embedded
