// SPDX-License-Identifier: BSD-3-Clause
#include "mpmd.hpp"

#include "launcher.hpp"

#include <fmt/format.h>

namespace nessie::cli {

Result<std::vector<std::string>> with_services(std::vector<std::string> command, int count,
                                               const std::vector<std::string> &service,
                                               const Environment &environment) {
  const auto launcher = find_launcher(command, environment);
  if (!launcher)
    return Error{Code::kUnsupported,
                 "--mpmd makes the services ranks of the program's job, so its launcher has to be in the command: "
                 "nessie run --mpmd -- mpiexec -n 8 ./sim"};
  if (flavour_of_launcher(command[*launcher], environment) != MpiFlavour::kOpenMpi)
    return Error{Code::kUnsupported, fmt::format("--mpmd needs the launcher of Open MPI, which Nessie is built for; {} "
                                                 "is none: run without --mpmd",
                                                 command[*launcher])};
  command.insert(command.end(), {":", "-n", std::to_string(count)});
  command.insert(command.end(), service.begin(), service.end());
  return command;
}

void split_world(const std::string &commsplitter, Environment &environment) {
  const auto preloaded = environment.get("LD_PRELOAD").value_or("");
  const bool is_split = preloaded.find("libcommsplitter") != std::string::npos;  // by the user, as he wants it
  if (!is_split) environment.set("LD_PRELOAD", preloaded.empty() ? commsplitter : commsplitter + ":" + preloaded);
  if (!is_split && !environment.get("NESSIE_COMMSPLITTER"))
    environment.set("NESSIE_COMMSPLITTER", "variable:NESSIE_RANK");
  for (const char *name : {"OMPI_MCA_rmaps_base_oversubscribe", "PRTE_MCA_rmaps_default_mapping_policy"})
    if (!environment.get(name)) environment.set(name, name[0] == 'O' ? "1" : ":oversubscribe");
}

}  // namespace nessie::cli
