// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

namespace staging {

Result<NcResult> Server::amend(Request &, const AmendArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(args.file);
  if (!file) return unknown(args.file);
  const FileGate::Alone alone(file->gate);
  if (args.number != 0 && args.number <= file->definitions)
    return NcResult{file->defined_as};  // carried out, but not answered
  LoggedDefinition definition{true, {}};
  auto &as = definition.args;
  as.file = args.file, as.definitions = args.definitions, as.number = args.number;
  if (auto kept = keep_definition(*file, definition); !kept.ok()) return kept.error();
  const int error = amend(*file, args.definitions, true);
  if (auto kept = keep_defined(*file, definition, error); !kept.ok()) return kept.error();
  if (error == NC_NOERR && file->defined && file->marked) marks_.note_header(*file->marked);
  return NcResult{error};
}

int Server::amend(OpenFile &file, const std::vector<Definition> &definitions, bool tells_at_once) {
  std::size_t done = 0;
  return define(file, tells_at_once, [&](NativeFile &native) { return native.amend(definitions, done); });
}

}  // namespace staging
