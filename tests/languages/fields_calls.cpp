// SPDX-License-Identifier: BSD-3-Clause
#include "fields_calls.hpp"

#include "fields_rpc.hpp"

#include <chrono>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace fields_peer {
namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Result;
using nssi::CallOptions;
using nssi::OpCode;
using nssi::PeerId;
using nssi::Runtime;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace ONE = fields::FIELDS::ONE;
namespace TWO = fields::FIELDS::TWO;

int faults = 0;

void fault(const char *what, const std::string &why) {
  ++faults;
  std::printf("%s: %s\n", what, why.c_str());
}

void expect(bool is_so, const char *what) {
  if (!is_so) fault(what, "not so");
}

template <class Outcome> void expect_code(const Outcome &outcome, Code code, const char *what) {
  if (outcome.code() == code) return;
  fault(what, outcome.ok() ? "it is taken for right" : outcome.error().to_string());
}

template <class Outcome> void expect_ok(const Outcome &outcome, const char *what) {
  expect_code(outcome, Code::kOk, what);
}

template <class T> void expect_equal(const Result<T> &got, const std::type_identity_t<T> &wanted, const char *what) {
  if (!got.ok()) return fault(what, got.error().to_string());
  expect(*got == wanted, what);
}

CallOptions within(milliseconds time) {
  CallOptions options;
  options.deadline = Deadline::in(time);
  return options;
}

// --- values of every kind --------------------------------------------------------------------------------------------

