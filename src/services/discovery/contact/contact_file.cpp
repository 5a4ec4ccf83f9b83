// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/contact_file.hpp"

#include <base/credential.hpp>
#include <base/file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <thread>
#include <utility>

namespace nessie::service {
namespace {

Result<Contact> read_even_if_stale(const std::string &path) {
  auto text = read_trusted_file(path, kMaxContactBytes);
  if (!text.ok()) return text.error();
  auto contact = parse_contact(*text);
  if (contact.ok()) return contact;
  auto error = contact.error();
  error.message = fmt::format("the contact file {} cannot be read: {}", path, error.message);
  return error;
}

Error stale(const std::string &path, const Contact &contact, const std::string &why) {
  return {Code::kPeerLost,
          fmt::format("the contact file {} is stale: {}, which wrote it for the service '{}'; start the service again, "
                      "or remove the file",
                      path, why, contact.service),
          Scope::kService};
}

/// What is there may be replaced: nothing, an empty file, what a service left that is gone or out of sight.
Status check_replaceable(const std::string &path) {
  const auto there = read_even_if_stale(path);
  if (there.code() == Code::kNotFound) return {};
  if (there.ok()) {
    if (look_for(there->process).life != Life::kRuns) return {};
    return Error{Code::kExists,
                 fmt::format("the contact file {} belongs to the service '{}' of process {}, which runs: "
                             "stop that one, or choose another file",
                             path, there->service, there->process.pid)};
  }
  if (const auto text = read_trusted_file(path, 0); text.ok()) return {};
  return Error{Code::kExists,
               fmt::format("{} is in the way: {}; choose another file, or remove it", path, there.error().message),
               Scope::kOperation, there.error().cause};
}

bool is_ours(const std::string &path, const Contact &contact) {
  const auto there = read_even_if_stale(path);
  return there.ok() && *there == contact;
}

/// Between the look and the removal somebody else may put his own there; so the file is moved aside first, and moved
/// back, if it is not ours, unless there is a newer one.
void remove_if_ours(const std::string &path, const Contact &contact) {
  if (!is_ours(path, contact)) return;
  const auto aside = fmt::format("{}.{:016x}.part", path, random_u64());
  if (::rename(path.c_str(), aside.c_str()) != 0) return;
  if (!is_ours(aside, contact)) (void)::link(aside.c_str(), path.c_str());
  ::unlink(aside.c_str());
}

}  // namespace

Result<ContactFile> ContactFile::write(std::string path, Contact contact) {
  contact.process = this_process();
  contact.incarnation = random_u64();
  auto text = to_text(contact);
  if (!text.ok()) return text.error();
  if (auto status = check_replaceable(path); !status.ok()) return status.error();
  if (auto status = write_private_file(path, *text); !status.ok()) return status.error();
  return ContactFile(std::move(path), std::move(contact));
}

ContactFile::ContactFile(ContactFile &&other) noexcept
    : path_(std::exchange(other.path_, {})), contact_(std::move(other.contact_)) {}

ContactFile::~ContactFile() {
  if (!path_.empty() && contact_.process.pid == ::getpid()) remove_if_ours(path_, contact_);
}

Result<Contact> read_contact(const std::string &path) {
  auto contact = read_even_if_stale(path);
  if (!contact.ok()) return contact;
  const auto finding = look_for(contact->process);
  return finding.life == Life::kGone ? stale(path, *contact, finding.why) : contact;
}

Status sleep(Clock::duration time) {
  std::this_thread::sleep_for(time);
  return {};
}

Result<Contact> wait_for_contact(const std::string &path, Deadline deadline, const Pause &pause) {
  auto contact = keep_looking([&] { return read_contact(path); }, deadline, pause);
  if (contact.code() != Code::kNotFound) return contact;
  return Error{Code::kTimedOut,
               fmt::format("no service has written the contact file {}: start it, or wait longer", path),
               Scope::kService, contact.error().cause};
}

}  // namespace nessie::service
