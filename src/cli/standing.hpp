// SPDX-License-Identifier: BSD-3-Clause
// Services that outlive the jobs that use them (`nessie serve`, `attach`, `stop`). Each `nessie serve` has a
// name of the user's, and a record under it in a folder that all nodes see which see his home.
#pragma once

#include <nessie/result.hpp>
#include <services/discovery/contact/process_id.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace nessie::cli {

/// What is known of one of them.
struct Standing {
  std::string name;
  service::ProcessId keeper;      ///< the process that stands for all programs that will come; ends with them
  std::vector<std::string> urls;  ///< of the servers, in their order
  std::string credential;         ///< theirs
  std::string boards;             ///< as NESSIE_BOARDS has it
  bool has_staging = true;        ///< otherwise other services only
  bool has_directory = false;     ///< for NESSIE_DIRECTORY
};

/// The files of a name: all in one folder, which is made. kIo, with the cause: it cannot be. kInvalidArgument: nothing
/// can have that name.
struct StandingFiles {
  std::string record;  ///< there, as long as programs can attach; for the user's eyes only
  std::string log;     ///< what its `nessie run` says
  std::string stop;    ///< there, once it is to end
  std::string end;     ///< there, once it has ended, with its exit code
  static Result<StandingFiles> of(const std::string &name);
  bool are_to_stop() const;
};

/// How often a keeper looks: the wish may come from another node.
inline constexpr std::chrono::milliseconds kWatchForStop{200};

/// In ~/.local/state/nessie/serve, or where XDG_STATE_HOME says.
Result<std::vector<std::string>> standing_names();

/// kExists: that name is taken. kIo.
Status write_standing(const Standing &standing);
/// By its name; where that is empty, the only one that there is. kNotFound: there is none, or there are several, which
/// are named. kPeerLost: it was killed. kBadMessage: it is no record. kRefused: others could have written it.
Result<Standing> find_standing(const std::string &name);

}  // namespace nessie::cli
