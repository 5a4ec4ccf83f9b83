// SPDX-License-Identifier: BSD-3-Clause
// Services that let themselves be found, and clients that find them, through what everybody's programs have.
#include <nssi/discovery.h>
#include <nssi/discovery.hpp>

#include <gtest/gtest.h>

#include <services/discovery/directory/testing.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace nssi::testing {
namespace {

using directory::testing::DirectoryThread;
using directory::testing::soon;

class Discovery : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const char *name = "a.contact") const { return "file:" + folder_ + "/" + name; }
  std::unique_ptr<Runtime> client(const std::string &directory = {}) {
    auto options = options_for("inproc", false);
    if (!directory.empty()) options.endpoint.config.set("directory", directory);
    return open_runtime(std::move(options));
  }
  static RuntimeOptions server_of(const std::string &directory) {
    auto options = options_for("inproc", true);
    options.endpoint.config.set("directory", directory);
    return options;
  }

  std::string folder_ = "/tmp/nessie-discovery-XXXXXX";
};

TEST_F(Discovery, AServiceIsReachedThroughItsContactFile) {
  ServiceThread server(options_for("inproc", true));
  auto announced = announce(*server.runtime, file(), {}, soon());
  ASSERT_TRUE(announced.ok()) << announced.error().to_string();
  EXPECT_TRUE(announced->status().ok());
  auto runtime = client();
  const auto places = find(*runtime, file(), soon());
  ASSERT_TRUE(places.ok()) << places.error().to_string();
  ASSERT_EQ(places->size(), 1u);
  EXPECT_EQ(places->front().url, server.runtime->url());
  EXPECT_EQ(places->front().services, server.runtime->services());
  EXPECT_FALSE(places->front().services.empty());
  const auto peer = connect_to(*runtime, file(), soon());
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  EXPECT_TRUE(runtime->call(at(*peer), kNoop, {}).wait().ok());
}

TEST_F(Discovery, AContactFileGoesWithItsAnnouncement) {
  ServiceThread server(options_for("inproc", true));
  { const auto announced = announce(*server.runtime, file(), {}, soon()); }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a.contact"));
  EXPECT_EQ(find(*client(), file(), Deadline::in(std::chrono::milliseconds(50))).code(), Code::kTimedOut);
}

TEST_F(Discovery, EveryInstanceOfANameIsFoundAndWhatIsGoneIsPassedOver) {
  DirectoryThread directory("inproc");
  const auto where = directory.runtime->url();
  auto gone = std::make_unique<ServiceThread>(server_of(where));
  ServiceThread stays(server_of(where));
  auto first = std::make_unique<Announcement>(*announce(*gone->runtime, "dir:fields", {}, soon()));
  const auto second = announce(*stays.runtime, "dir:fields", {.attributes = {{"rank", "1"}}}, soon());
  ASSERT_TRUE(second.ok()) << second.error().to_string();
  auto runtime = client(where);
  const auto places = find(*runtime, "dir:fields", soon());
  ASSERT_TRUE(places.ok()) << places.error().to_string();
  EXPECT_EQ(places->size(), 2 * stays.runtime->services().size());
  EXPECT_EQ(places->back().attributes, (std::vector<std::pair<std::string, std::string>>{{"rank", "1"}}));
  ::setenv("NESSIE_DISCOVERY_TEST", (gone->runtime->url() + " dir:fields").c_str(), 1);
  first.reset();
  gone.reset();
  const auto peer = connect_to(*runtime, "env:NESSIE_DISCOVERY_TEST", soon());
  ASSERT_TRUE(peer.ok()) << peer.error().to_string();
  EXPECT_TRUE(runtime->call(at(*peer), kNoop, {}).wait().ok());
}

TEST_F(Discovery, AWatchTellsEachChange) {
  DirectoryThread directory("inproc");
  const auto where = directory.runtime->url();
  ServiceThread server(server_of(where));
  auto runtime = client(where);
  auto fields = watch(*runtime, "dir:job/fields"), all = watch(*runtime, "dir:job/*");
  ASSERT_TRUE(fields.ok() && all.ok());
  for (auto *each : {&*fields, &*all}) {
    const auto first = each->next(soon());
    ASSERT_TRUE(first.ok()) << first.error().to_string();
    EXPECT_TRUE(first->empty());
  }
  std::optional<Announcement> other(*announce(*server.runtime, "dir:job/other", {}, soon()));
  const auto places = all->next(soon());
  ASSERT_TRUE(places.ok()) << places.error().to_string();
  ASSERT_FALSE(places->empty());
  EXPECT_EQ(places->front().name, "job/other");
  EXPECT_EQ(places->front().url, server.runtime->url());
  EXPECT_EQ(places->front().services.front(), server.runtime->services().front());
  EXPECT_EQ(fields->next(Deadline::in(std::chrono::milliseconds(20))).code(), Code::kTimedOut) << "of another name";
  other.reset();
  EXPECT_TRUE(eventually([&] { return all->next(soon())->empty(); }));
}

