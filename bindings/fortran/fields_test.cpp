// SPDX-License-Identifier: BSD-3-Clause
// fields.x: clients and servers in Fortran and C++ in front of each other, each in a process of its own.
#include "fields_rpc.hpp"

#include <gtest/gtest.h>

#include <nssi/testing.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace ONE = fields::FIELDS::ONE;
namespace TWO = fields::FIELDS::TWO;

std::vector<double> pull(Request &request, Status &status) {
  std::vector<double> field(request.data_bytes() / sizeof(double));
  status = request.get_data(std::as_writable_bytes(std::span(field)));
  return field;
}

/// As fields_service.f90 does it.
class Fields final : public ONE::Server {
 public:
  explicit Fields(Runtime &runtime) : runtime_(runtime) {}
  Outcome<void> NOTHING(Request &) override { return {}; }
  Outcome<std::int64_t> ADD(Request &, std::int32_t a, std::uint64_t b) override {
    return a + static_cast<std::int64_t>(b);
  }
  Outcome<fields::moments> MEASURE(Request &request) override {
    Status status;
    const auto field = pull(request, status);
    if (!status.ok()) return status.error();
    const auto [least, greatest] = std::ranges::minmax(field);
    return fields::moments{std::accumulate(field.begin(), field.end(), 0.0), least, greatest};
  }
  Outcome<void> SCALE(Request &request, double factor) override {
    Status status;
    auto field = pull(request, status);
    if (!status.ok()) return status;
    for (auto &each : field) each *= factor;
    return request.put_data(std::as_bytes(std::span(field)));
  }
  Outcome<void> RAMP(Request &request, const fields::axis &along) override {
    std::vector<double> field(request.data_bytes() / sizeof(double));
    for (std::size_t i = 0; i < field.size(); ++i)
      field[i] = static_cast<double>((i + 1) * static_cast<unsigned>(along));
    return request.put_data(std::as_bytes(std::span(field)));
  }
  Outcome<std::string> GREET(Request &, const std::string &name, const fields::title &title) override {
    return "hello " + name + ", " + title;
  }
  Outcome<fields::weights> BLEND(Request &, const fields::weights &weights, float factor) override {
    auto made = weights;
    for (auto &each : made) each *= static_cast<double>(factor);
    return made;
  }
  Outcome<fields::found> FIND(Request &, const fields::stamp &stamp, bool is_here) override {
    fields::found found;
    found.select(is_here);
    if (auto *what = found.what()) *what = stamp;
    return found;
  }
  Outcome<fields::route> REVERSE(Request &, const fields::route &route) override {
    fields::route made;
    for (const auto *stop = route.get(); stop != nullptr; stop = stop->next.get()) {
      auto rest = std::move(made);
      made = fields::route();
      auto &first = made.emplace();
      first.place = stop->place;
      first.next = std::move(rest);
    }
    return made;
  }
  Outcome<fields::tree> MIRROR(Request &, const fields::tree &tree) override {
    auto made = tree;
    turn(made);
    return made;
  }
  Outcome<fields::maybe> HALF(Request &, const fields::maybe &number) override {
    return number ? fields::maybe(*number / 2) : fields::maybe();
  }
  Outcome<fields::octets> ECHO(Request &, const fields::octets &octets) override { return octets; }
  Outcome<fields::titles> PICK(Request &, const fields::titles &titles, const fields::axes &axes) override {
    fields::titles made;
    for (const auto axis : axes) made.push_back(titles.at(static_cast<std::size_t>(axis) - 1));
    return made;
  }
  Outcome<fields::history> SHIFT(Request &, const fields::history &history, double by) override {
    auto made = history;
    for (auto &each : made) each.least += by, each.greatest += by;
    return made;
  }
  Outcome<std::int32_t> REST(Request &, std::uint32_t time_ms) override {
    runtime_.sleep_until(Deadline::in(milliseconds(time_ms)));
    return static_cast<std::int32_t>(time_ms);
  }
  Outcome<std::int32_t> REFUSE(Request &, std::int32_t cause) override {
    return Error{Code::kIo, "No space left on device: free some", nessie::Scope::kService, cause};
  }
  Outcome<fields::title> REPEAT(Request &, const fields::title &title, std::int32_t times) override {
    fields::title made;
    for (std::int32_t i = 0; i < times; ++i) made += title;
    return made;
  }

