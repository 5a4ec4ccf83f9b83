// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace nessie {

/// Of a hexadecimal digit; -1: it is none.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace nessie
