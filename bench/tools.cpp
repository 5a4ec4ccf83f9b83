// SPDX-License-Identifier: BSD-3-Clause
#include "tools.hpp"

#include "child.hpp"
#include "machine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;

constexpr auto kLimit = std::chrono::seconds(60), kPatience = std::chrono::seconds(10);
constexpr int kRoundTripsOfTool = 10'000;

struct Description {
  const char *name, *package;
  std::size_t column;  ///< of the last line that it writes, counted from its end: the median, the mean
};
constexpr Description kTools[] = {{"ucx_perftest", "ucx-utils", 7}, {"fi_pingpong", "libfabric-bin", 2}};
const Description &description(Tool tool) { return kTools[static_cast<int>(tool)]; }

/// Of a port that nobody listens at.
Result<int> free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto *name = reinterpret_cast<sockaddr *>(&address);
  const bool found = bind(probe, name, length) == 0 && getsockname(probe, name, &length) == 0;
  close(probe);
  if (!found) return Error{Code::kIo, "no port is free", {}, errno};
  return ntohs(address.sin_port);
}

/// The command of the side that listens at `port`, or of the one that connects there.
std::vector<std::string> command(Tool tool, Network network, std::uint64_t size, int port, bool listens) {
  const auto at = std::to_string(port), bytes = std::to_string(size), times = std::to_string(kRoundTripsOfTool);
  std::vector<std::string> words{name_of(tool)};
  if (tool == Tool::kUcxPerftest) {
    words.insert(words.end(), {"-p", at});
    if (!listens) words.insert(words.end(), {"127.0.0.1", "-f", "-t", "ucp_am_lat", "-s", bytes, "-n", times});
  } else {
    const char *provider = network == Network::kTcp ? "tcp;ofi_rxm" : "shm";
    words.insert(words.end(), {"-p", provider, "-e", "rdm", "-I", times, "-S", bytes, listens ? "-B" : "-P", at});
    if (!listens) words.emplace_back("127.0.0.1");
  }
  return words;
}

int listen_as(std::vector<std::string> words, std::string environment) {
  Pin pin(1);
  putenv(environment.data());
  std::vector<char *> arguments;
  for (auto &word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, output);
  execvp(arguments[0], arguments.data());
  return 127;
}

/// Tries until the other side listens.
Result<std::string> ask(const std::vector<std::string> &words, const std::string &environment) {
  Pin pin(0);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    auto answer = run_program(words, kLimit, {environment});
    if (answer) return std::move(answer->output);
    if (answer.code() != Code::kIo || std::chrono::steady_clock::now() > until) return answer.error();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Result<double> half_round_trip(Tool tool, Network network, std::uint64_t size) {
  auto port = free_port();
  if (!port) return port.error();
  Partner listener(
      [&](int, int) { return listen_as(command(tool, network, size, *port, true), ucx_transports(network)); });
  auto output = ask(command(tool, network, size, *port, false), ucx_transports(network));
  if (!output) return output.error();
  std::istringstream lines(*output);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  std::istringstream line(last);
  std::vector<std::string> columns;
  for (std::string column; line >> column;) columns.push_back(column);
  const auto wanted = description(tool).column;
  const double us = columns.size() < wanted ? 0 : std::atof(columns[columns.size() - wanted].c_str());
  if (us <= 0) return Error{Code::kIo, fmt::format("{} was not understood: {}", name_of(tool), *output)};
  return us;
}

}  // namespace

const char *name_of(Tool tool) { return description(tool).name; }

std::vector<Tool> tools_here() {
  std::vector<Tool> here;
  for (auto tool : {Tool::kUcxPerftest, Tool::kFiPingpong}) {
    if (on_path(name_of(tool))) {
      here.push_back(tool);
      continue;
    }
    fmt::print(stderr, "nessie bench: {} is not asked: install {}\n", name_of(tool), description(tool).package);
  }
  return here;
}

Result<FiguresBySize> half_round_trips(Tool tool, Network network, const std::vector<std::uint64_t> &sizes) {
  FiguresBySize times;
  for (auto size : sizes) {
    auto us = half_round_trip(tool, network, size);
    if (!us) return us.error();
    times[size] = *us;
  }
  return times;
}

}  // namespace bench
