// SPDX-License-Identifier: BSD-3-Clause
#include <greeting.hpp>

#include <cstdio>

int main() {
  const greeting::greeting hello{std::string("hello"), 2};
  const auto bytes = xdr::encode_checked(hello);
  const auto same = bytes.ok() && *xdr::decode<greeting::greeting>(*bytes) == hello;
  std::printf("%zu bytes, %s\n", bytes.ok() ? bytes->size() : 0, same ? "the same" : "others");
  return same ? 0 : 1;
}
