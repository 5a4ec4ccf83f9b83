// SPDX-License-Identifier: BSD-3-Clause
// Counts with the service of job.toml: counter.cpp, beside Nessie's own staging.
//
//   $ nessied --config job.toml --check
//   staging: staging, provider 0
//   counter: counter, provider 0
//   $ nessied --config job.toml > nessied.url &
//   $ build/counter_client_cpp
//   42
//   NOT_FOUND: nobody has counted pears
//   $ kill %1; wait
#include <counter_rpc.hpp>
#include <nssi/discovery.hpp>

#include <cstdio>

using namespace std::chrono_literals;

int fail(const nssi::Error &error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; }

int main() {
  nssi::RuntimeOptions only_calls;
  only_calls.endpoint.listen = false;
  auto runtime = nssi::Runtime::open(std::move(only_calls));
  if (!runtime) return fail(runtime.error());
  auto peer = nssi::connect_to(**runtime, "file:job.contact", nessie::Deadline::in(10s));
  if (!peer) return fail(peer.error());
  counter::COUNTER::ONE::Client counters(**runtime, *peer);  // provider 0; another number would follow

  auto apples = counters.ADD("apples", 2);
  if (!apples) return fail(apples.error());
  std::printf("%lld\n", static_cast<long long>(*apples));
  auto pears = counters.VALUE("pears");
  std::printf("%s\n", pears ? "some pears" : pears.error().to_string().c_str());
}
