// SPDX-License-Identifier: BSD-3-Clause
// What every language writes to a stream, and reads of it, in C++. README.md.
#include <nessie/streams.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace nessie::streams;
using nessie::Code;
using nessie::Deadline;

namespace {

constexpr int kSteps = 3;
int faults = 0;

Deadline soon() { return Deadline::in(std::chrono::seconds(30)); }

void expect(bool is_so, const std::string &what, std::int64_t step) {
  if (is_so) return;
  std::printf("step %lld: not so: %s\n", static_cast<long long>(step), what.c_str());
  ++faults;
}

template <class Outcome> auto &&demand(Outcome &&outcome, const std::string &what) {
  if (!outcome.ok()) {
    std::printf("error: %s: %s\n", what.c_str(), outcome.error().to_string().c_str());
    std::exit(1);
  }
  return std::forward<Outcome>(outcome);
}

template <class T> std::vector<std::byte> bytes_of(const std::vector<T> &values) {
  const auto *begin = reinterpret_cast<const std::byte *>(values.data());
  return {begin, begin + values.size() * sizeof(T)};
}

/// Calls use(T{}, type) for each type of numbers.
template <class Use> void for_each_type(Use use) {
  use(std::int8_t{}, Type::kInt8), use(std::int16_t{}, Type::kInt16), use(std::int32_t{}, Type::kInt32);
  use(std::int64_t{}, Type::kInt64), use(std::uint8_t{}, Type::kUint8), use(std::uint16_t{}, Type::kUint16);
  use(std::uint32_t{}, Type::kUint32), use(std::uint64_t{}, Type::kUint64);
  use(float{}, Type::kFloat), use(double{}, Type::kDouble);
}

std::string table_name(Type type) { return std::string("t_") + name_of(type); }

template <class T> std::vector<T> table(Type type, std::int64_t step) {
  std::vector<T> made;
  for (int i = 0; i < 12; ++i) made.push_back(static_cast<T>(20 * step + i + static_cast<int>(type)));
  return made;
}

std::vector<double> grid(std::int64_t step) {
  std::vector<double> made;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 6; ++k) made.push_back(static_cast<double>(1000 * step + 100 * i + 10 * j + k));
  return made;
}

const Extents kTable{3, 4}, kGrid{4, 5, 6}, kNames{2, 6};
const std::string kTexts = "first second";

// --- writing ----------------------------------------------------------------------------------------------------------

void describe(Writer &out) {
  for_each_type([&](auto, Type type) { demand(out.define({table_name(type), type, kTable, {}, false}), "a table"); });
  demand(out.define({"grid", Type::kDouble, kGrid, {}, false}), "grid");
  demand(out.define({"time", Type::kDouble, {}, {}, false}), "time");
  demand(out.define({"names", Type::kChar, kNames, {}, false}), "names");
  demand(out.define({"mask", Type::kInt32, {4}, {}, true}), "mask");
  demand(out.define({"partial", Type::kFloat, {6}, bytes_of(std::vector<float>{-1}), false}), "partial");
  const std::string title = "of every language";
  demand(out.set_attribute({"", "title", Type::kChar, bytes_of(std::vector<char>(title.begin(), title.end()))}),
         "title");
  demand(out.set_attribute({"", "number", Type::kInt32, bytes_of(std::vector<std::int32_t>{42})}), "number");
  demand(out.set_attribute({"grid", "units", Type::kChar, bytes_of(std::vector<char>{'K'})}), "units");
  demand(out.set_attribute({"grid", "range", Type::kDouble, bytes_of(std::vector<double>{0, 3999})}), "range");
}

/// Half of it is computed where it goes, half is lent.
void put_grid(Writer &out, const std::vector<double> &values) {
  auto *memory = *demand(out.span("grid", {{0, 0, 0}, {2, 5, 6}}), "span");
  std::memcpy(memory, values.data(), 60 * sizeof(double));
  demand(out.put_lent("grid", {{2, 0, 0}, {2, 5, 6}}, &values[60]), "lend");
}

void write_step(Writer &out, std::int64_t step) {
  const auto state = *demand(out.begin_step(soon()), "begin a step");
  expect(state == StepState::kOk && out.step() == static_cast<std::uint64_t>(step), "the step's number", step);
  demand(out.define({"growing", Type::kInt64, {step + 1}, {}, false}), "growing");
  const auto values = grid(step);
  for_each_type([&](auto number, Type type) {
    demand(out.put(table_name(type), whole(kTable), table<decltype(number)>(type, step).data()), "a table");
  });
  put_grid(out, values);
  const double time = 0.5 * static_cast<double>(step);
  demand(out.put("time", {}, &time), "time");
  demand(out.put("names", whole(kNames), kTexts.data()), "names");
  if (step == 0) demand(out.put("mask", whole({4}), std::array{1, 2, 3, 4}.data()), "mask");
  demand(out.put("partial", {{2}, {2}}, std::array{7.0F, 8.0F}.data()), "partial");
  demand(out.put("growing", whole({step + 1}), std::array<std::int64_t, 3>{0, 1, 2}.data()), "growing");
  demand(out.end_step(soon()), "end a step");
}

