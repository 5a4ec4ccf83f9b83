// SPDX-License-Identifier: BSD-3-Clause
// nessie-idl FILE.x --out DIRECTORY [--language L]...: `nessie idl` for our own build, which cannot wait for the whole
// command.
#include "xdr/idl/command.hpp"

#include <cstdio>
#include <string_view>

namespace {

int usage() {
  std::fputs("usage: nessie-idl FILE.x --out DIRECTORY [--language LANGUAGE]...\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4 || argc % 2 != 0 || std::string_view(argv[2]) != "--out") return usage();
  xdr::idl::Command command{{argv[1]}, argv[3], {}, {}};
  for (int i = 4; i < argc; i += 2) {
    if (std::string_view(argv[i]) != "--language") return usage();
    command.languages.emplace_back(argv[i + 1]);
  }
  if (command.languages.empty()) command.languages = {"cpp"};
  return xdr::idl::compile(command);
}
