// SPDX-License-Identifier: BSD-3-Clause
// What is traced: a call through the services that it passes.
#include <gtest/gtest.h>

#include <nssi/testing/testing.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace nssi::testing {
namespace {

using Json = nlohmann::json;
constexpr OpCode kForward = 600, kForwardInPool = 601;

/// A folder of this test's own.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/nssi_trace_XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string &path() const { return path_; }
  std::string text() const {
    std::string all;
    for (const auto &entry : std::filesystem::directory_iterator(path_)) {
      std::ifstream file(entry.path());
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  /// What Chrome would load: the array, although its end is missing.
  std::vector<Json> spans() const {
    auto text = this->text();
    const auto comma = text.rfind(',');
    if (comma == std::string::npos) return {};
    std::vector<Json> result;
    for (const auto &event : Json::parse(text.substr(0, comma) + "]"))
      if (event["ph"] == "X") result.push_back(event);
    return result;
  }

 private:
  std::string path_;
};

RuntimeOptions traced(const Folder &folder, bool listen, std::string every = "1") {
  auto options = options_for("shm", listen);
  options.endpoint.config.set("nssi.trace", folder.path());
  options.endpoint.config.set("nssi.trace.every", std::move(every));
  return options;
}

/// Hands its calls on to the service at `url`.
class Forwarder {
 public:
  Forwarder(RuntimeOptions options, const std::string &url)
      : service_(std::move(options), [&](Runtime &runtime) {
          next_ = *runtime.connect(url, Deadline::in(std::chrono::seconds(10)));
          for (auto [op, pool] : {std::pair{kForward, ""}, std::pair{kForwardInPool, "pool"}})
            (void)runtime.add_operation({kInterface,
                                         0,
                                         op,
                                         "forward",
                                         HandlerKind::kFiber,
                                         [&](Request &request) {
                                           (void)runtime.call(at(next_), kEcho, {}).wait();
                                           (void)request.reply();
                                         },
                                         {},
                                         false,
                                         pool});
        }) {}
  Runtime &runtime() { return *service_.runtime; }
  void stop() { service_.stop(); }

 private:
  PeerId next_;
  ServiceThread service_;
};

RuntimeOptions with_pool(RuntimeOptions options) {
  options.pools = {{.name = "pool"}};
  return options;
}

Json find(const std::vector<Json> &spans, const std::string &category, const Json &parent) {
  for (const auto &span : spans)
    if (span["cat"] == category && span["args"]["parent"] == parent) return span;
  return nullptr;
}

double end_of(const Json &span) { return span["ts"].get<double>() + span["dur"].get<double>(); }

/// Times are written to the nanosecond.
void expect_within(const Json &inner, const Json &outer) {
  EXPECT_GE(inner["ts"].get<double>(), outer["ts"].get<double>() - 0.001);
  EXPECT_LE(end_of(inner), end_of(outer) + 0.001);
}

constexpr const char *kNobody = "0000000000000000";

class NssiTrace : public ::testing::TestWithParam<OpCode> {};

TEST_P(NssiTrace, FollowsACallThroughTheServicesThatItPasses) {
  Folder folder;
  {
    ServiceThread last(traced(folder, true));
    Forwarder middle(with_pool(traced(folder, true)), last.runtime->url());
    auto client = open_runtime(traced(folder, false));
    auto peer = client->connect(middle.runtime().url(), Deadline::in(std::chrono::seconds(10)));
    ASSERT_TRUE(peer.ok());
    ASSERT_TRUE(client->call(at(*peer), GetParam(), {}).wait().ok());
  }
  const auto spans = folder.spans();
  const auto call = find(spans, "call", kNobody);
  ASSERT_FALSE(call.is_null()) << folder.text();
  const auto forward = find(spans, "execution", call["args"]["span"]);
  ASSERT_FALSE(forward.is_null()) << folder.text();
  EXPECT_EQ(forward["name"], "forward");
  const auto nested = find(spans, "call", forward["args"]["span"]);
  ASSERT_FALSE(nested.is_null()) << folder.text();
  const auto echo = find(spans, "execution", nested["args"]["span"]);
  ASSERT_FALSE(echo.is_null()) << folder.text();
  expect_within(nested, forward);
  EXPECT_GE(forward["ts"].get<double>(), call["ts"].get<double>());
  EXPECT_GE(echo["ts"].get<double>(), nested["ts"].get<double>());
  EXPECT_FALSE(find(spans, "queueing", call["args"]["span"]).is_null());
  for (const auto &span : spans) EXPECT_EQ(span["args"]["trace"], call["args"]["trace"]);
}

INSTANTIATE_TEST_SUITE_P(OnTheDriverAndInAPool, NssiTrace, ::testing::Values(kForward, kForwardInPool));

TEST(NssiTraces, PassThroughAProcessThatWritesNone) {
  Folder folder;
  {
    ServiceThread last(traced(folder, true));
    Forwarder middle(with_pool(options_for("shm", true)), last.runtime->url());
    auto client = open_runtime(traced(folder, false));
    auto peer = client->connect(middle.runtime().url(), Deadline::in(std::chrono::seconds(10)));
    ASSERT_TRUE(peer.ok());
    ASSERT_TRUE(client->call(at(*peer), kForward, {}).wait().ok());
  }
  const auto spans = folder.spans();
  const auto call = find(spans, "call", kNobody);
  ASSERT_FALSE(call.is_null()) << folder.text();
  const auto echo = find(spans, "execution", call["args"]["span"]);
  ASSERT_FALSE(echo.is_null()) << folder.text();
  EXPECT_EQ(echo["args"]["trace"], call["args"]["trace"]);
}

TEST(NssiTraces, ShowBulkTransfersWithinTheirHandlers) {
  Folder folder;
  {
    ServiceThread service(traced(folder, true));
    auto client = open_runtime(traced(folder, false));
    auto peer = client->connect(service.runtime->url(), Deadline::in(std::chrono::seconds(10)));
    ASSERT_TRUE(peer.ok());
    auto memory = client->allocate(4096, nnti::Rights::kReadWrite);
    ASSERT_TRUE(memory.ok());
    CallOptions with_data;
    with_data.data = &*memory;
    ASSERT_TRUE(client->call(at(*peer), kPush, std::span<const std::byte>(), with_data).wait().ok());
  }
  const auto spans = folder.spans();
  const auto call = find(spans, "call", kNobody);
  ASSERT_FALSE(call.is_null()) << folder.text();
  const auto execution = find(spans, "execution", call["args"]["span"]);
  ASSERT_FALSE(execution.is_null());
  const auto push = find(spans, "transfer", execution["args"]["span"]);
  ASSERT_FALSE(push.is_null()) << folder.text();
  EXPECT_EQ(push["name"], "push");
  EXPECT_EQ(push["args"]["bytes"], 4096);
  EXPECT_EQ(push["tid"], execution["tid"]);
  expect_within(push, execution);
}

TEST(NssiTraces, NameTheErrorThatACallEndedWith) {
  Folder folder;
  {
    ServiceThread service(traced(folder, true));
    auto client = open_runtime(traced(folder, false));
    auto peer = client->connect(service.runtime->url(), Deadline::in(std::chrono::seconds(10)));
    ASSERT_TRUE(peer.ok());
    EXPECT_EQ(client->call(at(*peer), kFail, {}).wait().code(), Code::kIo);
  }
  const auto call = find(folder.spans(), "call", kNobody);
  ASSERT_FALSE(call.is_null());
  EXPECT_EQ(call["args"]["error"], "IO");
}

TEST(NssiTraces, TakeOneCallInSoManyAsTheSettingSays) {
  Folder folder;
  {
    ServiceThread service(options_for("shm", true));
    auto client = open_runtime(traced(folder, false, "4"));
    auto peer = client->connect(service.runtime->url(), Deadline::in(std::chrono::seconds(10)));
    ASSERT_TRUE(peer.ok());
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(client->call(at(*peer), kNoopShort, {}).wait().ok());
  }
  EXPECT_EQ(folder.spans().size(), 2u);
}

TEST(NssiTraces, AreInTheFileWhileTheProcessLives) {
  Folder folder;
  ServiceThread service(traced(folder, true));
  auto client = open_runtime(options_for("shm", false));
  auto peer = client->connect(service.runtime->url(), Deadline::in(std::chrono::seconds(10)));
  ASSERT_TRUE(peer.ok());
  ASSERT_TRUE(client->call(at(*peer), kNoop, {}).wait().ok());
  EXPECT_TRUE(eventually([&] { return folder.spans().size() == 2; })) << "its queueing and execution";
}

TEST(NssiTraces, InAFolderThatCannotBeMadeAreAnError) {
  auto options = options_for("inproc", true);
  options.endpoint.config.set("nssi.trace", "/proc/nessie/trace");
  const auto runtime = Runtime::open(options);
  ASSERT_FALSE(runtime.ok());
  EXPECT_EQ(runtime.error().code, Code::kIo);
  EXPECT_NE(runtime.error().message.find("nssi.trace"), std::string::npos);
}

TEST(NssiTraces, OfNoCallAtAllAreAnError) {
  auto options = options_for("inproc", true);
  options.endpoint.config.set("nssi.trace.every", "0");
  EXPECT_EQ(Runtime::open(options).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace nssi::testing
