// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

#include "installation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nessie::cli {

int bench(const std::vector<std::string> &arguments) {
  auto program = find_bench_program();
  if (!program) {
    fmt::print(stderr, "nessie bench: {}\n", program.error().message);
    return 1;
  }
  auto words = arguments;
  words.insert(words.begin(), *program);
  std::vector<char *> argv;
  for (auto &word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv.front(), argv.data());
  fmt::print(stderr, "nessie bench: cannot run {}: {}\n", *program, std::strerror(errno));
  return 1;
}

}  // namespace nessie::cli
