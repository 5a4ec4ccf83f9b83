// SPDX-License-Identifier: BSD-3-Clause
#include <services/launch/client/client.hpp>

#include <launch_rpc.hpp>

#include <algorithm>

namespace launch {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;

namespace {

Result<std::vector<std::string>> ask_run(const std::string &url, nssi::Runtime &runtime, Deadline deadline) {
  auto run = runtime.connect(url, deadline);
  if (!run.ok()) return run.error();
  auto all = LAUNCH::ONE::Client(runtime, *run).SERVERS({.deadline = deadline, .idempotent = true});
  runtime.disconnect(*run);
  if (!all.ok()) return all.error();
  return std::vector<std::string>(all->urls.begin(), all->urls.end());
}

}  // namespace

Result<std::chrono::milliseconds> start_timeout(const nessie::Config &config) {
  return config.get_duration("run.start_timeout", std::chrono::seconds(30));
}

Result<std::vector<std::string>> servers_in(std::string list, nssi::Runtime &runtime, Deadline deadline) {
  std::ranges::replace(list, '|', ';');  // mpiexec of Open MPI before version 5 carries no ";"
  auto words = nessie::split(list, " \t\n");
  if (words.empty())
    return Error{Code::kNotFound, "NESSIE_SERVERS names no staging server: start the program with `nessie run`"};
  if (!words.front().starts_with(kScheme)) return words;
  return ask_run(words.front().substr(kScheme.size()), runtime, deadline);
}

}  // namespace launch
