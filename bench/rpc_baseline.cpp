// SPDX-License-Identifier: BSD-3-Clause
#include "rpc_baseline.hpp"

#include "machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace bench {
namespace {

using nessie::Status;
constexpr auto kLimit = std::chrono::seconds(120);

Status take_part(const RpcBaseline &baseline, const RpcAnswer &answer, const RpcSetting &setting, Board &board,
                 int member, std::uint64_t size) {
  Pin pin(member == setting.service() ? kCoreOfService : core_of_client(member));
  if (member == setting.service()) return baseline.serve(setting, board);
  auto status = answer.measure(setting, board, member, size);
  board.arrive();
  return status;
}

int measure(const RpcBaseline &baseline, const RpcAnswer &answer, const RpcSetting &setting, std::uint64_t size) {
  auto duty = [&](Board &all, int member) { return take_part(baseline, answer, setting, all, member, size); };
  auto board = run_crew(setting.clients + 1, Housing::kProcesses, kLimit, duty);
  if (!board) return fmt::print(stderr, "{}: {}\n", baseline.program, board.error().message), 1;
  fmt::print("{} {} {:.9f}\n", answer.what, size, answer.figure(**board, setting.clients));
  std::fflush(stdout);
  return 0;
}

bool parse(const std::vector<std::string> &arguments, RpcSetting &setting) {
  if (arguments.size() < 5) return false;
  setting.over_tcp = arguments[0] == "tcp";
  setting.polls = arguments[1] == "polls";
  setting.clients = std::atoi(arguments[2].c_str());
  return setting.clients > 0;
}

bool is_number(const std::string &word) { return std::isdigit(static_cast<unsigned char>(word.front())) != 0; }

int usage(const RpcBaseline &baseline) {
  fmt::print(stderr, "usage: {} tcp|unix polls|sleeps CLIENTS WHAT SIZE... [WHAT SIZE...]...\n", baseline.program);
  return 2;
}

}  // namespace

bool RpcSetting::shares_core(int member) const {
  const int cores = static_cast<int>(usable_cores().size());
  return cores < 2 || (member != service() && clients > cores - 1);
}

Status meet(const RpcSetting &setting, Board &board) {
  if (board.meet(setting.clients, 1)) return {};
  return nessie::Error{nessie::Code::kTimedOut, "not all clients came"};
}

/// A client comes to a first meeting before it measures, and to a second one when it has left.
bool is_over(const RpcSetting &setting, Board &board) { return board.stopped() || board.all_here(setting.clients, 2); }

int run_rpc_baseline(const RpcBaseline &baseline, const std::vector<std::string> &arguments) {
  RpcSetting setting;
  if (!parse(arguments, setting)) return usage(baseline);
  const RpcAnswer *answer = nullptr;
  for (std::size_t i = 3; i < arguments.size(); ++i) {
    if (is_number(arguments[i]) && answer) {
      if (int code = measure(baseline, *answer, setting, std::stoull(arguments[i]))) return code;
      continue;
    }
    auto asked = [&](const RpcAnswer &one) { return one.what == arguments[i]; };
    auto found = std::find_if(baseline.answers.begin(), baseline.answers.end(), asked);
    if (found == baseline.answers.end()) return usage(baseline);
    answer = &*found;
  }
  return 0;
}

}  // namespace bench
