// SPDX-License-Identifier: BSD-3-Clause
#include "commands.hpp"

#include "installation.hpp"
#include "speech.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nessie::cli {

int bench(const std::vector<std::string> &arguments) {
  auto program = find_bench_program();
  if (!program) return say_failure("bench", program.error().message);
  auto words = arguments;
  words.insert(words.begin(), *program);
  std::vector<char *> argv;
  for (auto &word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv.front(), argv.data());
  return say_failure("bench", fmt::format("cannot run {}: {}", *program, std::strerror(errno)));
}

}  // namespace nessie::cli