 private:
  static void turn(fields::tree &tree) {
    std::ranges::reverse(tree.children);
    for (auto &child : tree.children) turn(child);
  }
  Runtime &runtime_;
};

class Second final : public TWO::Server {
 public:
  Outcome<std::int32_t> ADD(Request &, std::int32_t a, std::int32_t b, std::int32_t c) override { return a + b + c; }
};

class FortranFields : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << "this machine has no transport " << GetParam();
  }
  std::unique_ptr<Process> peer(const std::string &task, const std::string &url = {}) const {
    std::vector<std::string> words{FIELDS_PEER, task, GetParam()};
    if (!url.empty()) words.push_back(url);
    return std::make_unique<Process>(std::move(words));
  }
  /// Of a client in Fortran: all that it says.
  void expect_that_all_is_well(const std::string &url) const {
    const auto client = peer("call", url);
    for (auto line = client->line(); line != "0 faults"; line = client->line()) {
      ASSERT_FALSE(line.empty()) << "the client ended early";
      EXPECT_EQ(line.find(" faults"), line.npos) << line;
      if (line.find(" faults") != line.npos) return;
      ADD_FAILURE() << line;
    }
  }
};

TEST_P(FortranFields, AClientInFortran_UsesAServerInCpp) {
  auto runtime = open_runtime(options_for(GetParam(), true));
  Fields fields(*runtime);
  Second second;
  ASSERT_TRUE(fields.add_to(*runtime).ok() && second.add_to(*runtime, 5).ok());
  std::thread thread([&] { runtime->run(); });
  expect_that_all_is_well(runtime->url());
  runtime->stop();
  thread.join();
  runtime.reset();  // before what serves it
}

TEST_P(FortranFields, AClientInFortran_UsesAServerInFortran) {
  const auto server = peer("serve");
  const auto url = server->line();
  ASSERT_FALSE(url.empty());
  expect_that_all_is_well(url);
}

