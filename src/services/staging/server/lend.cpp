// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/server.hpp>

#include <base/credential.hpp>
#include <services/staging/handle.hpp>

namespace staging {

using nessie::Code;
using nessie::Error;

/// To whoever knows the file's token, as all that is done with the file. What a process of another node had this server
/// open by its name is lent to nobody: only what a process of this node could open itself.
Result<LendResult> Server::lend(Request &request, const FileToken &token) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(token);
  if (!file) return Error{Code::kNotFound, "the file is not open at this server"};
  if (!file->was_given)
    return Error{Code::kRefused, "the staging server has opened it by its name, and lends what it was given only"};
  const int descriptor = file->native->descriptor();
  if (auto fair = check_lent(descriptor, file->native->writable()); !fair.ok()) return fair.error();
  const auto key = nessie::random_u64() | 1;
  if (auto given = request.give_descriptor(key, descriptor); !given.ok()) return given.error();
  return LendResult{key};
}

}  // namespace staging
