// SPDX-License-Identifier: BSD-3-Clause
// A step of srun's to which services are added as further ranks, while the program's ranks stay where srun puts them.
#pragma once

#include "environment.hpp"
#include "placement.hpp"

#include <nessie/result.hpp>

#include <functional>
#include <string>
#include <vector>

namespace nessie::cli {

/// What a command prints. Errors as spawn(), and kTimedOut.
using AskCommand = std::function<Result<std::string>(const std::vector<std::string> &command)>;

/// The srun in `command` with a rank more for each place, which runs `service`. Within a job one step has all ranks:
/// srun is asked first where it puts the program's (`ask`), and told so, with the services', in files in `folder`. In a
/// heterogeneous job the services get the component that the program leaves free, whatever `places` says; if their
/// ranks are the first ones there, their words end with "--first". kUnsupported: it is a job, or a command, in which
/// this is not possible. kInvalidArgument: the words cannot be told to srun, or it does not take them. kIo.
Result<std::vector<std::string>> step_with_services(const std::vector<std::string> &command,
                                                    const std::vector<ServerPlace> &places,
                                                    const std::vector<std::string> &service, const std::string &folder,
                                                    const Environment &environment, const AskCommand &ask);

}  // namespace nessie::cli
