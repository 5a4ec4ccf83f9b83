// SPDX-License-Identifier: BSD-3-Clause
// URLs of endpoints: transport://address?key=value&key=value.
#pragma once

#include <nessie/result.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nessie {

/// One way to reach an endpoint. An endpoint that can be reached in several ways lists several URLs, joined by ';'.
struct Url {
  std::string transport;                     ///< "inproc", "shm", "ofi", …
  std::string address;                       ///< everything between "://" and '?'
  std::map<std::string, std::string> query;  ///< decoded parameters

  /// kInvalidArgument, with the offending part in the message, unless `text` is transport://address[?k=v[&k=v]…] with
  /// a transport of [a-z][a-z0-9+_-]*; at most 1024 bytes; address and values without white space or control bytes.
  static Result<Url> parse(std::string_view text);
  /// Parses a list joined by ';'. kInvalidArgument for an empty list or element.
  static Result<std::vector<Url>> parse_list(std::string_view text);
  std::string to_string() const;
  bool operator==(const Url &) const = default;
};

}  // namespace nessie