void check_numbers(ONE::Client &service) {
  expect_ok(service.NOTHING(), "nothing");
  expect_equal(service.ADD(-3, 5'000'000'000), 4'999'999'997, "a sum");
  expect_equal(service.BLEND({1, 2, 3, 4}, 0.5F), {0.5, 1, 1.5, 2}, "four weights");
  expect_equal(service.HALF({}), {}, "half of nothing");
  expect_equal(service.HALF(42), 21, "half of 42");
}

void check_texts(ONE::Client &service) {
  expect_equal(service.GREET("world", std::string("flame 7")), "hello world, flame 7", "a greeting");
  expect_equal(service.GREET("", std::string()), "hello , ", "an empty greeting");
  const std::vector<fields::title> titles{std::string("x"), std::string("yy"), std::string("zzz")};
  using enum fields::axis;
  expect_equal(service.PICK(titles, std::vector{ALONG_Z, ALONG_Z, ALONG_X}),
               std::vector<fields::title>{titles[2], titles[2], titles[0]}, "three titles");
  for (const std::size_t size_bytes : {0, 1, 3, 4096, 300'001}) {  // the last is more than a message holds
    fields::octets bytes(size_bytes);
    for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>(i * 131 + (i >> 8) * 7);
    expect_equal(service.ECHO(bytes), bytes, "bytes");
  }
}

void check_structs(ONE::Client &service) {
  const fields::stamp stamp{std::string("s"), 7, true, fields::axis::ALONG_Y};
  expect_equal(service.FIND(stamp, true), {true, stamp}, "an arm");
  expect_equal(service.FIND(stamp, false), {false, std::monostate()}, "no arm");
  fields::history history(1000), shifted;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const auto x = static_cast<double>(i);
    history[i] = {x, -x, x};
    shifted.push_back({x, 0.5 - x, x + 0.5});
  }
  expect_equal(service.SHIFT(history, 0.5), shifted, "a thousand structs");
  expect_equal(service.SHIFT({}, 0.5), {}, "no structs");
}

using Places = std::vector<std::string>;

fields::route route_of(std::span<const std::string> places) {
  fields::route route;
  if (places.empty()) return route;
  auto &first = route.emplace();
  first.place = places[0];
  first.next = route_of(places.subspan(1));
  return route;
}

Result<Places> reversed(ONE::Client &service, const Places &places) {
  auto back = service.REVERSE(route_of(places));
  if (!back.ok()) return back.error();
  Places made;
  for (const auto *stop = back->get(); stop != nullptr; stop = stop->next.get()) made.push_back(stop->place);
  return made;
}

void check_lists(ONE::Client &service) {
  expect_equal(reversed(service, {"here", "there", "home"}), {"home", "there", "here"}, "three stops");
  expect_equal(reversed(service, {}), {}, "no stops");
  const fields::tree tree{0, {{1, {}}, {2, {{3, {}}}}}};
  expect_equal(service.MIRROR(tree), {0, {{2, {{3, {}}}}, {1, {}}}}, "a tree, mirrored");
}

// --- bulk data -------------------------------------------------------------------------------------------------------

void check_bulk_in(ONE::Client &service, const nnti::RegisteredBuffer &buffer) {
  const std::span field(reinterpret_cast<double *>(buffer.bytes().data()), buffer.bytes().size() / sizeof(double));
  const auto size = static_cast<double>(field.size());
  expect_ok(service.RAMP(fields::axis::ALONG_Z, buffer), "a ramp");
  expect(field.front() == 3 && field.back() == 3 * size, "its numbers");
  expect_ok(service.SCALE(0.5, buffer), "half of it");
  expect(field.front() == 1.5 && field.back() == 1.5 * size, "its halves");
  expect_equal(service.MEASURE(buffer), {std::accumulate(field.begin(), field.end(), 0.0), 1.5, 1.5 * size}, "moments");
}

void check_bulk(Runtime &runtime, ONE::Client &service) {
  std::vector<double> field(100'000);
  const auto lent = runtime.register_memory(std::as_writable_bytes(std::span(field)), nnti::Rights::kReadWrite);
  expect_ok(lent, "memory of the caller's");
  if (lent.ok()) check_bulk_in(service, *lent);
  const auto made = runtime.allocate(80, nnti::Rights::kReadWrite);
  expect_ok(made, "memory of the runtime's");
  if (made.ok()) check_bulk_in(service, *made);
}

void check_bulk_that_is_not_lent(Runtime &runtime, ONE::Client &service) {
  expect_code(service.MEASURE({}), Code::kInvalidArgument, "a buffer that is not registered");
  const auto buffer = runtime.allocate(80, nnti::Rights::kRemoteWrite);
  expect_ok(buffer, "memory to write to");
  if (buffer.ok()) expect_code(service.MEASURE(*buffer), Code::kInvalidArgument, "a buffer without the right");
  const auto read = runtime.allocate(80, nnti::Rights::kRemoteRead);
  expect_ok(read, "memory to read from");
  if (read.ok()) expect_code(service.RAMP(fields::axis::ALONG_X, *read), Code::kInvalidArgument, "the other right");
}

// --- errors, time, versions ------------------------------------------------------------------------------------------

void check_errors(ONE::Client &service) {
  const auto refused = service.REFUSE(28);
  expect_code(refused, Code::kIo, "the code of an error");
  if (!refused.ok()) {
    expect(refused.error().cause == 28, "its cause");
    expect(refused.error().scope == nessie::Scope::kService, "its scope");
    expect(refused.error().message == "No space left on device: free some", "its sentence");
  }
  expect_code(service.REPEAT(std::string("four"), 6), Code::kInternal, "a result beyond its bound");
  expect_equal(service.REPEAT(std::string("four"), 5), std::string("fourfourfourfourfour"), "a result within it");
  expect_code(service.REPEAT(std::string(21, 'x'), 1), Code::kInvalidArgument, "an argument beyond its bound");
  const std::vector axes{fields::axis(7)};
  expect_code(service.PICK({}, axes), Code::kInvalidArgument, "an enum without a name");
}

/// Arguments that are none are refused, and do no harm.
void check_nonsense(Runtime &runtime, ONE::Client &service) {
  constexpr OpCode kOps[] = {ONE::GREET,  ONE::BLEND, ONE::FIND, ONE::REVERSE,
                             ONE::MIRROR, ONE::HALF,  ONE::ECHO, ONE::SHIFT};
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    nssi::Bytes bytes(i < 8 ? static_cast<std::size_t>(i) : random() % 12 * 4);
    for (auto &each : bytes) each = static_cast<std::byte>(random() % 4 == 0 ? random() % 3 : 0);
    const auto status = runtime.call(service.service(), i < 8 ? ONE::ADD : kOps[random() % 8], bytes).wait();
    if (status.code() == Code::kBadMessage)
      ++refused;
    else
      expect_ok(status, "arguments that may be anything");
  }
  expect(refused > 250, "a part of them is refused");
  expect_equal(service.ADD(1, 1), 2, "a sum after that");
}

void check_deadlines(ONE::Client &service) {
  expect_code(service.REST(60'000, within(milliseconds(20))), Code::kTimedOut, "a deadline");
  expect_equal(service.REST(50), 50, "a call that has rested");
  auto call = service.REST_async(60'000);
  expect_code(call.wait(Deadline::in(milliseconds(0))), Code::kTimedOut, "a call that goes on");
  expect(!call.test(), "it is not over");
}

void check_many(Runtime &runtime, ONE::Client &service) {
  std::vector<nssi::Future<std::int64_t>> sums;
  std::vector<nssi::Future<std::int32_t>> rests;
  for (int i = 0; i < 50; ++i) {
    rests.push_back(service.REST_async(static_cast<std::uint32_t>(i % 7)));
    sums.push_back(service.ADD_async(i, static_cast<std::uint64_t>(i)));
  }
  for (int i = 0; i < 50; ++i) {
    expect_equal(sums[static_cast<std::size_t>(i)].wait(), 2 * i, "a sum of many");
    expect_equal(rests[static_cast<std::size_t>(i)].wait(), i % 7, "a rest of many");
  }
  nssi::Call calls[2];
  calls[0] = runtime.call(service.service(), ONE::REST, nssi::Bytes{{}, {}, std::byte{0xea}, std::byte{0x60}});
  calls[1] = runtime.call(service.service(), ONE::NOTHING, {});
  const auto first = nssi::wait_any(calls, Deadline::in(seconds(20)));
  expect(first.ok() && *first == 1, "the short one is the first");
}

void check_versions(Runtime &runtime, PeerId peer) {
  expect_equal(TWO::Client(runtime, peer, 5).ADD(1, 2, 3), 6, "a sum of three");
  expect_code(TWO::Client(runtime, peer).ADD(1, 2, 3), Code::kNotFound, "another provider");
  const auto call = [&](std::uint32_t version, OpCode op) {
    return runtime.call({peer, {fields::FIELDS::kProgram, version}, 0}, op, {}).wait();
  };
  expect_code(call(9, ONE::NOTHING), Code::kUnsupported, "another version");
  expect_code(call(1, 999), Code::kNotFound, "another operation");
}

}  // namespace

int check_all(Runtime &runtime, PeerId peer) {
  ONE::Client service(runtime, peer);
  check_numbers(service);
  check_texts(service);
  check_structs(service);
  check_lists(service);
  check_bulk(runtime, service);
  check_bulk_that_is_not_lent(runtime, service);
  check_errors(service);
  check_nonsense(runtime, service);
  check_deadlines(service);
  check_many(runtime, service);
  check_versions(runtime, peer);
  return faults;
}

}  // namespace fields_peer
