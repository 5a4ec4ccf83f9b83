// SPDX-License-Identifier: BSD-3-Clause
// What is kept of files takes no more room than there is: it is put into them in time.
#include <services/staging/twins_testing.hpp>

namespace staging::testing {
namespace {

constexpr std::int64_t kPlanes = 48, kPlane = 128 << 10;  // of a MiB each
constexpr std::uint64_t kLittle = 8 << 20;
constexpr std::uint64_t kShortLog = 16 << 20, kSegments = 8;

VariableLayout box() { return {0, 8, false, {kPlanes, kPlane}}; }

class RoomTest : public ::testing::Test {
 protected:
  void start(int servers, const std::string &durability) {
    service_.emplace(servers, Mode::kCaching, kLittle, "inproc", std::chrono::seconds(30), false, DrainOptions{},
                     durability, kShortLog);
    client_ = service_->client();
    ASSERT_NE(client_, nullptr);
  }
  static std::vector<Definition> definitions() {
    return {dim("z", kPlanes), dim("x", kPlane), var("box", NC_DOUBLE, {0, 1})};
  }
  Twins &open(const std::string &name) {
    auto &file = files_.emplace_back(*service_, *client_, name);
    file.create();
    file.enddef(definitions());
    return file;
  }
  static void put(Twins &file, std::int64_t begin, std::int64_t planes) {
    file.put(box(), {0, {begin, 0}, {planes, kPlane}, {}});
  }
  static void put_all(Twins &file) {
    for (std::int64_t z = 0; z < kPlanes; ++z) put(file, z, 1);
  }
  void end() {
    for (auto &file : files_) file.close(true);
    if (is_replicated_) expect_copies_kept();
    for (auto &file : files_) file.expect_same_files();
    service_->stop();
  }
  void expect_copies_kept() {
    for (int server = 0; server < client_->servers(); ++server)
      EXPECT_TRUE(ServerInside::has_kept_its_copy(service_->server(server))) << server;
  }
  void start_replicated(int servers) {
    is_replicated_ = true;
    start(servers, "replicated");
  }
  std::size_t segments_of_log() const {
    const auto names = std::filesystem::directory_iterator(service_->file("log.0"));
    return static_cast<std::size_t>(std::ranges::count_if(
        names, [](const auto &entry) { return entry.path().filename().string().starts_with("log."); }));
  }

  bool is_replicated_ = false;
  std::optional<Service> service_;
  std::unique_ptr<Client> client_;
  std::deque<Twins> files_;
};

class RoomOf : public RoomTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(, RoomOf, ::testing::Values(2, 3));

TEST_P(RoomOf, AFileThatIsLargerThanTheRoomKeepsItsCopy) {
  start_replicated(GetParam());
  put_all(open("large"));
  end();
}

TEST_P(RoomOf, AWriteThatIsLargerThanTheRoomKeepsItsCopy) {
  start_replicated(GetParam());
  put(open("large"), 0, kPlanes);
  end();
}

TEST_F(RoomTest, FilesThatNobodyWritesToMakeRoomForOthers) {
  start_replicated(2);
  for (const char *name : {"idle1", "idle2"}) put(open(name), 3, 2);
  put_all(open("busy"));
  end();
}

TEST_F(RoomTest, AFileThatIsNotDefinedYetMakesRoomForOthers) {
  start_replicated(2);
  auto &undefined = files_.emplace_back(*service_, *client_, "undefined");
  undefined.create();
  undefined.send_ahead({dim("z", kPlanes), dim("x", kPlane)});
  put_all(open("busy"));
  undefined.enddef({var("box", NC_DOUBLE, {0, 1})});
  put(undefined, 7, 2);
  end();
}

TEST_F(RoomTest, WhatThereIsNoRoomForGoesRightToTheFile) {
  start_replicated(2);
  auto &lost = open("lost");
  for (int server = 0; server < client_->servers(); ++server)
    ServerInside::lose(service_->server(server), lost.token());
  put_all(open("busy"));
  files_.back().close(true);
  files_.back().expect_same_files();
  expect_copies_kept();
  lost.close_twin();
  service_->stop();  // though nobody can put all of it where it belongs
}

TEST_F(RoomTest, AnIdleFileDoesNotHoldBackTheSpaceOfALog) {
  start(1, "logged");
  put(open("idle"), 3, 2);
  auto &busy = open("busy");
  for (int round = 0; round < 3; ++round) {
    put_all(busy);
    EXPECT_LE(segments_of_log(), 2 * kSegments);
  }
  end();
}

}  // namespace
}  // namespace staging::testing
