// SPDX-License-Identifier: BSD-3-Clause
#include "services/directory/instance.hpp"

#include <base/url.hpp>
#include <service/contact.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace directory {

using nessie::Code;
using nessie::Error;
using nessie::Status;
using nessie::service::is_name;

namespace {

/// Of texts that cannot be printed, nothing is shown.
Error no_name(const char *what) {
  return {Code::kInvalidArgument,
          fmt::format("{} must have 1 to 128 letters, digits, '.', '_', '-' and '/', and no others", what)};
}

Status check_attributes(const instance &what) {
  std::set<std::string_view> names;
  for (const auto &attribute : what.attributes) {
    if (!is_name(attribute.name)) return no_name("an attribute's name");
    if (!names.insert(attribute.name).second)
      return Error{Code::kInvalidArgument, fmt::format("the attribute '{}' is there twice", attribute.name)};
    if (!std::ranges::all_of(attribute.value, [](char c) { return c >= ' ' && c < 0x7f; }))
      return Error{Code::kInvalidArgument,
                   fmt::format("the attribute '{}' has a value that is not printable ASCII", attribute.name)};
  }
  return {};
}

}  // namespace

Status check(const instance &what) {
  if (!is_name(what.name)) return no_name("a service's name");
  if (auto urls = nessie::Url::parse_list(what.url); !urls.ok()) return urls.error();
  return check_attributes(what);
}

Status check(const query &query) {
  if (query.is_prefix && query.text.empty()) return {};
  return is_name(query.text) ? Status() : no_name("the name that is looked up");
}

bool matches(const query &query, std::string_view name) {
  return query.is_prefix ? name.starts_with(query.text) : name == query.text;
}

}  // namespace directory
