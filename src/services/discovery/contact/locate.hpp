// SPDX-License-Identifier: BSD-3-Clause
// From what a user says to where a service is. docs/finding.md is about it.
#pragma once

#include <services/discovery/contact/contact.hpp>
#include <services/discovery/contact/waiting.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace nessie::service {

/// An instance of a service, and how it was found.
struct Found {
  std::string url;                                                   ///< a list joined by ';', as connect() takes it
  std::vector<Offer> offers;                                         ///< empty: it was not said
  std::vector<std::pair<std::string, std::string>> attributes = {};  ///< what a directory knows of it besides
  std::string source;                                                ///< for people: "the contact file /run/a.contact"
  bool operator==(const Found &) const = default;
};

/// `what` is a URL (or a list joined by ';'), `file:PATH`, `pmix:NAME`, or `env:VARIABLE`, which holds one or several
/// of the others, separated by white space. Waits for contact files and names, until the deadline. Never empty.
/// kInvalidArgument: it is none of these. kNotFound: the variable is not set, or empty. Otherwise as wait_for_contact()
/// and wait_for_launcher_name().
Result<std::vector<Found>> locate(std::string_view what, Deadline deadline, const Pause &pause);

/// The words of the variable that `what` (`env:NAME`) names; otherwise `what` alone. kNotFound, kInvalidArgument.
Result<std::vector<std::string>> expand(std::string_view what);

}  // namespace nessie::service
