// SPDX-License-Identifier: BSD-3-Clause
// Files, read and written by handlers' fibers, by those of pools, and by threads; by io_uring, and without it.
#include <gtest/gtest.h>

#include <nssi/file_io.hpp>
#include <nssi/testing/testing.hpp>

#include <filesystem>
#include <numeric>

namespace nssi::testing {
namespace {

using std::chrono::seconds;

/// A file of its own.
class TemporaryFile {
 public:
  TemporaryFile() : file_(::mkstemp(path_)) { ::unlink(path_); }
  ~TemporaryFile() { ::close(file_); }
  int fd() const { return file_; }

 private:
  char path_[24] = "/tmp/nessie-file-XXXXXX";
  int file_;
};

/// Where it is run: in a fiber of the driver's, in a pool's, or in a thread.
enum class Where { kFiber, kPool, kThread };

class NssiFiles : public ::testing::TestWithParam<std::tuple<Where, bool>> {
 protected:
  void SetUp() override {
    auto options = options_for("inproc", true);
    options.pools = {{"files"}};
    server_ = std::make_unique<ServiceThread>(std::move(options), [this](Runtime &runtime) {
      Operation operation{kInterface, 0, 300, "files", HandlerKind::kFiber, [this](Request &r) {
                            work_(r);
                            (void)r.reply();
                          }};
      if (where() == Where::kPool) operation.pool = "files";
      EXPECT_TRUE(runtime.add_operation(std::move(operation)).ok());
    });
    client_ = open_runtime(options_for("inproc", false));
    peer_ = *client_->connect(server_->runtime->url(), Deadline::in(seconds(20)));
    const bool by_ring = std::get<1>(GetParam());
    open({.depth = 2, .may_use_io_uring = by_ring});
    if (by_ring && !files_->uses_io_uring()) GTEST_SKIP() << "this system does not let us have io_uring";
  }
  void open(const FileIoOptions &options) {
    files_.reset();
    auto files = FileIo::open(*server_->runtime, options);
    ASSERT_TRUE(files.ok()) << files.error().message;
    files_ = *std::move(files);
  }
  void TearDown() override {
    client_.reset();
    files_.reset();
    server_.reset();
  }
  static Where where() { return std::get<0>(GetParam()); }
  /// Runs `work` several times at once.
  void run(int times, std::function<void()> work) {
    work_ = [work](Request &) { work(); };
    std::vector<std::thread> threads;
    std::vector<Call> calls;
    for (int i = 0; i < times; ++i)
      if (where() == Where::kThread)
        threads.emplace_back(work);
      else
        calls.push_back(client_->call(at(peer_), 300, {}));
    for (auto &call : calls) EXPECT_TRUE(call.wait().ok());
    for (auto &thread : threads) thread.join();
  }

