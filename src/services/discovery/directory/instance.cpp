// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/directory/instance.hpp"

#include <base/url.hpp>
#include <services/discovery/contact/contact.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace directory {

using nessie::Code;
using nessie::Error;
using nessie::Status;
using nessie::service::is_name;

namespace {

constexpr std::size_t kMostOfName = decltype(instance::name)::kMost;

Error invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

/// `what` is the text's name in an error. Of texts that cannot be printed, nothing is shown.
Status check_name(std::string_view name, std::size_t most, std::string_view what) {
  if (name.empty() || name.size() > most)
    return invalid(fmt::format("{} has {} characters; it must have 1 to {}", what, name.size(), most));
  if (is_name(name)) return {};
  return invalid(fmt::format("{} may have letters, digits, '.', '_', '-' and '/', and no others", what));
}

Status check_value(const attribute &attribute) {
  constexpr auto kMost = decltype(attribute.value)::kMost;
  if (attribute.value.size() > kMost)
    return invalid(fmt::format("the value of the attribute '{}' has {} characters; it may have {} at most",
                               attribute.name, attribute.value.size(), kMost));
  if (std::ranges::all_of(attribute.value, [](char c) { return c >= ' ' && c < 0x7f; })) return {};
  return invalid(fmt::format("the value of the attribute '{}' is not printable ASCII", attribute.name));
}

Status check_attributes(const instance &what) {
  constexpr auto kMost = decltype(what.attributes)::kMost;
  if (what.attributes.size() > kMost)
    return invalid(fmt::format("there are {} attributes; there may be {} at most", what.attributes.size(), kMost));
  std::set<std::string_view> names;
  for (const auto &attribute : what.attributes) {
    const std::string_view name = attribute.name;
    const auto its_name = is_name(name) ? fmt::format("the attribute's name '{}'", name)
                                        : fmt::format("the name of attribute {}", names.size() + 1);
    if (auto status = check_name(name, decltype(attribute.name)::kMost, its_name); !status.ok()) return status;
    if (!names.insert(name).second) return invalid(fmt::format("the attribute '{}' is there twice", name));
    if (auto status = check_value(attribute); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status check(const instance &what) {
  if (auto status = check_name(what.name, kMostOfName, "a service's name"); !status.ok()) return status;
  if (what.url.size() > decltype(what.url)::kMost)
    return invalid(fmt::format("the list of URLs has {} characters; it may have {} at most", what.url.size(),
                               decltype(what.url)::kMost));
  if (auto urls = nessie::Url::parse_list(what.url); !urls.ok()) return urls.error();
  return check_attributes(what);
}

Status check(const query &query) {
  if (query.is_prefix && query.text.empty()) return {};
  return check_name(query.text, kMostOfName, "the name that is looked up");
}

bool matches(const query &query, std::string_view name) {
  return query.is_prefix ? name.starts_with(query.text) : name == query.text;
}

}  // namespace directory
