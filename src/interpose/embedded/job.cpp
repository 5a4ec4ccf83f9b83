// SPDX-License-Identifier: BSD-3-Clause
// Who of a job's processes has which server, and how all hear where they are. What is collective here goes by
// MPI_COMM_WORLD: after MPI_Init and before MPI_Finalize nobody else uses it.
#include <interpose/embedded/embedded_abi.h>
#include <interpose/embedded/own_pnetcdf.hpp>
#include <interpose/embedded/server.hpp>
#include <interpose/embedded/signals.hpp>

#include <services/staging/board.h>
#include <base/file.hpp>
#include <base/log.hpp>
#include <nnti/transport/transport.hpp>
#include <services/launch/client/client.hpp>
#include <xdr/codec.hpp>

#include <fmt/format.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace embedded {

namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Status;
using Bytes = std::vector<std::byte>;

constexpr int kCredentialText = 64;
constexpr auto kMoment = std::chrono::microseconds(100);

/// What the process of a server tells all others.
struct Card {
  std::array<char, 4096> url;
  std::array<char, 1024> why;  ///< it could not start; empty: it did
};

/// Waits without taking a processor from the servers. False: it is not over by then.
bool wait(MPI_Request &request, Deadline deadline) {
  for (int over = 0;;) {
    PMPI_Test(&request, &over, MPI_STATUS_IGNORE);
    if (over != 0) return true;
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(kMoment);
  }
}

template <std::size_t n> void put(const std::string &text, std::array<char, n> &place) {
  place.fill('\0');
  text.copy(place.data(), n - 1);
}

/// For ledgers and reports: the run's, if this node has it; otherwise a new one.
class Folder {
 public:
  explicit Folder(const nessie::Config &config) : path_(config.get_or("staging.run_dir", "")) {
    std::error_code ignored;
    if (!path_.empty() && ::access(path_.c_str(), W_OK | X_OK) == 0) return;
    path_ = std::filesystem::temp_directory_path(ignored).string() + "/nessie-embedded-XXXXXX";
    is_own_ = ::mkdtemp(path_.data()) != nullptr;
  }
  ~Folder() {
    std::error_code ignored;
    if (is_own_) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder &) = delete;
  const std::string &path() const { return path_; }
  bool is_the_runs() const { return !is_own_; }

 private:
  std::string path_;
  bool is_own_ = false;
};

class Job {
 public:
  void begin(int servers, void (*ending)()) {
    ending_of_process_ = ending;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    PMPI_Comm_size(MPI_COMM_WORLD, &size_);
    servers_ = std::min(servers, size_);
    auto status = prepare();
    meet_all();
    agree_on_credential(status);
    if (status.ok()) status = start_or_say_why();
    tell_all(status);
    end_with_mpi();
  }
  /// Collective.
  void end() {
    ending_of_process_();
    MPI_Request all{};
    PMPI_Ibarrier(MPI_COMM_WORLD, &all);
    (void)wait(all, Deadline::never());
    const std::lock_guard lock(ending_);
    bring_to_first(end_own());
    let_go();
  }
  /// Also where a signal ends the process.
  void leave() {
    const std::lock_guard lock(ending_);
    keep(end_own());
    let_go();
  }
  const nessie_embedded_servers &where() const { return where_; }

 private:
  /// What a server has done, and where that belongs.
  struct Report {
    std::string name;  ///< of a file in the run's folder; empty: there was no server
    Bytes bytes;
  };
  int rank_of(int server) const { return static_cast<int>(static_cast<long>(server) * size_ / servers_); }
  std::optional<int> own_index() const;
  Status prepare();
  void meet_all() const;
  void agree_on_credential(Status &status);
  Status start_or_say_why();
  Status start_own();
  void tell_all(const Status &status);
  Report end_own();
  void let_go();
  static void end_with_mpi();
  void keep(const Report &report) const;
  void bring_to_first(const Report &report) const;

  int rank_ = 0, size_ = 1, servers_ = 1;
  nessie::Config config_;
  std::string credential_, urls_, why_;
  std::optional<Folder> folder_;  ///< the process has a server, or is the first
  void (*ending_of_process_)() = nullptr;
  std::mutex ending_;  ///< whoever ends the server holds it until that is over
  std::unique_ptr<Server> server_;
  nessie_embedded_servers where_{};
};

Status Job::prepare() {
  int level = 0;
  auto config = nessie::Config::load();
  if (!config.ok()) return config.error();
  config_ = *std::move(config);
  PMPI_Query_thread(&level);
  if (level >= MPI_THREAD_MULTIPLE) return {};
  return Error{Code::kUnsupported, "this MPI has no MPI_THREAD_MULTIPLE, which servers in its processes need"};
}

