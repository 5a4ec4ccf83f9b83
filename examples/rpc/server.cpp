// SPDX-License-Identifier: BSD-3-Clause
// Serves roots.x until it is killed. client.cpp has the commands.
#include <nssi/discovery.hpp>
#include <roots_rpc.hpp>

#include <cmath>
#include <cstdio>

using namespace std::chrono_literals;
using nessie::Deadline;

struct Roots final : roots::ROOTS::ONE::Server {
  /// Each request has a user-level thread of its own: while this one sleeps, others go on.
  nssi::Outcome<double> ROOT(nssi::Request &request, double number, std::uint32_t after_ms) override {
    if (number < 0) return nssi::Error{nssi::Code::kInvalidArgument, "no root of a negative number: take its absolute"};
    const auto status = request.sleep_until(Deadline::in(std::chrono::milliseconds(after_ms)));
    if (!status.ok()) return status.error();  // nobody waits any more
    return std::sqrt(number);
  }
};

int fail(const nssi::Error &error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; }

int main() {
  Roots service;  // before the runtime, because it outlives it
  auto runtime = nssi::Runtime::open({});
  if (!runtime) return fail(runtime.error());
  if (auto status = service.add_to(**runtime); !status.ok()) return fail(status.error());
  const auto announced = nssi::announce(**runtime, "file:rpc.contact", {}, Deadline::in(10s));
  if (!announced) return fail(announced.error());
  (*runtime)->run();
}