TEST_F(Discovery, WhatCannotBeWatchedIsSaid) {
  auto knows = client("inproc://nobody"), knows_none = client();
  EXPECT_EQ(watch(*knows, file()).code(), Code::kInvalidArgument);
  EXPECT_EQ(watch(*knows, "dir:two words").code(), Code::kInvalidArgument);
  EXPECT_EQ(watch(*knows, "dir:").code(), Code::kInvalidArgument);
  EXPECT_TRUE(watch(*knows, "dir:*").ok());
  EXPECT_EQ(watch(*knows_none, "dir:fields").code(), Code::kNotFound);
}

TEST_F(Discovery, WhatCannotBeAnnouncedIsSaid) {
  auto deaf = client();
  EXPECT_EQ(announce(*deaf, file(), {}, soon()).code(), Code::kInvalidArgument);
  auto offers_nothing = open_runtime(options_for("inproc", true));
  EXPECT_EQ(announce(*offers_nothing, file(), {}, soon()).code(), Code::kInvalidArgument);
  ServiceThread server(options_for("inproc", true));
  EXPECT_EQ(announce(*server.runtime, "fields.contact", {}, soon()).code(), Code::kInvalidArgument);
  EXPECT_EQ(announce(*server.runtime, "dir:fields", {}, soon()).code(), Code::kNotFound);
  EXPECT_EQ(announce(*server.runtime, file(), {.attributes = {{"rank", "1"}}}, soon()).code(), Code::kInvalidArgument);
  std::ofstream(folder_ + "/notes") << "mine";
  EXPECT_EQ(announce(*server.runtime, file("notes"), {}, soon()).code(), Code::kExists);
}

TEST_F(Discovery, TheErrorOfConnectingSaysWhereTheUrlCameFrom) {
  ServiceThread server(options_for("inproc", true));
  const auto announced = announce(*server.runtime, file(), {}, soon());
  auto options = options_for("inproc", false);
  options.endpoint.credential = nessie::Credential::generate();
  const auto stranger = open_runtime(std::move(options));
  const auto peer = connect_to(*stranger, file(), soon());
  ASSERT_EQ(peer.code(), Code::kRefused);
  EXPECT_NE(peer.error().message.find("a.contact"), std::string::npos) << peer.error().message;
}

TEST_F(Discovery, NoPlaceAtAll_IsAnErrorToo) {
  EXPECT_EQ(connect_to(*client(), std::span<const Place>(), soon()).code(), Code::kNotFound);
}

// --- in C ---------------------------------------------------------------------------------------------------------------

void nothing(void *, nssi_rt_request *request) { (void)nssi_rt_reply(request, nullptr, 0); }

TEST_F(Discovery, InC) {
  nssi_rt_options options{};
  options.transports = "inproc";
  nssi_rt_runtime *server = nullptr, *caller = nullptr;
  ASSERT_EQ(nssi_rt_open(&options, &server), NESSIE_OK) << nssi_rt_last_error();
  options.connects_only = 1;
  ASSERT_EQ(nssi_rt_open(&options, &caller), NESSIE_OK) << nssi_rt_last_error();
  EXPECT_EQ(nssi_rt_announce(server, file().c_str(), "test", 10000), NESSIE_INVALID_ARGUMENT)
      << "it offers nothing yet";
  nssi_rt_operation operation{};
  operation.program = 7;
  operation.version = 1;
  operation.op = 1;
  operation.name = "nothing";
  operation.kind = NSSI_RT_SHORT;
  operation.handler = nothing;
  ASSERT_EQ(nssi_rt_add_operation(server, &operation), NESSIE_OK) << nssi_rt_last_error();
  ASSERT_EQ(nssi_rt_announce(server, file().c_str(), "test", 10000), NESSIE_OK) << nssi_rt_last_error();
  std::thread serving([&] { nssi_rt_run(server); });
  std::string url;
  std::uint64_t count = 0, peer = 0;
  const auto note = [](const char *found, void *to) { *static_cast<std::string *>(to) = found; };
  EXPECT_EQ(nssi_rt_find(caller, file().c_str(), 10000, note, &url, &count), NESSIE_OK) << nssi_rt_last_error();
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(url, nssi_rt_url(server));
  EXPECT_EQ(nssi_rt_connect_to(caller, file().c_str(), 10000, &peer), NESSIE_OK) << nssi_rt_last_error();
  EXPECT_NE(peer, 0u);
  EXPECT_EQ(nssi_rt_connect_to(caller, "nowhere", 10000, &peer), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_connect_to(caller, nullptr, 10000, &peer), NESSIE_INVALID_ARGUMENT);
  EXPECT_EQ(nssi_rt_connect_to(caller, file("none").c_str(), 20, &peer), NESSIE_TIMED_OUT);
  for (const std::int32_t timeout_ms : {-2, INT32_MIN}) {
    EXPECT_EQ(nssi_rt_connect_to(caller, file("none").c_str(), timeout_ms, &peer), NESSIE_INVALID_ARGUMENT);
    EXPECT_EQ(nssi_rt_find(caller, file("none").c_str(), timeout_ms, note, &url, &count), NESSIE_INVALID_ARGUMENT);
  }
  EXPECT_EQ(nssi_rt_close(caller), NESSIE_OK);
  nssi_rt_stop(server);
  serving.join();
  EXPECT_EQ(nssi_rt_close(server), NESSIE_OK);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a.contact")) << "closing withdraws";
}

}  // namespace
}  // namespace nssi::testing