/// A process that has been left out, or has none of this, would be waited for for ever.
void Job::meet_all() const {
  const auto wanted = launch::start_timeout(config_);
  const auto timeout = wanted.ok() ? *wanted : *launch::start_timeout(nessie::Config());
  const auto deadline = Deadline::in(timeout);
  MPI_Request all{};
  PMPI_Ibarrier(MPI_COMM_WORLD, &all);
  if (wait(all, deadline)) return;
  nessie::log::error(
      "not all processes of the job came to start their staging servers within {} s: LD_PRELOAD and NESSIE_SERVERS "
      "must be the same for all, also on other nodes (NESSIE_RUN_START_TIMEOUT gives them longer)",
      std::chrono::duration_cast<std::chrono::seconds>(timeout).count());
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

/// No process has two: there are not more servers than processes.
std::optional<int> Job::own_index() const {
  for (int server = 0; server < servers_; ++server)
    if (rank_of(server) == rank_) return server;
  return std::nullopt;
}

/// The run's, or else the first process's word.
void Job::agree_on_credential(Status &status) {
  credential_ = config_.get_or("credential", "");
  if (credential_.empty() && rank_ == 0) credential_ = nessie::Credential::generate().to_hex();
  credential_.resize(kCredentialText);
  PMPI_Bcast(credential_.data(), kCredentialText, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (const auto read = nessie::Credential::from_hex(credential_); !read.ok() && status.ok()) status = read.error();
}

/// "2 /folder"
std::pair<int, std::string> prepared_boards() {
  const char *value = ::getenv(NESSIE_BOARD_VARIABLE);
  std::istringstream words(value == nullptr ? "" : value);
  int count = 0;
  std::string folder;
  words >> count >> std::ws;
  std::getline(words, folder);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return {0, ""};
  return {count, folder};
}

Status Job::start_or_say_why() {
  try {
    return start_own();
  } catch (const std::exception &error) {  // the C++ library's: no memory, no thread
    return Error{Code::kNoMemory,
                 fmt::format("there is no room for a staging server in process {}: {}", rank_, error.what())};
  }
}

Status Job::start_own() {
  const auto index = own_index();
  if (index || rank_ == 0) folder_.emplace(config_);
  if (!index) return {};
  if (auto status = load_own_pnetcdf(); !status.ok()) return status;
  nnti::prepare_environment();
  const auto credential = nessie::Credential::from_hex(credential_);
  if (!credential.ok()) return credential.error();
  auto [most_boards, boards] = prepared_boards();
  auto server =
      Server::start({config_, *credential, *index, servers_, folder_->path(), std::move(boards), most_boards});
  if (!server.ok()) return server.error();
  server_ = *std::move(server);
  return {};
}

/// There are all servers, or none.
void Job::tell_all(const Status &status) {
  for (int index = 0; index < servers_; ++index) {
    Card card{};
    if (server_ != nullptr) put(server_->url(), card.url);
    if (!status.ok()) put(status.error().message, card.why);
    PMPI_Bcast(&card, sizeof card, MPI_BYTE, rank_of(index), MPI_COMM_WORLD);
    urls_.append(urls_.empty() ? "" : " ").append(card.url.data());
    if (why_.empty()) why_ = card.why.data();
  }
  if (!why_.empty()) server_.reset();
  if (server_ != nullptr && !finish_before_ending([this] { leave(); }))
    nessie::log::warning("a signal that ends this process will end its staging server with it");
  where_ = {why_.empty() ? urls_.c_str() : nullptr, credential_.c_str(), why_.c_str()};
}

// --- the end ---------------------------------------------------------------------------------------------------------

Job::Report Job::end_own() {
  if (server_ == nullptr) return {};
  const auto report = server_->end();
  if (!folder_->is_the_runs())  // nobody else will tell
    for (const auto &file : report.failures)
      nessie::log::error("{}: {} of {} bytes are in the file: {}", file.path, file.bytes_in_file,
                         file.bytes_acknowledged, file.message);
  return {server_->report_name(), xdr::encode(report)};
}

/// When the report is where it belongs: until then the ledger tells.
void Job::let_go() {
  server_.reset();
  folder_.reset();
}

void Job::keep(const Report &report) const {
  if (report.name.empty() || !folder_ || !folder_->is_the_runs()) return;
  const std::string_view text(reinterpret_cast<const char *>(report.bytes.data()), report.bytes.size());
  const auto path = fmt::format("{}/{}", folder_->path(), report.name);
  if (auto status = nessie::write_file(path, text); !status.ok())
    nessie::log::warning("no report: {}", status.error().message);
  (void)::chmod(path.c_str(), 0600);  // whatever the program's mask is
}

/// The first process is where the run is, more often than others.
void Job::bring_to_first(const Report &report) const {
  constexpr int kTag = 0;
  const bool is_at_home = folder_ && (folder_->is_the_runs() || rank_ == 0);
  if (is_at_home) keep(report);
  const int size = is_at_home ? 0 : static_cast<int>(report.bytes.size());
  std::vector<int> sizes(static_cast<std::size_t>(size_));
  MPI_Request gathered{};
  PMPI_Igather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD, &gathered);
  (void)wait(gathered, Deadline::never());
  if (size > 0) PMPI_Send(report.bytes.data(), size, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  if (rank_ != 0) return;
  Report brought;
  for (int from = 1; from < size_; ++from) {
    const int coming = sizes[static_cast<std::size_t>(from)];
    if (coming == 0) continue;
    brought.name = fmt::format("server.of-rank-{}.{}.report", from, ::getpid());
    brought.bytes.resize(static_cast<std::size_t>(coming));
    PMPI_Recv(brought.bytes.data(), coming, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    keep(brought);
  }
}

Job &job() {
  static Job job;
  return job;
}

int end_job(MPI_Comm, int, void *, void *) {
  job().end();
  return MPI_SUCCESS;
}

/// MPI_Finalize gives up the attributes of MPI_COMM_SELF first, those that came first last: MPI still works, and what
/// the program does there is done.
void Job::end_with_mpi() {
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_job, &key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  PMPI_Comm_free_keyval(&key);  // it lives on in the attribute
}

const nessie_embedded_servers *begin(int servers, int speech, void (*ending)()) {
  nessie::log::set_descriptor(speech);
  job().begin(servers, ending);
  return &job().where();
}

}  // namespace

}  // namespace embedded

extern "C" {

/// Nothing that is static in this library is ever destroyed: its threads go on until the process has ended.
int __cxa_atexit(void (*)(void *), void *, void *) { return 0; }

__attribute__((visibility("default"))) const nessie_embedded_job *nessie_embedded_job_functions(void) {
  static const nessie_embedded_job functions{embedded::begin, [] { embedded::job().leave(); }};
  return &functions;
}

}  // extern "C"
