// SPDX-License-Identifier: BSD-3-Clause
// Calls roots.x: one result, one error that the service tells, one deadline that passes.
//
//   $ build/rpc_server_cpp &
//   $ build/rpc_client_cpp
//   the root of 2 is 1.414
//   refused: no root of a negative number: take its absolute
//   the root of 1 is 1.000
//   no answer within 100 ms
//   $ kill %1; rm rpc.contact
#include <nssi/discovery.hpp>
#include <roots_rpc.hpp>

#include <cmath>
#include <cstdio>

using namespace std::chrono_literals;
using nessie::Deadline;

int fail(const nssi::Error &error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; }

/// Prints the root of a number, or of its absolute if the service refuses it.
nssi::Status print_root(roots::ROOTS::ONE::Client &service, double number) {
  const auto root = service.ROOT(number, 0);
  if (root) return std::printf("the root of %g is %.3f\n", number, *root), nssi::Status();
  if (root.error().code != nssi::Code::kInvalidArgument) return root.error();
  std::printf("refused: %s\n", root.error().message.c_str());
  return print_root(service, std::abs(number));
}

int main() {
  nssi::RuntimeOptions only_calls;
  only_calls.endpoint.listen = false;
  auto runtime = nssi::Runtime::open(std::move(only_calls));
  if (!runtime) return fail(runtime.error());
  auto peer = nssi::connect_to(**runtime, "file:rpc.contact", Deadline::in(10s));
  if (!peer) return fail(peer.error());
  roots::ROOTS::ONE::Client service(**runtime, *peer);

  for (double number : {2.0, -1.0})
    if (auto status = print_root(service, number); !status.ok()) return fail(status.error());
  nssi::CallOptions impatient;
  impatient.deadline = Deadline::in(100ms);  // 30 s if none is given
  auto late = service.ROOT(3, 10'000, impatient);
  if (late || late.error().code != nssi::Code::kTimedOut) return 1;
  std::printf("no answer within 100 ms\n");
}
