// SPDX-License-Identifier: BSD-3-Clause
#include "rivals.hpp"

#include "child.hpp"
#include "machine.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace bench {
namespace {

using nessie::Result;
constexpr auto kLimit = std::chrono::seconds(300);

struct Description {
  const char *name, *program, *launcher, *packages;
};
constexpr Description kRivals[] = {
    {"openmpi", "nessie-bench-mpi", "mpiexec", "libopenmpi-dev openmpi-bin"},
    {"mpich", "nessie-bench-mpich", "mpiexec.mpich", "libmpich-dev mpich"},
    {"ucx", "nessie-bench-ucx", nullptr, "libucx-dev"},
    {"grpc", "nessie-bench-grpc", nullptr, "libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc"},
    {"libtirpc", "nessie-bench-tirpc", nullptr, "libtirpc-dev"},
};
const Description &description(Rival rival) { return kRivals[static_cast<int>(rival)]; }

bool is_here(Rival rival) {
  const auto &it = description(rival);
  std::error_code error;
  return std::filesystem::exists(sibling(it.program), error) && (!it.launcher || on_path(it.launcher));
}

int processes_of(const Cast &cast) { return cast.one_target ? cast.leaders + 1 : 2 * cast.leaders; }

std::vector<std::string> mpich_command(const Cast &cast, std::vector<std::string> program) {
  std::vector<std::string> command{"mpiexec.mpich", "-bind-to", "none", "-n", std::to_string(processes_of(cast))};
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

bool carries_calls(Rival rival) { return rival == Rival::kGrpc || rival == Rival::kTirpc; }

std::vector<std::string> program_for(Rival rival, const Cast &cast) {
  std::vector<std::string> program{sibling(description(rival).program)};
  if (carries_calls(rival))
    program.insert(program.end(), {name_of(cast.network), cast.polls ? "polls" : "sleeps"});
  else
    program.emplace_back(cast.one_target ? "clients" : "pairs");
  if (rival == Rival::kUcx || carries_calls(rival)) program.push_back(std::to_string(cast.leaders));
  return program;
}

std::vector<std::string> command(Rival rival, const Cast &cast, const std::vector<Question> &questions) {
  auto program = program_for(rival, cast);
  for (const auto &question : questions) {
    program.push_back(question.what);
    for (auto size : question.sizes) program.push_back(std::to_string(size));
  }
  if (rival == Rival::kOpenMpi)
    return mpiexec(processes_of(cast), std::move(program),
                   mpi_options(processes_of(cast), cast.network == Network::kTcp));
  if (rival == Rival::kMpich) return mpich_command(cast, std::move(program));
  return program;
}

std::vector<std::string> environment(Rival rival, Network network) {
  if (rival == Rival::kOpenMpi || carries_calls(rival)) return {};
  std::vector<std::string> settings{ucx_transports(network)};
  if (network == Network::kTcp) settings.emplace_back("MPIR_CVAR_NOLOCAL=1");
  return settings;
}

}  // namespace

Network network_of(const std::string &transport) {
  return transport == "tcp" || transport == "ofi" || transport == "ucx" ? Network::kTcp : Network::kSharedMemory;
}
const char *ucx_transports(Network network) {
  return network == Network::kTcp ? "UCX_TLS=self,tcp" : "UCX_TLS=self,sm";
}
const char *name_of(Rival rival) { return description(rival).name; }
const char *name_of(Network network) {
  constexpr const char *kNames[] = {"shm", "tcp", "unix"};
  return kNames[static_cast<int>(network)];
}

bool can_answer(Rival rival, const std::string &what) {
  if (rival == Rival::kUcx) return !what.starts_with("transfer");
  return rival != Rival::kGrpc || (what != "batched-per-s" && !what.ends_with("-encode"));
}

Result<Answers> ask(Rival rival, const Cast &cast, const std::vector<Question> &questions) {
  const auto result = run_program(command(rival, cast, questions), kLimit, environment(rival, cast.network));
  if (!result) return result.error();
  Answers answers;
  std::istringstream lines(result->output);
  std::uint64_t size;
  for (std::string what; lines >> what >> size;) lines >> answers[what][size];
  for (const auto &question : questions)
    if (answers[question.what].size() != question.sizes.size())
      return nessie::Error{nessie::Code::kIo, fmt::format("{} did not answer '{}', but wrote: {}", name_of(rival),
                                                          question.what, result->output)};
  return answers;
}

std::vector<Rival> those_here(const std::vector<Rival> &rivals) {
  std::vector<Rival> here;
  for (auto rival : rivals) {
    if (is_here(rival)) {
      here.push_back(rival);
      continue;
    }
    fmt::print(stderr, "nessie bench: {} is not measured: install {}, and build again\n", name_of(rival),
               description(rival).packages);
  }
  return here;
}

std::vector<Rival> rivals_here() { return those_here({Rival::kOpenMpi, Rival::kMpich, Rival::kUcx}); }

std::vector<RpcRival> rpc_rivals_here(const std::vector<Rival> &rivals) {
  std::vector<RpcRival> here;
  for (auto rival : those_here(rivals))
    for (auto network : {Network::kTcp, Network::kUnixSocket}) here.push_back({rival, network});
  return here;
}

}  // namespace bench