void write_stream(const char *name) {
  auto out = demand(Writer::open(name, {}, soon()), "open for writing");
  describe(*out);
  for (int step = 0; step < kSteps; ++step) write_step(*out, step);
  demand(out->close(soon()), "close");
}

// --- reading ----------------------------------------------------------------------------------------------------------

template <class T> std::vector<T> get(Reader &in, const std::string &name, const Box &box, Order order = Order::kC) {
  std::size_t size = 1;
  for (const auto each : box.count) size *= static_cast<std::size_t>(each);
  std::vector<T> got(size);
  demand(in.get(name, box, got.data(), size * sizeof(T), soon(), order), name);
  return got;
}

void check_description(Reader &in, std::int64_t step) {
  expect(in.variables().size() == 16, "the number of variables", step);
  const auto *described = in.find("grid");
  expect(described != nullptr && *described == Variable{"grid", Type::kDouble, kGrid, {}, false}, "grid", step);
  expect(in.find("growing")->shape == Extents{step + 1}, "the shape that grows", step);
  expect(in.find("partial")->fill == bytes_of(std::vector<float>{-1}), "the fill value", step);
  expect(in.find("nothing") == nullptr, "a variable that is not there", step);
  expect(in.attributes().size() == 4, "the number of attributes", step);
  for (const auto &it : in.attributes())
    if (it.name == "range")
      expect(it.variable == "grid" && it.value == bytes_of(std::vector<double>{0, 3999}), "the range", step);
}

void check_grid(Reader &in, std::int64_t step) {
  const auto wanted = grid(step);
  expect(get<double>(in, "grid", whole(kGrid)) == wanted, "grid", step);
  const Box box{{1, 2, 3}, {2, 2, 2}};
  const auto at = [&](int i, int j, int k) {
    return wanted[static_cast<std::size_t>(30 * (1 + i) + 6 * (2 + j) + 3 + k)];
  };
  const auto in_c = get<double>(in, "grid", box), in_fortran = get<double>(in, "grid", box, Order::kFortran);
  for (int i = 0; i < 8; ++i) {
    expect(in_c[static_cast<std::size_t>(i)] == at(i / 4, i / 2 % 2, i % 2), "a box of grid", step);
    expect(in_fortran[static_cast<std::size_t>(i)] == at(i % 2, i / 2 % 2, i / 4), "it in Fortran's order", step);
  }
  const auto figures = *demand(in.figures("grid", whole(kGrid), soon()), "figures");
  expect(figures.minimum == wanted.front() && figures.maximum == wanted.back() && figures.elements == 120,
         "the figures", step);
  double one = 0;
  expect(in.get("grid", {{4, 0, 0}, {1, 1, 1}}, &one, sizeof one, soon()).code() == Code::kOutOfRange, "a box outside",
         step);
}

void check_others(Reader &in, std::int64_t step) {
  for_each_type([&](auto number, Type type) {
    using T = decltype(number);
    expect(get<T>(in, table_name(type), whole(kTable)) == table<T>(type, step), table_name(type), step);
  });
  expect(get<double>(in, "time", {})[0] == 0.5 * static_cast<double>(step), "time", step);
  const auto texts = get<char>(in, "names", whole(kNames));
  expect(std::string(texts.begin(), texts.end()) == kTexts, "names", step);
  expect(get<std::int32_t>(in, "mask", whole({4})) == std::vector<std::int32_t>{1, 2, 3, 4}, "mask", step);
  expect(get<float>(in, "partial", whole({6})) == std::vector<float>{-1, -1, 7, 8, -1, -1}, "partial", step);
  expect(get<std::int64_t>(in, "growing", whole({step + 1})).back() == step, "growing", step);
}

void read_stream(const char *name) {
  auto in = demand(Reader::open(name, {}, soon()), "open for reading");
  std::int64_t step = 0;
  auto state = StepState::kOk;
  for (;; ++step) {
    state = *demand(in->begin_step(soon()), "begin a step");
    if (state != StepState::kOk) break;
    expect(in->step() == static_cast<std::uint64_t>(step), "the step's number", step);
    check_description(*in, step);
    check_grid(*in, step);
    check_others(*in, step);
    demand(in->end_step(), "end a step");
  }
  expect(state == StepState::kEnd && step == kSteps, "the stream's end", step);
  demand(in->close(soon()), "close");
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: streams_peer_cxx write|read|both NAME\n"), 2;
  if (std::string(argv[1]) != "read") write_stream(argv[2]);
  if (std::string(argv[1]) != "write") read_stream(argv[2]);
  std::printf("%d faults\n", faults);
  return faults != 0 ? 1 : 0;
}