TEST_P(FortranFields, AClientInCpp_UsesAServerInFortran) {
  const auto server = peer("serve");
  const auto runtime = open_runtime(options_for(GetParam(), false));
  const auto connected = runtime->connect(server->line(), Deadline::in(seconds(20)));
  ASSERT_TRUE(connected.ok()) << connected.error().message;
  ONE::Client fields(*runtime, *connected);
  EXPECT_TRUE(fields.NOTHING().ok());
  EXPECT_EQ(*fields.ADD(-3, 5'000'000'000), 4'999'999'997);
  EXPECT_EQ(*fields.GREET("world", std::string("flame")), "hello world, flame");
  EXPECT_EQ(*fields.BLEND({1, 2, 3, 4}, 0.5F), (fields::weights{0.5, 1, 1.5, 2}));
  const fields::stamp stamp{std::string("s"), 7, true, fields::axis::ALONG_Y};
  EXPECT_EQ(*fields.FIND(stamp, true)->what(), stamp);
  EXPECT_EQ(fields.FIND(stamp, false)->what(), nullptr);
  EXPECT_EQ(*fields.HALF(42), 21);
  EXPECT_FALSE(fields.HALF({})->has_value());
  EXPECT_EQ(*fields.ECHO(pattern(300'001)), pattern(300'001));
  EXPECT_EQ(
      (*fields.PICK(fields::titles{std::string("x"), std::string("yy")}, std::vector{fields::axis::ALONG_Y})).at(0),
      std::string("yy"));
  EXPECT_EQ(*fields.SHIFT(fields::history(1000, {1, 2, 3}), 0.5), fields::history(1000, {1, 2.5, 3.5}));
  EXPECT_EQ(*TWO::Client(*runtime, *connected, 5).ADD(1, 2, 3), 6);
}

TEST_P(FortranFields, BulkData_IsTheSameInBothLanguages) {
  const auto server = peer("serve");
  const auto runtime = open_runtime(options_for(GetParam(), false));
  const auto connected = runtime->connect(server->line(), Deadline::in(seconds(20)));
  ASSERT_TRUE(connected.ok()) << connected.error().message;
  ONE::Client fields(*runtime, *connected);
  std::vector<double> field(100'000);
  auto buffer = runtime->register_memory(std::as_writable_bytes(std::span(field)), nnti::Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(fields.RAMP(fields::axis::ALONG_Z, *buffer).ok());
  EXPECT_EQ(field[0], 3);
  EXPECT_EQ(field[99'999], 300'000);
  ASSERT_TRUE(fields.SCALE(0.5, *buffer).ok());
  EXPECT_EQ(field[99'999], 150'000);
  EXPECT_EQ(*fields.MEASURE(*buffer),
            (fields::moments{std::accumulate(field.begin(), field.end(), 0.0), 1.5, 150'000}));
}

TEST_P(FortranFields, Errors_AreThoseOfTheServer) {
  const auto server = peer("serve");
  const auto runtime = open_runtime(options_for(GetParam(), false));
  const auto connected = runtime->connect(server->line(), Deadline::in(seconds(20)));
  ASSERT_TRUE(connected.ok()) << connected.error().message;
  ONE::Client fields(*runtime, *connected);
  const auto refused = fields.REFUSE(28);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kIo);
  EXPECT_EQ(refused.error().cause, 28);
  EXPECT_EQ(refused.error().scope, nessie::Scope::kService);
  EXPECT_NE(refused.error().message.find("No space left on device"), std::string::npos);
  EXPECT_EQ(fields.REPEAT(std::string("four"), 6).code(), Code::kInternal) << "a result beyond its bound";
  CallOptions soon;
  soon.deadline = Deadline::in(milliseconds(20));
  EXPECT_EQ(fields.REST(60'000, soon).code(), Code::kTimedOut);
  for (std::size_t size : {0u, 1u, 5u, 13u, 1000u}) {
    auto call = runtime->call(fields.service(), ONE::ADD, Bytes(size, std::byte{1}));
    EXPECT_EQ(call.wait().code(), Code::kBadMessage) << size;
  }
  EXPECT_EQ(*fields.ADD(1, 1), 2);
}

TEST_P(FortranFields, ArgumentsThatMayBeAnything_AreServedOrRefused) {
  const auto server = peer("serve");
  const auto runtime = open_runtime(options_for(GetParam(), false));
  const auto connected = runtime->connect(server->line(), Deadline::in(seconds(20)));
  ASSERT_TRUE(connected.ok()) << connected.error().message;
  ONE::Client fields(*runtime, *connected);
  std::mt19937 random(1);
  constexpr OpCode kOps[] = {ONE::GREET,  ONE::BLEND, ONE::FIND, ONE::REVERSE,
                             ONE::MIRROR, ONE::HALF,  ONE::ECHO, ONE::SHIFT};
  unsigned refused = 0;
  for (int i = 0; i < 4000; ++i) {
    Bytes bytes(random() % 12 * 4);
    for (auto &each : bytes) each = static_cast<std::byte>(random() % 4 == 0 ? random() % 3 : 0);
    const auto code = runtime->call(fields.service(), kOps[random() % std::size(kOps)], bytes).wait().code();
    ASSERT_TRUE(code == Code::kOk || code == Code::kBadMessage) << static_cast<int>(code);
    if (code == Code::kBadMessage) ++refused;
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_EQ(*fields.ADD(1, 1), 2);
}

INSTANTIATE_TEST_SUITE_P(Over, FortranFields, ::testing::Values("shm", "ofi"),
                         [](const auto &info) { return info.param; });

}  // namespace
}  // namespace nssi::testing
