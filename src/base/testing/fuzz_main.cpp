// SPDX-License-Identifier: BSD-3-Clause
// Runs a fuzz target over inputs that are the same in every run: its seeds, their beginnings, and what mutations make
// of them. The argument says how many mutants, and beginnings at most.
#include "base/testing/fuzz.hpp"

#include <algorithm>
#include <random>
#include <string>

namespace {

using nessie::fuzz::Bytes;

constexpr std::size_t kMostBytes = 16384, kSlotBytes = 64;

/// As libFuzzer: the pointer is never null.
void run(const Bytes &input) {
  static constexpr std::uint8_t kNothing = 0;
  const auto *data = input.empty() ? &kNothing : reinterpret_cast<const std::uint8_t *>(input.data());
  (void)LLVMFuzzerTestOneInput(data, input.size());
}

void change(std::byte &byte, std::mt19937_64 &random) {
  switch (random() % 4) {
    case 0: byte ^= static_cast<std::byte>(1u << random() % 8); break;
    case 1: byte = static_cast<std::byte>(random() % 2 ? 0xff : 0x80); break;
    default: byte = static_cast<std::byte>(random());
  }
}

/// Changes, removes, adds or repeats a few bytes; more often where headers are in what has slots.
void edit(Bytes &input, std::mt19937_64 &random) {
  auto at = random() % input.size();
  if (random() % 4 == 0) at = std::min(at / kSlotBytes * kSlotBytes + random() % 8, input.size() - 1);
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 10) {
    case 0: input.resize(at); break;
    case 1: input.insert(place, 1 + random() % 16, std::byte{0xff}); break;
    case 2: input.insert(place, static_cast<std::byte>(random())); break;
    case 3: input.erase(place); break;
    case 4: {
      const Bytes rest(place, input.end());
      input.insert(input.end(), rest.begin(), rest.end());
      break;
    }
    default: change(*place, random);
  }
  if (input.size() > kMostBytes) input.resize(kMostBytes);
}

Bytes mutant(Bytes input, std::mt19937_64 &random) {
  for (auto edits = 1 + random() % 4; edits != 0; --edits) {
    if (random() % 8 == 0 || input.empty()) input.push_back(std::byte{0});
    edit(input, random);
  }
  return input;
}

void run_beginnings(const std::vector<Bytes> &seeds, std::size_t most) {
  std::size_t all = 0;
  for (const auto &seed : seeds) all += seed.size() + 1;
  const auto step = 1 + all / most;
  for (const auto &seed : seeds)
    for (std::size_t size = 0; size <= seed.size(); size += step)
      run(Bytes(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(size)));
}

}  // namespace

int main(int, char **argv) {
  const auto mutants = std::stoul(argv[1]);
  const auto seeds = nessie::fuzz::seeds ? nessie::fuzz::seeds() : std::vector<Bytes>{{}, Bytes(256)};
  for (const auto &seed : seeds) run(seed);
  run_beginnings(seeds, mutants);
  std::mt19937_64 random(4);
  for (std::size_t i = 0; i < mutants; ++i) run(mutant(seeds[random() % seeds.size()], random));
  return 0;
}
