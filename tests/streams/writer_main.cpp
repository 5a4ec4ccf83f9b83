// SPDX-License-Identifier: BSD-3-Clause
// Writes a stream of which every element says in which step and where it is: what the tests of processes compare with.
//   streams_test_writer NAME STEPS [--append] [--steered] [--grow] [--bytes N] [--leave]
// --steered: a step is written for each line on stdin. --grow: p has one element more in each step. --bytes: of "big",
// which is left out otherwise. --leave: ends without closing the stream, as if it had been killed.
#include <nessie/streams.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace nessie::streams;
using nessie::Deadline;

struct Wanted {
  std::string name;
  std::uint64_t steps = 0, big_bytes = 0;
  bool append = false, steered = false, grow = false, leave = false;
};

Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }

void check(const nessie::Status &status, const char *what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.error().to_string().c_str());
  std::exit(1);
}

template <class T> T check(nessie::Result<T> result, const char *what) {
  check(result.ok() ? nessie::Status() : nessie::Status(result.error()), what);
  return *std::move(result);
}

template <class T> std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

void say_text(Writer &writer, const char *variable, const char *name, const std::string &text) {
  const auto bytes = std::as_bytes(std::span(text));
  check(writer.set_attribute({variable, name, Type::kChar, {bytes.begin(), bytes.end()}}), "set_attribute");
}

template <class T> void put(Writer &writer, const char *name, const Extents &shape, T first) {
  const auto box = whole(shape);
  std::vector<T> values(
      static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  std::iota(values.begin(), values.end(), first);
  check(writer.put(name, box, values.data()), name);
}

/// T and p half, by two puts: what a step has is the same however it was put.
void put_halves(Writer &writer, double first) {
  std::vector<double> values(24);
  std::iota(values.begin(), values.end(), first);
  check(writer.put("T", {{0, 0}, {2, 6}}, values.data()), "T");
  check(writer.put("T", {{2, 0}, {2, 6}}, values.data() + 12), "T");
}

void define(Writer &writer, const Wanted &wanted) {
  check(writer.define({"T", Type::kDouble, {4, 6}, {}, false}), "define");
  check(writer.define({"p", Type::kInt32, {5}, bytes_of(std::int32_t{-9}), false}), "define");
  check(writer.define({"time", Type::kFloat, {}, {}, false}), "define");
  check(writer.define({"x", Type::kDouble, {6}, {}, true}), "define");
  if (wanted.big_bytes > 0)
    check(writer.define({"big", Type::kUint8, {static_cast<std::int64_t>(wanted.big_bytes)}, {}, false}), "define");
  say_text(writer, "T", "units", "K");
  say_text(writer, "T", "dimensions", "y x");
  say_text(writer, "x", "dimensions", "x");
  say_text(writer, "", "title", "a flow");
}

void write_step(Writer &writer, const Wanted &wanted, bool is_first) {
  const auto step = writer.step();
  check(writer.begin_step(soon()).ok() ? nessie::Status() : nessie::Error{nessie::Code::kBusy, "no room"},
        "begin_step");
  const auto count = static_cast<std::int64_t>(wanted.grow ? step + 1 : 5);
  if (wanted.grow) check(writer.define({"p", Type::kInt32, {count}, bytes_of(std::int32_t{-9}), false}), "define");
  put_halves(writer, 100.0 * static_cast<double>(step));
  put(writer, "p", {count}, static_cast<std::int32_t>(10 * step));
  put(writer, "time", {}, static_cast<float>(step) / 2);
  if (is_first || step % 7 == 6) put(writer, "x", {6}, static_cast<double>(step));
  if (wanted.big_bytes > 0)
    put(writer, "big", {static_cast<std::int64_t>(wanted.big_bytes)}, static_cast<std::uint8_t>(step));
  check(writer.end_step(soon()), "end_step");
  std::printf("step %llu\n", static_cast<unsigned long long>(step));
  std::fflush(stdout);
}

Wanted understand(int argc, char **argv) {
  Wanted wanted;
  if (argc < 3) std::exit(2);
  wanted.name = argv[1], wanted.steps = std::strtoull(argv[2], nullptr, 10);
  for (int at = 3; at < argc; ++at) {
    const std::string word = argv[at];
    wanted.append |= word == "--append", wanted.steered |= word == "--steered";
    wanted.grow |= word == "--grow", wanted.leave |= word == "--leave";
    if (word == "--bytes" && at + 1 < argc) wanted.big_bytes = std::strtoull(argv[at + 1], nullptr, 10);
  }
  return wanted;
}

}  // namespace

int main(int argc, char **argv) {
  const auto wanted = understand(argc, argv);
  WriterOptions options;
  options.append = wanted.append;
  auto writer = check(Writer::open(wanted.name, options, soon()), "open");
  define(writer, wanted);
  std::printf("open\n"), std::fflush(stdout);
  std::string line;
  for (std::uint64_t step = 0; step < wanted.steps; ++step) {
    if (wanted.steered && !std::getline(std::cin, line)) break;
    write_step(writer, wanted, step == 0);
  }
  if (wanted.leave) return 0;
  check(writer.close(soon()), "close");
  return 0;
}
