// SPDX-License-Identifier: BSD-3-Clause
// What a service says about itself: where it is, what it offers, which process it is. As text: README.md.
#pragma once

#include <nssi/nssi.hpp>
#include <services/discovery/contact/process_id.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::service {

/// One instance of an interface in a process.
struct Offer {
  nssi::Interface interface;
  std::uint32_t provider = 0;
  bool operator==(const Offer &) const = default;
};

struct Contact {
  std::string service;  ///< what kind of service: "directory"
  std::string url;      ///< a list joined by ';'
  std::vector<Offer> offers;
  ProcessId process;
  std::uint64_t incarnation = 0;  ///< random: which start of the service this is
  bool operator==(const Contact &) const = default;
};

/// Names of services and of their instances: up to 128 letters, digits, '.', '_', '-' and '/'.
bool is_name(std::string_view text);

inline constexpr std::size_t kMaxContactBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxOffers = 256;

/// kInvalidArgument, which says what: it cannot be written as text that is read back to the same.
Result<std::string> to_text(const Contact &contact);

/// Trusts nothing. kUnsupported: another version of the format. kBadMessage, with the line: it is no contact.
Result<Contact> parse_contact(std::string_view text);

}  // namespace nessie::service
