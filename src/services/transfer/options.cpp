// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <base/config.hpp>

#include <fmt/format.h>

#include <charconv>

namespace transfer {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

const char *const kUsage =
    "Usage: nessie-transfer [options]\n"
    "The transfer service of the Nessie paper: takes and gives arrays, encoded or by RDMA. Prints its URL, and serves\n"
    "until SIGTERM or SIGINT: then it finishes what it has accepted, for 10 s at most; at once when asked again. "
    "SIGHUP has\n"
    "the file that NESSIE_CONFIG names read anew.\n"
    "\n"
    "  --listen LIST      transports to listen on, e.g. shm,ofi (default: all that this machine has)\n"
    "  --provider N       the service's provider number (default: 0)\n"
    "  --threads N        that make and check arrays of more than a piece (default: 1; 0: the progress thread does)\n"
    "  --piece SIZE       how much of an array moves at once (default: 512K)\n"
    "  --most-encoded SIZE  the most that a read is given encoded (default: 256M)\n"
    "  --announce PLACE   where clients find it: file:PATH, pmix:NAME or dir:NAME; may be said again and again\n"
    "\n"
    "NESSIE_CREDENTIAL holds the job's credential; without it the user's own is proved.\n";

namespace {

Error bad(const std::string &message) { return {Code::kInvalidArgument, message + "; see nessie-transfer --help"}; }

template <class T> Status set_number(T &number, const std::string &flag, const std::string &text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return bad(fmt::format("{} takes a number, not '{}'", flag, text));
}

template <class T> Status set_size(T &size_bytes, const std::string &flag, const std::string &text) {
  const auto size = nessie::parse_size(text);
  if (!size || *size == 0) return bad(fmt::format("{} takes a size such as 64K, not '{}'", flag, text));
  size_bytes = *size;
  return {};
}

Status set_flag(CommandLine &line, const std::string &flag, const std::string &value) {
  if (flag == "--listen") return line.runtime.endpoint.transports = nessie::split(value, ","), Status();
  if (flag == "--announce") return line.places.push_back(value), Status();
  if (flag == "--provider") return set_number(line.provider, flag, value);
  if (flag == "--threads") return set_number(line.server.threads, flag, value);
  if (flag == "--piece") return set_size(line.server.piece_bytes, flag, value);
  if (flag == "--most-encoded") return set_size(line.server.most_encoded_bytes, flag, value);
  return bad("unknown option " + flag);
}

Status configure(nnti::EndpointOptions &endpoint) {
  auto config = nessie::Config::load();
  if (!config) return config.error();
  endpoint.config = *std::move(config);
  return {};
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, char **argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i], value;
    if (flag == "--help" || flag == "-h") return line.help = true, line;
    if (const auto equals = flag.find('='); equals != std::string::npos)
      value = flag.substr(equals + 1), flag.resize(equals);
    else if (i + 1 < argc)
      value = argv[++i];
    else
      return bad(flag + " is no option, or lacks its value");
    if (auto status = set_flag(line, flag, value); !status.ok()) return status.error();
  }
  if (auto status = configure(line.runtime.endpoint); !status.ok()) return status.error();
  return line;
}

}  // namespace transfer
