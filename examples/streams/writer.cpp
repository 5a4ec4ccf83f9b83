// SPDX-License-Identifier: BSD-3-Clause
// Writes a stream: in each step an array, of which its readers, in any language, take what they want. See reader.cpp.
#include <nessie/streams.hpp>

#include <cstdio>

using namespace nessie::streams;
using namespace std::chrono_literals;
using nessie::Deadline;
using nessie::Status;

constexpr std::int64_t kNy = 48, kNx = 64;

Status write_step(Writer &out) {
  auto began = out.begin_step(Deadline::in(60s));  // waits until the servers have room
  if (!began) return began.error();
  auto memory = out.span("T", whole({kNy, kNx}));  // computed where servers on this node keep it
  if (!memory) return memory.error();
  auto *field = static_cast<double *>(*memory);
  for (std::int64_t y = 0; y < kNy; ++y)
    for (std::int64_t x = 0; x < kNx; ++x)
      field[y * kNx + x] =
          100.0 * static_cast<double>(out.step()) + static_cast<double>(y) + 0.01 * static_cast<double>(x);
  return out.end_step(Deadline::in(60s));
}

int fail(const nessie::Error &error) { return std::fprintf(stderr, "%s\n", error.to_string().c_str()), 1; }

int main() {
  auto out = Writer::open("flow", {}, Deadline::in(30s));
  if (!out) return fail(out.error());
  Status status = out->define({.name = "T", .type = Type::kDouble, .shape = {kNy, kNx}, .fill = {}});
  if (status)
    status = out->set_attribute({.variable = "T", .name = "units", .type = Type::kChar, .value = {std::byte{'K'}}});
  for (int step = 0; step < 3 && status; ++step) status = write_step(*out);
  if (status) status = out->close(Deadline::in(30s));
  return status ? 0 : fail(status.error());
}
