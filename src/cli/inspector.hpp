// SPDX-License-Identifier: BSD-3-Clause
// Asks processes that serve by NSSI what they have counted, and shows it.
#pragma once

#include <base/clock.hpp>
#include <nessie/result.hpp>
#include <staging.hpp>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace nssi {
class Runtime;
}

namespace nessie {
class Config;
}

namespace nessie::cli {

class Inspector {
 public:
  /// With the job's credential. `config` is borrowed. kInvalidArgument: it is none.
  static Result<std::unique_ptr<Inspector>> open(const Config &config);
  ~Inspector();
  /// The URLs of the processes that `what` says, as nssi::find() takes it, and of servers of streams that are one with
  /// them; waits for a second at most for each. Errors as there.
  Result<std::vector<std::string>> find(const std::string &what);
  /// What to_json() of <nssi/statistics.hpp> makes, of the process at `url`. Errors as nssi::Runtime::connect and
  /// nssi::Call::wait; kUnsupported: what it answers is not that.
  Result<nlohmann::json> ask(const std::string &url);
  /// What the staging server at `url` has of files. Errors as ask(); kTimedOut.
  Result<staging::FilesResult> files(const std::string &url, Deadline deadline);

 private:
  std::vector<std::string> beside(const std::string &url);
  Inspector(const Config &config, std::unique_ptr<nssi::Runtime> runtime);
  const Config &config_;
  std::unique_ptr<nssi::Runtime> runtime_;
};

/// Lines for people. `before`: what it was some time ago, so that rates and times are of the time since; null: of all
/// its life.
std::string describe_statistics(const nlohmann::json &now, const nlohmann::json &before);

}  // namespace nessie::cli
