// SPDX-License-Identifier: BSD-3-Clause
// Files in which services say where they are.
#pragma once

#include <services/discovery/contact/contact.hpp>
#include <services/discovery/contact/waiting.hpp>

#include <string>

namespace nessie::service {

/// A contact file that this process keeps. Moves. Dropped, it removes the file, unless another service has put its own
/// there meanwhile; not in a child that was forked.
class ContactFile {
 public:
  /// `contact.process` and `incarnation` are filled in. The file appears whole, with mode 0600, in the place of what a
  /// service that is gone left there. kExists: a service that runs keeps this file, or it is something else than a
  /// contact file. Of two that write it at the same instant the later one has it, and the other is not told.
  /// kInvalidArgument as to_text(). kIo.
  static Result<ContactFile> write(std::string path, Contact contact);
  ContactFile(ContactFile &&other) noexcept;
  ContactFile &operator=(ContactFile &&) = delete;
  ~ContactFile();

  const std::string &path() const { return path_; }
  const Contact &contact() const { return contact_; }

 private:
  ContactFile(std::string path, Contact contact) : path_(std::move(path)), contact_(std::move(contact)) {}
  std::string path_;  ///< empty: moved from
  Contact contact_;
};

/// Each error names the file. kNotFound: it is not there. kPeerLost: it is stale, for the service that wrote it is
/// gone: the machine was started anew, the process has ended, or another one has its number; this can be told of
/// services on this node only. kRefused, kTooLarge, kIo as read_trusted_file(). kBadMessage, kUnsupported as
/// parse_contact().
Result<Contact> read_contact(const std::string &path);

/// The same, waiting until a service that is there has written the file. At the deadline kTimedOut, if there is no
/// file, or kPeerLost; other errors are told at once. It looks again and again: files on shared file systems tell
/// nobody that they appear.
Result<Contact> wait_for_contact(const std::string &path, Deadline deadline, const Pause &pause);

}  // namespace nessie::service
