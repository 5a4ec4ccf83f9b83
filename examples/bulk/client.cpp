// SPDX-License-Identifier: BSD-3-Clause
// Lends the service of arrays.x an array, which it pulls and pushes as it likes until the call is over.
//
//   $ build/bulk_server_cpp &
//   $ build/bulk_client_cpp
//   1000000 elements, their sum 250000250000.0
//   the first is 0.5, the last 500000.0
//   $ kill %1; rm bulk.contact
#include <arrays_rpc.hpp>
#include <nssi/discovery.hpp>

#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

using namespace std::chrono_literals;

int fail(const nssi::Error &error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; }

int main() {
  nssi::RuntimeOptions only_calls;
  only_calls.endpoint.listen = false;
  auto runtime = nssi::Runtime::open(std::move(only_calls));
  if (!runtime) return fail(runtime.error());
  auto peer = nssi::connect_to(**runtime, "file:bulk.contact", nessie::Deadline::in(10s));
  if (!peer) return fail(peer.error());
  arrays::ARRAYS::ONE::Client service(**runtime, *peer);

  std::vector<double> array(1'000'000);
  std::iota(array.begin(), array.end(), 1.0);
  // Nobody reaches it without the description in the request, nor beyond its bounds, nor against its rights.
  auto lent = (*runtime)->register_memory(std::as_writable_bytes(std::span(array)), nnti::Rights::kReadWrite);
  if (!lent) return fail(lent.error());
  auto sum = service.SCALE(0.5, *lent);
  if (!sum) return fail(sum.error());
  std::printf("%zu elements, their sum %.1f\n", array.size(), *sum);
  std::printf("the first is %.1f, the last %.1f\n", array.front(), array.back());
}
