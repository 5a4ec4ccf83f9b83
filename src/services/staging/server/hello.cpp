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
  if (args.application.empty())
    forget_crowd(request.caller());
  else
    ++statistics_.clients;
  if (args.servers.size() == options_.servers) servers_.assign(args.servers.begin(), args.servers.end());
  recovered_.notify_all();
  if (const auto process = runtime_.process_of(request.caller()); process.ok())
    processes_[request.caller().value] = {*process, args.application};
  if (args.client != 0 && may_be_kept()) note_client(request.caller(), args.client);
  return HelloResult{Op::kVersion,
                     options_.index,
                     options_.servers,
                     options_.mode,
                     native_version(),
                     may_be_kept(),
                     may_be_kept() && !options_.durability.keeps_nothing()};
}

void Server::note_client(nssi::PeerId caller, std::uint64_t client) {
  const auto process = processes_.find(caller.value);
  const auto pid = process != processes_.end() ? process->second.pid : 0;
  clients_[caller.value] = client;
  auto &who = returning_[client].who;
  who.client = client;
  who.pid = pid;
  who.started = pid != 0 ? started_of(pid) : 0;
}

Status Server::ping(Request &) { return {}; }

Status Server::hasten(Request &) {
  runtime_.hasten_bulk();
  return {};
}

}  // namespace staging
