// SPDX-License-Identifier: BSD-3-Clause
// A fuzzer begins with its target's well-formed inputs: they are put into the folders of inputs that libFuzzer is
// given.
#include "base/testing/fuzz.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace {

void put_seeds(const std::filesystem::path &folder) {
  int number = 0;
  for (const auto &seed : nessie::fuzz::seeds()) {
    std::ofstream file(folder / ("seed." + std::to_string(number++)), std::ios::binary);
    file.write(reinterpret_cast<const char *>(seed.data()), static_cast<std::streamsize>(seed.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  if (!nessie::fuzz::seeds) return 0;
  for (const std::string word : std::span(*argv, static_cast<std::size_t>(*argc)).subspan(1))
    if (std::filesystem::is_directory(word)) put_seeds(word);
  return 0;
}
