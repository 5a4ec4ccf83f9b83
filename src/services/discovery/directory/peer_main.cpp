// SPDX-License-Identifier: BSD-3-Clause
// A process of its own for the directory's tests.
//   directory_test_peer WHERE NAME LEASE_MS   announces NAME to the directory at WHERE, says "announced", and drives
//                                             until it is killed
#include <services/discovery/directory/testing.hpp>

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  auto runtime = nssi::Runtime::open(directory::testing::runtime_options("shm", false));
  if (!runtime.ok()) return 1;
  directory::Directory directory(**runtime, argv[1]);
  const auto registration = directory.announce(
      directory::testing::make(argv[2]), std::chrono::milliseconds(std::stoul(argv[3])), directory::testing::soon());
  if (!registration.ok()) return std::fprintf(stderr, "%s\n", registration.error().message.c_str()), 1;
  std::printf("announced\n");
  std::fflush(stdout);
  (*runtime)->run();
}
