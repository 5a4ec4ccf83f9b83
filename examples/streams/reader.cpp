// SPDX-License-Identifier: BSD-3-Clause
// Reads all steps of a stream: of each a box, and what the servers compute of it all.
//
//   $ nessie-streams > streams.url &
//   $ build/streams_writer_cpp &
//   $ build/streams_reader_cpp
//   step 0: the mean of the box is 11.215 K, the maximum of all 47.63 K
//   step 1: the mean of the box is 111.215 K, the maximum of all 147.63 K
//   step 2: the mean of the box is 211.215 K, the maximum of all 247.63 K
//   $ kill %1; wait
#include <nessie/streams.hpp>

#include <array>
#include <cstdio>
#include <numeric>

using namespace nessie::streams;
using namespace std::chrono_literals;
using nessie::Deadline;
using nessie::Status;

Status show_step(Reader &in) {
  std::array<double, 12> box{};
  auto got = in.get("T", {{10, 20}, {3, 4}}, box.data(), sizeof box, Deadline::in(30s));
  if (!got) return got;
  auto figures = in.figures("T", whole(in.find("T")->shape), Deadline::in(30s));
  if (!figures) return figures.error();
  const auto units = static_cast<char>(in.attributes().front().value.front());
  std::printf("step %d: the mean of the box is %.3f %c, the maximum of all %.2f %c\n", static_cast<int>(in.step()),
              std::accumulate(box.begin(), box.end(), 0.0) / 12, units, figures->maximum, units);
  return in.end_step();
}

int fail(const nessie::Error &error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; }

int main() {
  auto in = Reader::open("flow", {}, Deadline::in(30s));
  if (!in) return fail(in.error());
  for (;;) {
    auto state = in->begin_step(Deadline::in(30s));
    if (!state) return fail(state.error());
    if (*state == StepState::kNotYet) return fail({nessie::Code::kTimedOut, "no further step has come"});
    if (*state == StepState::kEnd) break;
    if (auto status = show_step(*in); !status) return fail(status.error());
  }
  auto status = in->close(Deadline::in(30s));
  return status ? 0 : fail(status.error());
}
