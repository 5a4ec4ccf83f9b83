// SPDX-License-Identifier: BSD-3-Clause
// What C++ makes of golden.x, for xdr_test.py to compare with. A line is a type's name and bytes in hexadecimal.
//   nessie_python_xdr_peer values COUNT   prints so many random values of each type
//   nessie_python_xdr_peer judge          for each line that it reads: decodes it, and prints it encoded again, or
//   "refused"
#include "xdr/idl/golden_values.hpp"

#include <cstdio>
#include <iostream>
#include <string>

namespace {

using namespace golden;
using Bytes = std::vector<std::byte>;

void print(const char *type, const Bytes &bytes) {
  std::printf("%s ", type);
  for (auto each : bytes) std::printf("%02x", std::to_integer<unsigned>(each));
  std::putchar('\n');
}

Bytes from_hex(const std::string &text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

template <class T> void print_value(const char *type, unsigned seed) {
  Filler filler(seed);
  T value;
  filler(value);
  if (filler.failed) return;
  if (const auto bytes = xdr::encode_checked(value); bytes.ok()) print(type, *bytes);
}

template <class T> bool judge_one(const char *type, const std::string &wanted, const Bytes &bytes) {
  if (wanted != type) return false;
  if (const auto value = xdr::decode<T>(bytes); value.ok())
    print(type, xdr::encode(*value));
  else
    std::puts("refused");
  return true;
}

void print_values(unsigned count) {
  for (unsigned seed = 1; seed <= count; ++seed) {
    print_value<everything>("everything", seed);
    print_value<node>("node", seed);
    print_value<tree>("tree", seed);
    print_value<holder>("holder", seed);
    print_value<numbers>("numbers", seed);
    print_value<aliases>("aliases", seed);
    print_value<rest>("rest", seed);
  }
}

void judge() {
  std::string type, text;
  for (std::string line; std::getline(std::cin, line);) {
    const auto space = line.find(' ');
    type = line.substr(0, space);
    const auto bytes = from_hex(line.substr(space + 1));
    const bool known = judge_one<everything>("everything", type, bytes) || judge_one<node>("node", type, bytes) ||
                       judge_one<tree>("tree", type, bytes) || judge_one<holder>("holder", type, bytes) ||
                       judge_one<numbers>("numbers", type, bytes) || judge_one<aliases>("aliases", type, bytes) ||
                       judge_one<rest>("rest", type, bytes);
    if (!known) std::puts("unknown");
  }
}

}  // namespace

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "values" && argc == 3) return print_values(static_cast<unsigned>(std::stoul(argv[2]))), 0;
  if (what == "judge" && argc == 2) return judge(), 0;
  return 2;
}
