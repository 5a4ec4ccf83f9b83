// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/launcher_name.hpp"

#include <base/credential.hpp>
#include <services/discovery/contact/pmix.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace nessie::service {
namespace {

constexpr std::chrono::milliseconds kToWithdraw{2000};
/// Even at a deadline that has passed, the launcher has this long.
constexpr std::chrono::milliseconds kToAnswer{200};

std::string key_of(const std::string &name) { return "nessie/" + name; }

Status check_name(const std::string &name) {
  if (is_name(name)) return {};
  return Error{
      Code::kInvalidArgument,
      fmt::format("'{}' is no name: it has up to 128 letters, digits, '.', '_', '-' and '/'", name.substr(0, 80))};
}

Error in_context(Error error, const std::string &name) {
  error.message = fmt::format("'pmix:{}': {}", name, error.message);
  return error;
}

/// kNotFound, kPeerLost: not yet.
Result<Contact> look(const std::string &name, Deadline deadline, const Pause &pause) {
  const auto answer_by = Deadline::at(std::max(deadline.when(), Deadline::in(kToAnswer).when()));
  const auto text = pmix::look_up(key_of(name), answer_by, pause);
  if (!text.ok()) return in_context(text.error(), name);
  auto contact = parse_contact(*text);
  if (!contact.ok()) return in_context(contact.error(), name);
  const auto finding = look_for(contact->process);
  if (finding.life != Life::kGone) return contact;
  return Error{Code::kPeerLost, fmt::format("'pmix:{}' is stale: {}; start the service again", name, finding.why),
               Scope::kService};
}

}  // namespace

Result<LauncherName> LauncherName::publish(std::string name, Contact contact, Deadline deadline, const Pause &pause) {
  if (auto status = check_name(name); !status.ok()) return status.error();
  contact.process = this_process();
  contact.incarnation = random_u64();
  const auto text = to_text(contact);
  if (!text.ok()) return text.error();
  const auto there = pmix::look_up(key_of(name), deadline, pause);
  if (there.ok())
    return Error{Code::kExists, fmt::format("another process has published 'pmix:{}': choose another name", name)};
  if (there.code() != Code::kNotFound) return in_context(there.error(), name);
  if (auto status = pmix::publish(key_of(name), *text, deadline, pause); !status.ok())
    return in_context(status.error(), name);
  return LauncherName(std::move(name), contact.process.pid);
}

LauncherName::LauncherName(LauncherName &&other) noexcept : name_(std::exchange(other.name_, {})), pid_(other.pid_) {}

LauncherName::~LauncherName() {
  if (!name_.empty() && pid_ == ::getpid()) (void)pmix::withdraw(key_of(name_), Deadline::in(kToWithdraw), sleep);
}

Result<Contact> wait_for_launcher_name(const std::string &name, Deadline deadline, const Pause &pause) {
  if (auto status = check_name(name); !status.ok()) return status.error();
  auto contact = keep_looking([&] { return look(name, deadline, pause); }, deadline, pause);
  if (contact.code() != Code::kNotFound) return contact;
  return Error{
      Code::kTimedOut,
      fmt::format("nobody has published 'pmix:{}': start the service under the same mpiexec, or wait longer", name),
      Scope::kService, contact.error().cause};
}

}  // namespace nessie::service
