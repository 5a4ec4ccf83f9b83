// SPDX-License-Identifier: BSD-3-Clause
// Serves arrays.x until it is killed. The array may be larger than this process's memory: it is pulled and pushed a
// piece at a time. client.cpp has the commands.
#include <arrays_rpc.hpp>
#include <nssi/discovery.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

using namespace std::chrono_literals;

constexpr std::uint64_t kPiece = 65536;  // elements

struct Arrays final : arrays::ARRAYS::ONE::Server {
  nssi::Outcome<double> SCALE(nssi::Request &request, double factor) override {
    std::vector<double> memory(kPiece);
    const auto count = request.data_bytes() / sizeof(double);
    double sum = 0;
    for (std::uint64_t at = 0; at < count; at += kPiece) {
      const auto piece = std::span(memory).first(std::min(count - at, kPiece));
      auto status = request.get_data(std::as_writable_bytes(piece), at * sizeof(double));
      if (!status.ok()) return status.error();
      for (double &element : piece) element *= factor;
      sum = std::accumulate(piece.begin(), piece.end(), sum);
      status = request.put_data(std::as_bytes(piece), at * sizeof(double));
      if (!status.ok()) return status.error();
    }
    return sum;
  }
};

int fail(const nssi::Error &error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; }

int main() {
  Arrays service;  // before the runtime, because it outlives it
  auto runtime = nssi::Runtime::open({});
  if (!runtime) return fail(runtime.error());
  if (auto status = service.add_to(**runtime); !status.ok()) return fail(status.error());
  const auto announced = nssi::announce(**runtime, "file:bulk.contact", {}, nessie::Deadline::in(10s));
  if (!announced) return fail(announced.error());
  (*runtime)->run();
}
