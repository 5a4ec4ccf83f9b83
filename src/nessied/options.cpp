// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <charconv>
#include <map>

namespace nessied {

using nessie::Code;
using nessie::Error;
using nessie::Result;

const char *const kUsage =
    "Usage: nessied [options]\n"
    "A staging server. `nessie run` starts it; it can also be started by mpiexec or srun, one server for each "
    "process.\n"
    "\n"
    "  --index N          which server this is (default: its rank)\n"
    "  --servers N        how many there are (default: the number of processes)\n"
    "  --mode MODE        caching: answers a write when the data are in memory; direct: when they are in the file; "
    "auto "
    "(default): as caching, and the program leaves files that gain nothing to native PnetCDF\n"
    "  --memory SIZE      memory for data on their way to the files, e.g. 2G (default: 512M)\n"
    "  --run-dir DIR      where to put server.N.url, server.N.ledger and server.N.report (default: .)\n"
    "  --board-dir DIR    where to put board.N, by which other programs see which files are not complete yet (default: "
    "none)\n"
    "  --listen LIST      transports to listen on, e.g. shm,ofi (default: all that this machine has)\n"
    "  --parent FD        drain and exit at the end of file of FD (default: standard input, if it is a pipe)\n"
    "\n"
    "NESSIE_CREDENTIAL holds the job's credential. SIGTERM: drain, then exit.\n";

namespace {

Error bad(const std::string &message) { return {Code::kInvalidArgument, message + "; see nessied --help"}; }

Result<std::uint32_t> parse_number(const std::string &flag, const std::string &text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return bad(fmt::format("{} takes a number, not '{}'", flag, text));
  return value;
}

bool is_pipe(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

nessie::Status set_flag(Options &options, const std::string &flag, const std::string &value) {
  static const std::map<std::string, std::string> settings = {
      {"--mode", "staging.mode"}, {"--memory", "staging.memory"}, {"--listen", "staging.listen"}};
  if (const auto setting = settings.find(flag); setting != settings.end())
    return options.config.set(setting->second, value), nessie::Status();
  if (flag == "--run-dir") return options.run_directory = value, nessie::Status();
  if (flag == "--board-dir") return options.board_directory = value, nessie::Status();
  if (flag != "--index" && flag != "--servers" && flag != "--parent") return bad("unknown option " + flag);
  auto number = parse_number(flag, value);
  if (!number.ok()) return number.error();
  if (flag == "--index")
    options.index = *number;
  else if (flag == "--servers")
    options.servers = *number;
  else
    options.parent_fd = static_cast<int>(*number);
  return {};
}

}  // namespace

Result<Options> parse_options(int argc, char **argv) {
  auto config = nessie::Config::load();
  if (!config.ok()) return config.error();
  Options options;
  options.config = std::move(*config);
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i], value;
    if (flag == "--help" || flag == "-h") return options.help = true, options;
    if (const auto equals = flag.find('='); equals != std::string::npos)
      value = flag.substr(equals + 1), flag.resize(equals);
    else if (i + 1 < argc)
      value = argv[++i];
    else
      return bad(flag + " is no option, or lacks its value");
    if (auto status = set_flag(options, flag, value); !status.ok()) return status.error();
  }
  if (options.parent_fd < 0 && options.index && is_pipe(0)) options.parent_fd = 0;
  return options;
}

namespace {

Result<staging::Mode> mode_of(const nessie::Config &config) {
  const auto text = config.get_or("staging.mode", "auto");
  if (text == "auto") return staging::Mode::kAuto;
  if (text == "caching") return staging::Mode::kCaching;
  if (text == "direct") return staging::Mode::kDirect;
  return config.bad_value("staging.mode", "auto, caching or direct");
}

}  // namespace

Result<staging::ServerOptions> server_options(const nessie::Config &config) {
  staging::ServerOptions options;
  auto mode = mode_of(config);
  if (!mode.ok()) return mode.error();
  options.mode = *mode;
  auto memory = config.get_size("staging.memory", options.memory_bytes);
  if (!memory.ok()) return memory.error();
  options.memory_bytes = *memory;
  auto timeout = config.get_duration("staging.timeout", options.client_timeout);
  if (!timeout.ok()) return timeout.error();
  options.client_timeout = *timeout;
  options.runtime.endpoint.config = config;
  options.runtime.endpoint.transports = nessie::split(config.get_or("staging.listen", ""), ",");
  return options;
}

}  // namespace nessied
