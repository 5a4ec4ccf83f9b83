// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <fmt/format.h>

namespace staging {

using nessie::Code;
using nessie::Error;

Result<HelloResult> Server::hello(Request &request, const HelloArgs &args) {
  if (args.protocol != Op::kVersion)
    return Error{Code::kUnsupported,
                 fmt::format("this staging server speaks version {} of the protocol, the program's library version {}: "
                             "install both from the same release",
                             Op::kVersion, args.protocol)};
  if (!args.application.empty()) ++statistics_.clients;
  if (const auto process = runtime_.process_of(request.caller()); process.ok())
    processes_[request.caller().value] = {*process, args.application};
  return HelloResult{Op::kVersion, options_.index, options_.servers, options_.mode, native_version()};
}

Status Server::ping(Request &) { return {}; }

Status Server::hasten(Request &) {
  runtime_.hasten_bulk();
  return {};
}

}  // namespace staging
