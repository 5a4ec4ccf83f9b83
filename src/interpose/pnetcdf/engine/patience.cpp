// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/patience.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace interpose {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr microseconds kMoment(200), kCrowdedMoment(5);
constexpr microseconds kShortestSleep(5), kLongestSleep(20);

microseconds worth_polling() {
  static const bool crowded = ranks_on_node() > static_cast<int>(std::thread::hardware_concurrency());
  return crowded ? kCrowdedMoment : kMoment;
}

bool all_done(std::span<MPI_Request> requests) {
  int done = 0;
  MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  return done != 0;
}

}  // namespace

int ranks_on_node() {
  for (const char *name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (const char *value = std::getenv(name)) return std::atoi(value);
  return 0;
}

void wait_patiently(std::span<MPI_Request> requests) {
  if (requests.empty()) return;
  const auto end = Clock::now() + worth_polling();
  do {
    if (all_done(requests)) return;
  } while (Clock::now() < end);
  for (auto sleep = kShortestSleep; !all_done(requests); sleep = std::min(2 * sleep, kLongestSleep))
    std::this_thread::sleep_for(sleep);
}

void wait_patiently(MPI_Request &request) { wait_patiently({&request, 1}); }

}  // namespace interpose
