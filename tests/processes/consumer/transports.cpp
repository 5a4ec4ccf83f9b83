// SPDX-License-Identifier: BSD-3-Clause
// Lists the transports of this machine.
#include <nnti/nnti.hpp>
#include <nssi/nssi.hpp>

#include <cstdio>

int main() {
  const auto config = nessie::Config::load();
  if (!config) return 1;
  auto runtime = nssi::Runtime::open({});
  if (!runtime) return 1;
  for (const auto &transport : nnti::Endpoint::survey(*config))
    std::printf("%s%s\n", transport.name.c_str(), transport.available ? " available" : "");
  return 0;
}
