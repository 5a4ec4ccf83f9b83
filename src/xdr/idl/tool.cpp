// SPDX-License-Identifier: BSD-3-Clause
// nessie-idl FILE.x --out DIRECTORY [--language L]... [--namespace N]: `nessie idl` for our own build, which cannot
// wait for the whole command.
#include "xdr/idl/command.hpp"

#include <cstdio>
#include <string_view>

namespace {

int usage() {
  std::fputs("usage: nessie-idl FILE.x --out DIRECTORY [--language LANGUAGE]... [--namespace NAME]\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4 || argc % 2 != 0 || std::string_view(argv[2]) != "--out") return usage();
  xdr::idl::Command command{{argv[1]}, argv[3], {}, {}};
  for (int i = 4; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--namespace")
      command.name_space = argv[i + 1];
    else if (option == "--language")
      command.languages.emplace_back(argv[i + 1]);
    else
      return usage();
  }
  if (command.languages.empty()) command.languages = {"cpp"};
  return xdr::idl::compile(command);
}
