// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/contact/locate.hpp"

#include <base/url.hpp>
#include <services/discovery/contact/contact_file.hpp>
#include <services/discovery/contact/launcher_name.hpp>
#include <services/discovery/contact/schemes.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

namespace nessie::service {
namespace {

Result<std::vector<Found>> locate_url(std::string_view what) {
  if (what.find("://") == std::string_view::npos)
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' names no service: say a URL (transport://address), file:PATH, pmix:NAME, "
                             "env:VARIABLE or dir:NAME",
                             what.substr(0, 80))};
  if (auto urls = Url::parse_list(what); !urls.ok()) return urls.error();
  return std::vector<Found>{{std::string(what), {}, {}, "its URL"}};
}

Result<std::vector<Found>> locate_file(std::string_view path, Deadline deadline, const Pause &pause) {
  if (path.empty()) return Error{Code::kInvalidArgument, "'file:' lacks the path of a contact file"};
  auto contact = wait_for_contact(std::string(path), deadline, pause);
  if (!contact.ok()) return contact.error();
  return std::vector<Found>{{contact->url, contact->offers, {}, fmt::format("the contact file {}", path)}};
}

Result<std::vector<Found>> locate_name(std::string_view name, Deadline deadline, const Pause &pause) {
  auto contact = wait_for_launcher_name(std::string(name), deadline, pause);
  if (!contact.ok()) return contact.error();
  return std::vector<Found>{{contact->url, contact->offers, {}, fmt::format("the launcher, as {}", name)}};
}

Result<std::vector<Found>> locate_one(std::string_view what, Deadline deadline, const Pause &pause) {
  if (what.starts_with(kDirectory))
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' is a name in a directory, which cannot be used here: say a URL, file:PATH, "
                             "pmix:NAME or env:VARIABLE",
                             what.substr(0, 80))};
  if (what.starts_with(kLauncher)) return locate_name(what.substr(kLauncher.size()), deadline, pause);
  if (what.starts_with(kFile)) return locate_file(what.substr(kFile.size()), deadline, pause);
  return locate_url(what);
}

}  // namespace

Result<std::vector<std::string>> expand(std::string_view what) {
  if (!what.starts_with(kEnvironment)) return std::vector{std::string(what)};
  const std::string name(what.substr(kEnvironment.size()));
  const char *value = std::getenv(name.c_str());
  std::istringstream text(value != nullptr ? value : "");
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    if (word.starts_with(kEnvironment))
      return Error{Code::kInvalidArgument, fmt::format("the variable {} names another one, {}: say that", name, word)};
    words.push_back(word);
  }
  if (!words.empty()) return words;
  return Error{Code::kNotFound,
               fmt::format("the variable '{}' is {}: set it to a URL, file:PATH, pmix:NAME or dir:NAME", name,
                           value == nullptr ? "not set" : "empty")};
}

Result<std::vector<Found>> locate(std::string_view what, Deadline deadline, const Pause &pause) {
  auto words = expand(what);
  if (!words.ok()) return words.error();
  std::vector<Found> all;
  for (const auto &word : *words) {
    auto found = locate_one(word, deadline, pause);
    if (!found.ok()) return found;
    all.insert(all.end(), found->begin(), found->end());
  }
  return all;
}

}  // namespace nessie::service
