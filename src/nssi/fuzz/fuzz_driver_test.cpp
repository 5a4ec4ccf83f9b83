// SPDX-License-Identifier: BSD-3-Clause
// Runs a fuzz target over a corpus that is the same in every run: the seeds, and what mutations make of them.
#include <gtest/gtest.h>

#include <nssi/fuzz/fuzz.hpp>

#include <random>

namespace {

using Input = std::vector<std::byte>;
constexpr int kMutants = 50000;

void run(const Input &input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(input.data()), input.size());
}

Input mutate(Input input, std::mt19937_64 &random) {
  for (auto edits = 1 + random() % 4; edits != 0; --edits) {
    const auto at = input.empty() ? 0 : random() % input.size();
    switch (random() % 5) {
      case 0: input.resize(at); break;
      case 1: input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), std::byte(random())); break;
      case 2: input.push_back(std::byte{0}); break;
      default:
        if (!input.empty()) input[at] = random() % 2 != 0 ? std::byte(random()) : std::byte{0xff};
    }
  }
  return input;
}

TEST(Decoder, SurvivesEveryMutantOfItsSeeds) {
  std::mt19937_64 random(4);
  const auto seeds = nssi::fuzz::seeds();
  for (const auto &seed : seeds) run(seed);
  for (int i = 0; i < kMutants; ++i) run(mutate(seeds[random() % seeds.size()], random));
}

TEST(Decoder, SurvivesEveryPrefixOfItsSeeds) {
  for (const auto &seed : nssi::fuzz::seeds())
    for (std::size_t size = 0; size <= seed.size(); ++size)
      run(Input(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(size)));
}

}  // namespace
