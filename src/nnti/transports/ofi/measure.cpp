// SPDX-License-Identifier: BSD-3-Clause
// What it costs to register memory, beside what the cache takes for a registration that it has: the figures of
// README.md.
//   nnti_ofi_measure [repetitions]
// A line for each provider that this machine has and each size; medians, in microseconds. "pinned" is what the kernel
// takes to pin the same pages for a device (io_uring's fixed buffers), which any adapter's driver has to do as well.
#include "nnti/registration_cache/witness_test.hpp"
#include "nnti/transports/ofi/fabric.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace nnti;
using namespace nnti::ofi;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};

/// The median of so many calls, in microseconds; empty if one fails.
template <class Call> std::optional<double> median_of(int repetitions, Call call) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = Clock::now();
    if (!call()) return std::nullopt;
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[static_cast<std::size_t>(repetitions) / 2];
}

std::string text_of(std::optional<double> time) { return time ? fmt::format("{:10.3f}", *time) : "         -"; }

std::span<std::byte> touched_memory(std::vector<std::byte> &memory, std::size_t size_bytes) {
  std::fill(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(size_bytes), std::byte{1});
  return std::span(memory).first(size_bytes);
}

bool measure(const char *provider, int repetitions, test::Witness *pinning) {
  nessie::Config config;
  config.set("nnti.ofi.provider", provider);
  config.set("nnti.ofi.mr_local", "on");
  auto fabric = Fabric::open(config);
  if (!fabric.ok()) {
    fmt::print("{:12} {}\n", provider, fabric.error().message);
    return true;
  }
  std::vector<std::byte> all(kSizes[std::size(kSizes) - 1]);
  bool good = true;
  for (const auto size : kSizes) {
    const auto memory = touched_memory(all, size);
    const auto local =
        median_of(repetitions, [&] { return (*fabric)->register_memory(memory, FI_READ | FI_WRITE).ok(); });
    const auto exposed = median_of(
        repetitions, [&] { return (*fabric)->register_memory(memory, FI_REMOTE_READ | FI_REMOTE_WRITE).ok(); });
    const auto leased =
        median_of(repetitions, [&] { return (*fabric)->cache()->acquire(memory, FI_READ | FI_WRITE).ok(); });
    const auto pinned = median_of(repetitions, [&] {
      return pinning != nullptr &&
             pinning->register_pages(pages_of(reinterpret_cast<std::uintptr_t>(memory.data()), size), 0).ok();
    });
    good = good && local && exposed && leased;
    fmt::print("{:12} {:10} {} {} {} {}\n", (*fabric)->provider(), size, text_of(local), text_of(exposed),
               text_of(leased), text_of(pinned));
  }
  return good;
}

}  // namespace

int main(int argc, char **argv) {
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  std::string reason;
  auto pinning = test::make_pinning_witness(reason, false);
  fmt::print("{:12} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "provider", "bytes", "local", "for peers", "cached",
             "pinned");
  bool good = true;
  for (const char *provider : {"tcp;ofi_rxm", "shm", "verbs;ofi_rxm"})
    good = measure(provider, repetitions, pinning.get()) && good;
  return good ? 0 : 1;
}
