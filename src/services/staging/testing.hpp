// SPDX-License-Identifier: BSD-3-Clause
// For tests: the whole service in one process. Servers, with one I/O thread between them, which is also where
// a test calls native PnetCDF.
#pragma once

#include <service/host.hpp>
#include <services/staging/client/watcher.hpp>
#include <services/staging/file_testing.hpp>
#include <services/staging/handle.hpp>
#include <services/staging/server/server.hpp>

#include <mpi.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <random>
#include <thread>

namespace staging {

/// What a test does to a server, or sees of it, that nobody else does. In the thread of the server.
class ServerInside {
  template <class Work> static auto within(Server &server, Work work) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    server.runtime_.post([&] { task(); });
    return result.get();
  }

 public:
  /// Turns a bit of the dirty page that has the element; false: there is none.
  static bool turn_a_bit(Server &server, FileToken token, std::int32_t varid, std::int64_t element) {
    return within(server, [&] {
      auto &cached = *server.find(token)->find(varid)->cached;
      const auto page = cached.pages.find(element / cached.page_elements);
      const bool is_there = page != cached.pages.end() && page->second->covers({element, element + 1});
      if (is_there) *page->second->at(element) ^= std::byte{4};
      return is_there;
    });
  }
  /// Whether another server has had a second copy all the time.
  static bool has_kept_its_copy(Server &server) {
    return within(server, [&] {
      return server.former_.empty() && server.replicated_.journal && server.replicated_.journal->is_whole();
    });
  }
  /// As if a drain had been given up.
  static void lose(Server &server, FileToken token) {
    within(server, [&] { return server.find(token)->remember(NC_EWRITE), 0; });
  }
};

}  // namespace staging

namespace staging::testing {

/// The thread that initialised MPI.
class IoThread {
 public:
  static IoThread &get() {
    static IoThread instance;
    return instance;
  }
  Worker &queue() { return queue_; }
  /// Runs `work` there.
  template <class Work> auto run(Work work) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    queue_.submit(Worker::Lane::kRequest, [&] { task(); });
    return result.get();
  }

 private:
  /// MPI changes the environment, which others read, until it is there.
  IoThread() : thread_([this] { live(); }) { is_ready_.get_future().wait(); }
  ~IoThread() {
    queue_.stop();
    thread_.join();
  }
  void live() {
    for (auto [name, value] : {std::pair{"OMPI_MCA_io", "romio321"},
                               {"OMPI_MCA_btl", "self"},
                               {"OMPI_MCA_pml", "ob1"},
                               {"OMPI_MCA_ess_singleton_isolated", "1"}})
      ::setenv(name, value, 0);
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    is_ready_.set_value();
    queue_.run();
    MPI_Finalize();
  }

  Worker queue_;
  std::promise<void> is_ready_;
  std::thread thread_;
};

/// Servers and a folder for files.
class Service {
 public:
  Service(int servers, Mode mode, std::uint64_t memory_bytes, const std::string &transport = "inproc",
          std::chrono::milliseconds client_timeout = std::chrono::seconds(30), bool has_boards = false,
          const DrainOptions &drain = {}, const std::string &durability = {},
          std::uint64_t log_bytes = ServerOptions{}.log_bytes) {
    std::string folder = ::testing::TempDir() + "staging-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    for (int index = 0; index < servers; ++index) {
      ServerOptions options;
      options.index = static_cast<std::uint32_t>(index);
      options.servers = static_cast<std::uint32_t>(servers);
      options.mode = mode;
      options.memory_bytes = memory_bytes;
      options.drain = drain;
      options.ledger_path = file("ledger." + std::to_string(index));
      options.client_timeout = client_timeout;
      if (has_boards) options.board_path = board(index);
      if (!durability.empty()) {
        options.durability = *DurabilityRules::parse(durability);
        options.log_path = file("log." + std::to_string(index));
        options.log_bytes = log_bytes;
      }
      nessie::service::HostOptions process;
      process.runtime.endpoint.transports = {transport};
      process.main_thread = &IoThread::get().queue();
      prepare_runtime(process.runtime);
      hosts_.push_back(*nessie::service::Host::open(std::move(process)));
      auto &host = *hosts_.back();
      const auto server =
          host.start({.name = "staging"}, [&](const auto &context) { return Server::start(context, options); });
      EXPECT_TRUE(server.ok()) << server.error().message;
      urls_ += host.runtime().url() + " ";
      servers_.push_back(static_cast<Server *>(*server));
      threads_.emplace_back([&host] { host.run(); });
    }
  }
  ~Service() {
    stop();
    std::filesystem::remove_all(folder_);
  }
  void stop() {
    for (auto &host : hosts_) host->end();
    for (auto &thread : threads_) thread.join();
    threads_.clear();
  }

  std::unique_ptr<Client> client(const std::vector<std::pair<std::string, std::string>> &settings = {}) {
    nessie::Config config;
    config.set("servers", urls_);
    for (const auto &[key, value] : settings) config.set(key, value);
    auto client = Client::connect(config, "test");
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(*client) : nullptr;
  }
  std::unique_ptr<Watcher> watcher() {
    nessie::Config config;
    config.set("servers", urls_);
    auto watcher = Watcher::connect(config, nessie::Deadline::in(std::chrono::seconds(60)));
    EXPECT_TRUE(watcher.ok()) << watcher.error().message;
    return watcher.ok() ? std::move(*watcher) : nullptr;
  }
  const std::string &urls() const { return urls_; }
  std::string file(const std::string &name) const { return folder_ + "/" + name; }
  std::string board(int server) const { return file("board." + std::to_string(server)); }
  Server &server(int index) { return *servers_[static_cast<std::size_t>(index)]; }
  /// After stop().
  ReportResult report(int server) const { return servers_[static_cast<std::size_t>(server)]->report(); }

 private:
  std::string folder_, urls_;
  std::vector<std::unique_ptr<nessie::service::Host>> hosts_;
  std::vector<Server *> servers_;
  std::vector<std::thread> threads_;
};

/// The schema of the tests: a box of ints, a small scalar, and a record variable of doubles.
struct Schema {
  static constexpr std::int64_t kZ = 40, kY = 60, kX = 70, kRecordY = 200, kRecordX = 210;
  static std::vector<Definition> definitions() {
    return {dim("time", NC_UNLIMITED),
            dim("z", kZ),
            dim("y", kY),
            dim("x", kX),
            dim("ry", kRecordY),
            dim("rx", kRecordX),
            var("box", NC_INT, {1, 2, 3}),
            var("scalar", NC_SHORT, {}),
            var("history", NC_DOUBLE, {0, 4, 5})};
  }
  static VariableLayout box() { return {0, 4, false, {kZ, kY, kX}}; }
  static VariableLayout scalar() { return {1, 2, false, {}}; }
  static VariableLayout history() { return {2, 8, true, {0, kRecordY, kRecordX}}; }
};

/// Random bytes for a piece.
inline std::vector<std::byte> random_data(const VariableLayout &layout, const Piece &piece, std::mt19937 &random) {
  std::vector<std::byte> data(static_cast<std::size_t>(piece.elements() * layout.element_bytes));
  for (auto &byte : data) byte = static_cast<std::byte>(random());
  return data;
}

}  // namespace staging::testing