  std::function<void(Request &)> work_;
  std::unique_ptr<ServiceThread> server_;
  std::unique_ptr<Runtime> client_;
  std::unique_ptr<FileIo> files_;
  PeerId peer_;
};

TEST_P(NssiFiles, WhatIsWrittenIsReadAgain) {
  TemporaryFile file;
  std::atomic<int> place{0};
  run(20, [&] {
    const auto offset = static_cast<std::uint64_t>(place++) * 300000;
    const auto written = pattern(300000);
    EXPECT_TRUE(files_->write(file.fd(), written, offset).ok());
    EXPECT_TRUE(files_->sync(file.fd()).ok());
    Bytes read(300000);
    auto count = files_->read(file.fd(), read, offset);
    ASSERT_TRUE(count.ok());
    EXPECT_EQ(*count, read.size());
    EXPECT_EQ(read, written);
  });
  EXPECT_EQ(place, 20);
}

TEST_P(NssiFiles, AFileThatEndsGivesWhatThereIs) {
  TemporaryFile file;
  run(1, [&] {
    EXPECT_TRUE(files_->write(file.fd(), pattern(100), 0).ok());
    Bytes read(1000);
    EXPECT_EQ(*files_->read(file.fd(), read, 40), 60u);
    EXPECT_EQ(*files_->read(file.fd(), read, 100), 0u);
    EXPECT_EQ(*files_->read(file.fd(), {}, 0), 0u);
  });
}

TEST_P(NssiFiles, WhatIsBeyondAllFiles_IsRefused_AndTheFileIsAsItWas) {
  TemporaryFile file;
  run(1, [&] {
    Bytes bytes = pattern(100);
    ASSERT_TRUE(files_->write(file.fd(), bytes, 0).ok());
    Bytes zeros(100);
    for (const auto offset : {~std::uint64_t{0}, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 50}) {
      EXPECT_EQ(files_->write(file.fd(), zeros, offset).code(), Code::kOutOfRange) << offset;
      EXPECT_EQ(files_->read(file.fd(), bytes, offset).code(), Code::kOutOfRange) << offset;
    }
    ASSERT_TRUE(files_->read(file.fd(), bytes, 0).ok());
    EXPECT_EQ(bytes, pattern(100));
  });
}

TEST_P(NssiFiles, FaultsHaveTheSystemsCause) {
  run(1, [&] {
    Bytes bytes(10);
    auto read = files_->read(-1, bytes, 0);
    ASSERT_EQ(read.code(), Code::kIo);
    EXPECT_EQ(read.error().cause, EBADF);
    auto written = files_->write(-1, bytes, 0);
    ASSERT_EQ(written.code(), Code::kIo);
    EXPECT_EQ(written.error().cause, EBADF);
    EXPECT_EQ(files_->sync(-1).error().cause, EBADF);
  });
}

/// A pipe has nothing to read until somebody writes: whoever blocks in that holds nobody up but itself. Without
/// io_uring pipes cannot be read at an offset.
TEST_P(NssiFiles, WhileOneWaits_OthersAreServed) {
  if (!files_->uses_io_uring()) GTEST_SKIP() << "nothing else that blocks can be read at an offset";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::atomic<bool> waits{false}, has_read{false};
  work_ = [&](Request &) {
    Bytes bytes(1);
    waits = true;
    has_read = files_->read(ends[0], bytes, 0).ok();
  };
  auto call = client_->call(at(peer_), 300, {});
  ASSERT_TRUE(eventually([&] { return (void)call.test(), waits.load(); }));
  EXPECT_TRUE(client_->call(at(peer_), kNoop, {}).wait().ok());
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_TRUE(call.wait().ok());
  EXPECT_TRUE(has_read);
  for (int end : ends) ::close(end);
}

/// Two ends, of which nothing is read until something is written.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    for (int end : ends_) ::close(end);
  }
  Pipe(const Pipe &) = delete;
  int out() const { return ends_[0]; }
  void write() const { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }

 private:
  int ends_[2] = {-1, -1};
};

TEST_P(NssiFiles, PastTheDeadline_NothingBegins) {
  TemporaryFile file;
  run(1, [&] {
    Bytes bytes(10);
    const FilePatience none{.deadline = Deadline::now()};
    EXPECT_EQ(files_->write(file.fd(), bytes, 0, none).code(), Code::kTimedOut);
    EXPECT_EQ(files_->sync(file.fd(), none).code(), Code::kTimedOut);
    EXPECT_EQ(*files_->read(file.fd(), bytes, 0), 0u) << "something was written";
  });
}

TEST_P(NssiFiles, AtTheDeadline_AnOperationThatWaitsIsEnded_AlsoForItsTurn) {
  if (!files_->uses_io_uring()) GTEST_SKIP() << "nothing else that blocks can be read at an offset";
  Pipe pipe;
  std::atomic<int> ended{0};
  run(5, [&] {
    Bytes bytes(1);
    const FilePatience patience{.deadline = Deadline::in(std::chrono::milliseconds(20))};
    EXPECT_EQ(files_->read(pipe.out(), bytes, 0, patience).code(), Code::kTimedOut);
    ++ended;
  });
  EXPECT_EQ(ended, 5);
  pipe.write();
  run(1, [&] {
    Bytes bytes(1);
    EXPECT_EQ(*files_->read(pipe.out(), bytes, 0), 1u) << "one that was ended has taken it";
  });
}

