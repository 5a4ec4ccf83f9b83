// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/directory/client/find.hpp"

#include <services/discovery/contact/schemes.hpp>
#include <services/discovery/directory/client/client.hpp>

#include <fmt/format.h>

namespace directory {

using nessie::service::Found;
using nessie::service::kDirectory;
using nessie::service::Pause;

namespace {

Found to_found(const instance &it, const std::string &where) {
  Found found{
      it.url, {{{it.program_number, it.version_number}, it.provider}}, {}, fmt::format("the directory at {}", where)};
  for (const auto &attribute : it.attributes) found.attributes.emplace_back(attribute.name, attribute.value);
  return found;
}

Error in_context(Error error, std::string_view name, const std::string &where) {
  error.message = fmt::format("cannot find '{}' in the directory at {}: {}", name, where, error.message);
  return error;
}

/// Waits until there is an instance.
Result<std::vector<Found>> find_name(nssi::Runtime &runtime, const nessie::Config &config, std::string_view name,
                                     Deadline deadline) {
  const auto where = directory_of(config);
  if (!where.ok()) return where.error();
  Directory directory(runtime, *where);
  const query query{false, std::string(name)};
  for (mark seen;;) {
    auto got = directory.watch(query, seen, deadline);
    if (!got.ok()) return in_context(got.error(), name, *where);
    std::vector<Found> found;
    for (const auto &each : got->instances) found.push_back(to_found(each, *where));
    if (!found.empty()) return found;
    seen = got->at;
    if (deadline.passed())
      return Error{Code::kTimedOut,
                   fmt::format("nobody has announced '{}' to the directory at {}: start the service, or "
                               "wait longer; `nessie directory list` shows what there is",
                               name, *where)};
  }
}

}  // namespace

Result<std::vector<Found>> find(nssi::Runtime &runtime, const nessie::Config &config, std::string_view what,
                                Deadline deadline) {
  const auto words = nessie::service::expand(what);
  if (!words.ok()) return words.error();
  const Pause drive = [&](Clock::duration time) { return pause(runtime, Deadline::in(time)); };
  std::vector<Found> all;
  for (const std::string_view word : *words) {
    auto found = word.starts_with(kDirectory) ? find_name(runtime, config, word.substr(kDirectory.size()), deadline)
                                              : nessie::service::locate(word, deadline, drive);
    if (!found.ok()) return found;
    all.insert(all.end(), found->begin(), found->end());
  }
  return all;
}

}  // namespace directory
