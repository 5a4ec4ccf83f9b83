// SPDX-License-Identifier: BSD-3-Clause
#include "staging_team.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
namespace fs = std::filesystem;

/// Of the PnetCDF that `./dev burst-buffer` has built, beside our programs' folder, or of another.
fs::path burst_buffer_folder() {
  if (const char *folder = std::getenv("NESSIE_BENCH_BURST_BUFFER")) return folder;
  return fs::path(sibling("nessie-bench")).parent_path().parent_path() / "pnetcdf-burst-buffer/lib";
}

/// Waits until the pipe is closed. What we had started may go on writing for a moment, if we were killed.
[[noreturn]] void clean_up_after(int alive, const fs::path &path) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  setsid();
  char nothing;
  while (read(alive, &nothing, 1) < 0 && errno == EINTR) {}
  std::error_code error;
  for (int tries = 0; tries < 100 && fs::exists(path, error); ++tries) {
    fs::remove_all(path, error);
    if (error) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  _exit(0);
}

}  // namespace

Scratch::Scratch(bool in_memory) : in_memory_(in_memory && access("/dev/shm", W_OK) == 0) {
  const fs::path parent = in_memory_ ? "/dev/shm" : fs::temp_directory_path();
  std::string pattern = (parent / "nessie-bench-XXXXXX").string();
  if (mkdtemp(pattern.data())) path_ = pattern;
  int ends[2];
  if (path_.empty() || pipe2(ends, O_CLOEXEC) != 0) return;
  cleaner_ = fork();
  if (cleaner_ == 0) {
    close(ends[1]);
    clean_up_after(ends[0], path_);
  }
  close(ends[0]);
  alive_ = ends[1];
}

Scratch::~Scratch() {
  if (alive_ >= 0) close(alive_);
  if (cleaner_ > 0) waitpid(cleaner_, nullptr, 0);
}

void Scratch::clear() const {
  for (const auto &entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
}

// By the time of change, which is the kernel's own: a server gives a file the time of its close as that of its last
// write.
std::chrono::system_clock::time_point Scratch::last_change() const {
  std::chrono::nanoseconds last{};
  struct stat status {};
  for (const auto &entry : fs::recursive_directory_iterator(path_))
    if (::stat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      last = std::max(last,
                      std::chrono::seconds(status.st_ctim.tv_sec) + std::chrono::nanoseconds(status.st_ctim.tv_nsec));
  return std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(last));
}

std::vector<std::string> StagingTeam::command(int processes, const std::vector<std::string> &program,
                                              const std::string &mpi_io) {
  auto words = program;
  words.front() = sibling(words.front());
  words.insert(words.end(), {"--prefix", (files_.path() / "out").string()});
  return mpiexec(processes, words, {"--mca", "io", mpi_io});
}

Status StagingTeam::prepare(const StagingCase &c, const std::string &mpi_io) {
  files_.clear();
  log_.clear();
  if (c.before.empty()) return {};
  auto before = run_program(command(c.processes, c.before, mpi_io), limit_);
  return before ? Status() : before.error();
}

Result<StagingRun> StagingTeam::run(const std::vector<std::string> &command,
                                    const std::vector<std::string> &environment) {
  auto program = run_program(command, limit_, environment);
  if (!program) return program.error();
  return StagingRun{std::move(*program), files_.last_change()};
}

Result<Figures> StagingTeam::run_native(const StagingCase &c, const std::string &mpi_io) {
  if (auto status = prepare(c, mpi_io); !status.ok()) return status.error();
  auto finished = run(command(c.processes, c.program, mpi_io));
  return finished ? native_figures(*finished) : finished.error();
}

std::vector<std::string> StagingTeam::burst_buffer_environment(bool keep_log) const {
  const char *other = std::getenv("LD_LIBRARY_PATH");
  return {fmt::format("LD_LIBRARY_PATH={}{}{}", burst_buffer_folder().string(), other ? ":" : "", other ? other : ""),
          fmt::format("PNETCDF_HINTS=nc_burst_buf=enable;nc_burst_buf_overwrite=enable;nc_burst_buf_dirname={};"
                      "nc_burst_buf_del_on_close={}",
                      log_.path().string(), keep_log ? "disable" : "enable")};
}

Result<Figures> StagingTeam::run_with_burst_buffer(const StagingCase &c, const std::string &mpi_io) {
  if (auto status = prepare(c, mpi_io); !status.ok()) return status.error();
  auto finished = run(command(c.processes, c.program, mpi_io), burst_buffer_environment(false));
  return finished ? native_figures(*finished) : finished.error();
}

std::string StagingTeam::why_no_burst_buffer() {
  if (!fs::exists(burst_buffer_folder() / "libpnetcdf.so"))
    return "PnetCDF with its burst-buffer driver is not here: `./dev burst-buffer` builds it";
  files_.clear();
  log_.clear();
  auto probe =
      run(command(1, {"nessie-bench-contiguous", "--transfers", "1"}, kMpiIo.back()), burst_buffer_environment(true));
  if (!probe) return "PnetCDF's burst-buffer driver does not work: " + probe.error().message;
  const bool logged = !fs::is_empty(log_.path());
  log_.clear();
  return logged ? "" : fmt::format("the PnetCDF in {} keeps no log", burst_buffer_folder().string());
}

/// The same run, and who records that stream into a file, until both have ended.
std::vector<std::string> StagingTeam::recorded_beside(const std::vector<std::string> &run,
                                                      const std::string &stream) const {
  std::vector<std::string> words{"sh",
                                 "-c",
                                 R"("$0" stream record "$1" -o "$2" & shift 2; "$@" || exit 1; wait $!)",
                                 sibling("nessie"),
                                 stream,
                                 (log_.path() / "recorded.nc").string()};
  words.insert(words.end(), run.begin(), run.end());
  return words;
}

Result<Figures> StagingTeam::run_staged(const StagingCase &c, const std::string &mode, const std::string &mpi_io,
                                        const std::vector<std::string> &more) {
  if (auto status = prepare(c, mpi_io); !status.ok()) return status.error();
  summaries_.clear();
  const auto summary_path = (summaries_.path() / "summary.json").string();
  std::vector<std::string> words{sibling("nessie"), "run", "--quiet", "--mode", mode, "--json", summary_path};
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--");
  const auto program = command(c.processes, c.program, mpi_io);
  if (!c.between.empty()) words.insert(words.end(), {"sh", "-c", "NESSIE_BENCH_RUN=$PPID exec \"$@\"", "sh"});
  words.insert(words.end(), program.begin(), program.end());
  if (!c.recorded.empty()) words = recorded_beside(words, c.recorded);
  std::vector<std::string> environment;
  if (!c.between.empty()) environment.push_back("NESSIE_BENCH_BETWEEN=" + c.between);
  environment.push_back("XDG_RUNTIME_DIR=" + summaries_.path().string());  // servers of streams are others' nowhere
  auto finished = run(words, environment);
  if (!finished) return finished.error();
  std::ifstream file(summary_path);
  auto summary = nlohmann::json::parse(file, nullptr, false);
  if (summary.is_discarded()) return Error{Code::kIo, "`nessie run` left no summary in " + summary_path};
  return staged_figures(*finished, summary);
}

}  // namespace bench