TEST_P(NssiFiles, NobodyWaitsForTheResult_AndTheOperationIsEnded) {
  if (!files_->uses_io_uring()) GTEST_SKIP() << "nothing else that blocks can be read at an offset";
  if (where() == Where::kThread) GTEST_SKIP() << "a thread has no request";
  Pipe pipe;
  std::atomic<bool> waits{false};
  std::atomic<Code> ended{Code::kOk};
  work_ = [&](Request &request) {
    Bytes bytes(1);
    waits = true;
    ended = files_->read(pipe.out(), bytes, 0, {.request = &request}).code();
  };
  auto call = client_->call(at(peer_), 300, {});
  ASSERT_TRUE(eventually([&] { return (void)call.test(), waits.load(); }));
  call = Call();
  EXPECT_TRUE(eventually([&] { return ended == Code::kCancelled; }));
}

TEST_P(NssiFiles, TheRuntimeGoes_AndTheOperationIsEnded) {
  if (!files_->uses_io_uring()) GTEST_SKIP() << "nothing else that blocks can be read at an offset";
  if (where() == Where::kThread) GTEST_SKIP() << "a thread must not be in a function of the runtime's";
  Pipe pipe;
  std::atomic<bool> waits{false};
  std::atomic<Code> ended{Code::kOk};
  work_ = [&](Request &) {
    Bytes bytes(1);
    waits = true;
    ended = files_->read(pipe.out(), bytes, 0).code();
  };
  auto call = client_->call(at(peer_), 300, {});
  ASSERT_TRUE(eventually([&] { return (void)call.test(), waits.load(); }));
  server_.reset();
  EXPECT_EQ(ended, Code::kCancelled);
}

TEST_P(NssiFiles, WhatIsLeftBehind_HoldsItsMemoryUntilItIsOver) {
  if (!files_->uses_io_uring()) GTEST_SKIP() << "nothing else that blocks can be read at an offset";
  Pipe pipe;
  std::weak_ptr<Bytes> left;
  run(1, [&] {
    auto bytes = std::make_shared<Bytes>(1);
    left = bytes;
    const FilePatience patience{.deadline = Deadline::in(std::chrono::milliseconds(20)), .owner = bytes};
    EXPECT_EQ(files_->read(pipe.out(), *bytes, 0, patience).code(), Code::kTimedOut);
  });
  EXPECT_TRUE(eventually([&] { return left.expired(); }));
}

/// The descriptor of the ring that this process has.
int ring_of_this_process() {
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry, error).string().find("io_uring") != std::string::npos)
      return std::stoi(entry.path().filename());
  }
  return -1;
}

TEST_P(NssiFiles, WhatTheKernelDoesNotTake_EndsWithTheCause) {
  if (!files_->uses_io_uring()) GTEST_SKIP() << "there is no ring";
  TemporaryFile file;
  const int ring = ring_of_this_process();
  ASSERT_GE(ring, 0);
  const int kept = ::dup(ring), nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::dup2(nothing, ring), ring);
  run(9, [&] {
    Bytes bytes(10);
    const auto status = files_->write(file.fd(), bytes, 0);
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_NE(status.error().cause, 0);
  });
  ASSERT_EQ(::dup2(kept, ring), ring);
  for (int fd : {kept, nothing}) ::close(fd);
  run(9, [&] { EXPECT_TRUE(files_->write(file.fd(), Bytes(10), 0).ok()); });
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Where, bool>> &info) {
  constexpr const char *kNames[] = {"Fiber", "Pool", "Thread"};
  return std::string(kNames[static_cast<int>(std::get<0>(info.param))]) +
         (std::get<1>(info.param) ? "ByRing" : "ByThreads");
}

INSTANTIATE_TEST_SUITE_P(Ways, NssiFiles,
                         ::testing::Combine(::testing::Values(Where::kFiber, Where::kPool, Where::kThread),
                                            ::testing::Bool()),
                         name_of);

TEST(NssiFileOptions, BadOnesAreRefused) {
  auto runtime = open_runtime(options_for("inproc", false));
  EXPECT_EQ(FileIo::open(*runtime, {.depth = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(FileIo::open(*runtime, {.threads = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(FileIo::open(*runtime, {.depth = 1u << 20}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace nssi::testing
