// SPDX-License-Identifier: BSD-3-Clause
// Names of files are bytes, and may hold anything but a slash and a zero: what is printed, logged or serialised of them
// passes here.
#pragma once

#include <string>
#include <string_view>

namespace nessie {

/// For people: control characters, and bytes that are no UTF-8, as \n, \t, \r, \x1b; the rest as it is.
std::string printable(std::string_view text);

/// Whether all of it is well-formed UTF-8.
bool is_utf8(std::string_view text);

/// For JSON and the like: each byte that is no UTF-8 becomes U+FFFD.
std::string to_utf8(std::string_view text);

/// "6e65" for "ne": brings back what to_utf8() lost.
std::string hex_bytes(std::string_view text);

}  // namespace nessie
