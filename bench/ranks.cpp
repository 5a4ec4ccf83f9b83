// SPDX-License-Identifier: BSD-3-Clause
#include "ranks.hpp"

#include <base/clock.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

constexpr auto kStart = std::chrono::seconds(60);
constexpr auto kLook = std::chrono::milliseconds(10), kEnd = std::chrono::milliseconds(10000);

/// `$0` is the folder. A name that is there is that of a whole file; then nothing in the folder is needed any more.
constexpr const char *kShell =
    "exec 3<\"$0/end\" && env -0 >\"$0/$$\" && mv \"$0/$$\" \"$0/rank.$OMPI_COMM_WORLD_RANK\" && read -r end <&3; "
    "exit 0";

std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Settings, each with a zero behind it.
std::vector<std::string> settings_in(const std::string &text) {
  std::vector<std::string> settings;
  for (std::size_t at = 0, end; (end = text.find('\0', at)) != std::string::npos; at = end + 1)
    settings.push_back(text.substr(at, end - at));
  return settings;
}

}  // namespace

Result<std::unique_ptr<Ranks>> Ranks::open(int count) {
  std::unique_ptr<Ranks> ranks(new Ranks);
  auto status = ranks->start(count);
  if (status.ok()) status = ranks->await(count);
  std::error_code error;
  if (!ranks->folder_.empty()) std::filesystem::remove_all(ranks->folder_, error);
  if (!status.ok()) return status.error();
  return ranks;
}

Status Ranks::start(int count) {
  std::string folder = std::filesystem::temp_directory_path() / "nessie-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return failed("no temporary folder can be made");
  folder_ = folder;
  const auto pipe = folder_ + "/end";
  if (::mkfifo(pipe.c_str(), 0600) != 0 || (end_ = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC)) < 0)
    return failed("no pipe can be made");
  const auto command = bench::mpiexec(count, {"sh", "-c", kShell, folder_}, mpi_options(count));
  mpiexec_ = std::make_unique<Partner>([&](int, int) {
    const auto output = folder_ + "/output";
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (out >= 0) exec_program(command, {}, out, out);
    return 1;
  });
  return {};
}

/// Until all shells have written down what makes a rank.
Status Ranks::await(int count) {
  const auto deadline = Deadline::in(kStart);
  for (int rank = 0; rank < count; ++rank) {
    const auto path = fmt::format("{}/rank.{}", folder_, rank);
    while (!std::filesystem::exists(path)) {
      if (mpiexec_->wait(kLook) != Partner::End::kNotYet) return failed("mpiexec ended");
      if (deadline.passed()) return failed("mpiexec does not start its processes");
    }
    environments_.push_back(settings_in(read_file(path)));
  }
  return {};
}

Error Ranks::failed(const std::string &why) const {
  const auto cause = errno;
  return {Code::kIo, fmt::format("no MPI job for the workload: {}\n{}", why, read_file(folder_ + "/output")),
          nessie::Scope::kOperation, cause};
}

Ranks::~Ranks() {
  if (end_ >= 0) ::close(end_);
  if (mpiexec_) (void)mpiexec_->wait(kEnd);
}

void Ranks::become(int rank) const {
  ::clearenv();
  for (const auto &setting : environments_[static_cast<std::size_t>(rank)])
    ::putenv(const_cast<char *>(setting.c_str()));
}

}  // namespace bench
