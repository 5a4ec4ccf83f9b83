// SPDX-License-Identifier: BSD-3-Clause
// nessie-idl FILE.x --out DIRECTORY: `nessie idl` for our own build, which cannot wait for the whole command.
#include "xdr/idl/command.hpp"

#include <cstdio>
#include <string_view>

int main(int argc, char **argv) {
  if (argc == 4 && std::string_view(argv[2]) == "--out") return xdr::idl::compile({{argv[1]}, argv[3], {}});
  std::fputs("usage: nessie-idl FILE.x --out DIRECTORY\n", stderr);
  return 2;
}
