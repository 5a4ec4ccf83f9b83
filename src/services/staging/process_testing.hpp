// SPDX-License-Identifier: BSD-3-Clause
// For tests: servers that are processes.
#pragma once

#include <base/clock.hpp>
#include <services/staging/file_testing.hpp>

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace staging::testing {

using nessie::Deadline;

inline constexpr auto kWatchdog = std::chrono::seconds(60);

/// Waits until a child ends or, with WUNTRACED, stops; its status, or -1.
inline int wait_for_change(pid_t pid, int which = WUNTRACED) {
  const auto deadline = Deadline::in(kWatchdog);
  int status = -1;
  while (::waitpid(pid, &status, WNOHANG | which) == 0)
    if (deadline.passed())
      return -1;
    else
      ::usleep(1000);
  return status;
}

/// A nessied of our own; killed and reaped when dropped.
class Daemon {
 public:
  Daemon(const std::string &folder, int index, int servers, std::vector<std::string> flags,
         std::function<void()> in_child = {}) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    url_file_ = folder + "/server." + std::to_string(index) + ".url";
    std::filesystem::remove(url_file_);  // of one that was there before
    std::vector<std::string> words = {
        NESSIED,     "--parent", "0", "--index", std::to_string(index), "--servers", std::to_string(servers),
        "--run-dir", folder};
    words.insert(words.end(), flags.begin(), flags.end());
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[0], 0);
      if (in_child) in_child();
      std::vector<char *> argv;
      for (auto &word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[0]);
    life_line_ = ends[1];
  }
  ~Daemon() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), wait_end();
    cut_life_line();
  }
  Daemon(const Daemon &) = delete;

  std::string url() const {
    const auto deadline = Deadline::in(kWatchdog);
    while (!std::filesystem::exists(url_file_) && !deadline.passed()) std::this_thread::yield();
    std::ifstream file(url_file_);
    std::string line;
    std::getline(file, line);
    return line;
  }
  void cut_life_line() {
    if (life_line_ >= 0) ::close(life_line_);
    life_line_ = -1;
  }
  /// The exit code; 128 + the signal. -1: it did not end.
  int wait_end() {
    const int status = wait_for_change(pid_, 0);
    if (status == -1) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// Stopped, it takes no note of anything until go_on().
  void stop() {
    ::kill(pid_, SIGSTOP);
    EXPECT_TRUE(WIFSTOPPED(wait_for_change(pid_)));
  }
  void go_on() { ::kill(pid_, SIGCONT); }
  pid_t pid() const { return pid_; }

 private:
  std::string url_file_;
  pid_t pid_ = -1;
  int life_line_ = -1;
};

inline constexpr std::int64_t kZ = 64, kY = 128, kX = 128;
inline constexpr std::size_t kVariableBytes = kZ * kY * kX * 8;  // 8 MiB

/// Memory whose end cannot be touched: who tries is sent SIGSEGV.
class HalfMemory {
 public:
  explicit HalfMemory(std::size_t size_bytes, std::size_t usable_bytes)
      : size_bytes_(size_bytes),
        base_(::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    ::mprotect(static_cast<std::byte *>(base_) + usable_bytes, size_bytes - usable_bytes, PROT_NONE);
  }
  ~HalfMemory() { ::munmap(base_, size_bytes_); }
  HalfMemory(const HalfMemory &) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte *>(base_), size_bytes_}; }

 private:
  const std::size_t size_bytes_;
  void *const base_;
};

/// What a process moves data to or from, and cannot touch until it has been stopped, and goes on.
inline std::span<std::byte> out_of_reach;
inline void stop_then_go_on(int) {
  ::raise(SIGSTOP);
  ::mprotect(out_of_reach.data(), out_of_reach.size(), PROT_READ | PROT_WRITE);
}

/// A server gives up at once what it cannot write.
inline void have_no_patience() { ::setenv("NESSIE_STAGING_PATIENCE", "0", 1); }

/// In a process of a program: its data move only while it makes progress, and it touches them only then.
inline void move_data_by_own_doing() {
  ::setenv("NESSIE_NNTI_SHM_CMA", "off", 1);
  ::setenv("NESSIE_STAGING_CHECKSUMS", "off", 1);
}

class StagingProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "nessied-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  void TearDown() override {
    for (const auto pid : programs_) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
    daemons_.clear();
    if (!mounted_.empty()) ::umount(mounted_.c_str());
    std::filesystem::remove_all(folder_);
  }

  Daemon &start(std::vector<std::string> flags = {}, int index = 0, int servers = 1,
                std::function<void()> in_child = {}) {
    daemons_.push_back(std::make_unique<Daemon>(folder_, index, servers, std::move(flags), std::move(in_child)));
    return *daemons_.back();
  }

  std::unique_ptr<Client> connect(const std::string &timeout = "30") {
    nessie::Config config;
    std::string urls;
    for (const auto &daemon : daemons_) urls += daemon->url() + " ";
    config.set("servers", urls);
    config.set("staging.timeout", timeout);
    auto client = Client::connect(config, "test");
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(*client) : nullptr;
  }

  /// A file of `variables` boxes of doubles, in data mode.
  /// `z` 0: each has records.
  void create(Client &client, const std::string &path, int variables, std::int64_t z = kZ, FileToken token = kToken) {
    path_ = path;
    order_.emplace(client.servers());
    std::vector<Definition> definitions = {dim("z", z), dim("y", kY), dim("x", kX)};
    for (int v = 0; v < variables; ++v) definitions.push_back(var("v" + std::to_string(v), NC_DOUBLE, {0, 1, 2}));
    create_file(client, token, path, definitions);
  }

  Result<int> put(Client &client, int varid) {
    const VariableLayout layout{varid, 8, false, {kZ, kY, kX}};
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<double>(i) + varid;
    const Item item{&layout, Piece{varid, {0, 0, 0}, {kZ, kY, kX}, {}}, std::as_writable_bytes(std::span(data_))};
    auto written = client.write(kToken, 0, *order_, {&item, 1});
    order_->know(order_->end_call());
    return written;
  }

  /// The same in pieces of `planes`, each in a call of its own.
  bool put_pieces(Client &client, int varid, std::int64_t planes) {
    bool fine = true;
    for (std::int64_t z = 0; z < kZ && fine; z += planes) fine = put_planes(client, varid, z, planes);
    return fine;
  }
  /// A piece of it, from plane `z` on.
  bool put_planes(Client &client, int varid, std::int64_t z, std::int64_t planes) {
    const VariableLayout layout{varid, 8, false, {kZ, kY, kX}};
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<double>(i) + varid;
    const auto begin = static_cast<std::size_t>(z * kY * kX), size = static_cast<std::size_t>(planes * kY * kX);
    const auto piece = std::span(data_).subspan(begin, size);
    const Item item{&layout, Piece{varid, {z, 0, 0}, {planes, kY, kX}, {}}, std::as_writable_bytes(piece)};
    const auto written = client.write(kToken, 0, *order_, {&item, 1});
    if (!written.ok() || *written != NC_NOERR) return false;
    order_->know(order_->end_call());
    return true;
  }

  /// A process of a program: does `first`, stops until it is told to go on, does `then`, and ends by SIGKILL, or with
  /// code 1 if one of them failed.
  pid_t run(std::function<bool()> first, std::function<bool()> then) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(120);  // whatever happens, no orphan stays
      bool fine = first();
      ::raise(SIGSTOP);
      fine = fine && then();
      if (fine) ::raise(SIGKILL);
      ::_exit(1);
    }
    programs_.push_back(pid);
    EXPECT_TRUE(WIFSTOPPED(wait_for_change(pid)));
    return pid;
  }
  /// A process of a program that has no other way to move data than by its own doing. It is stopped when it touches
  /// what it cannot, and never goes on.
  pid_t run_until_stuck(const std::function<void(Client &)> &work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(120);
      move_data_by_own_doing();
      std::signal(SIGSEGV, [](int) { ::raise(SIGSTOP); });
      if (const auto client = connect()) work(*client);
      ::_exit(1);
    }
    programs_.push_back(pid);
    EXPECT_TRUE(WIFSTOPPED(wait_for_change(pid)));
    return pid;
  }
  /// The same with a program that creates `path_` and then writes all of a variable to it.
  pid_t run_to_put() {
    auto client = std::make_shared<std::unique_ptr<Client>>();
    return run(
        [this, client] {
          *client = connect();
          create(**client, path_, 1);
          return true;
        },
        [this, client] { return put_pieces(**client, 0, 4); });
  }
  void expect_killed(pid_t pid) {
    ::kill(pid, SIGCONT);
    const int status = wait_for_change(pid);
    std::erase(programs_, pid);
    EXPECT_TRUE(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  /// Nothing is left to be drained of any file, and `files` were.
  void wait_until_drained(Client &client, std::size_t files) {
    const auto deadline = Deadline::in(kWatchdog);
    for (int server = 0; server < client.servers(); ++server)
      while (client.report(server)->drained.size() < files && !deadline.passed()) ::usleep(1000);
    ASSERT_TRUE(client.settle({{}, path_}).ok());
    for (int server = 0; server < client.servers(); ++server) EXPECT_TRUE(client.report(server)->failures.empty());
  }

  /// The bytes of variable `varid`, whose data end `after` variables before the file's end.
  bool in_file(int varid, int after) {
    const auto bytes = contents(path_);
    const auto behind = kVariableBytes * static_cast<std::size_t>(after + 1);
    if (bytes.size() < behind) return false;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      std::uint64_t word = 0;
      const double value = static_cast<double>(i) + varid;
      std::memcpy(&word, &value, 8);
      word = __builtin_bswap64(word);
      if (std::memcmp(&word, bytes.data() + bytes.size() - behind + i * 8, 8) != 0) return false;
    }
    return true;
  }

  static constexpr FileToken kToken = 77;
  std::optional<Order> order_;
  std::string folder_, path_, mounted_;
  std::vector<std::unique_ptr<Daemon>> daemons_;
  std::vector<pid_t> programs_;
  std::vector<double> data_ = std::vector<double>(kZ * kY * kX);
};

}  // namespace staging::testing
