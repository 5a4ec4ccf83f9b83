// SPDX-License-Identifier: BSD-3-Clause
#include "file_streams.hpp"

#include "process.hpp"

#include <base/fd.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <utility>

namespace nessie::cli {

namespace {

constexpr std::chrono::seconds kEndGrace{5};

}  // namespace

/// Who reads has the user's own credential, as this process; the staging servers have the run's.
Result<FileStreams> FileStreams::start(const FileStreamsOptions &options, const Signals &signals) {
  SpawnOptions streams;
  streams.command = {options.program};
  streams.environment = Environment::current();
  streams.environment.unset("NESSIE_SERVERS");
  streams.environment.set("NESSIE_STREAMS_FILES", options.pattern);
  streams.environment.set("NESSIE_STREAMS_FILES_OF", fmt::format("{}", fmt::join(options.staging_urls, " ")));
  streams.environment.set("NESSIE_STREAMS_FILES_CREDENTIAL", options.credential);
  streams.own_process_group = streams.stdout_to_stderr = true;
  streams.death_signal = SIGTERM;
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  streams.stdin_fd = nothing.get();
  const auto pid = spawn(std::move(streams), signals);
  if (!pid) return pid.error();
  return FileStreams(*pid);
}

bool FileStreams::note_exit(pid_t pid) {
  if (pid != pid_ || pid <= 0) return false;
  pid_ = -1;
  return !is_ending_;
}

void FileStreams::end(std::chrono::milliseconds linger, const std::function<void()> &turn,
                      const std::function<bool()> &has_given_up) {
  is_ending_ = true;
  if (is_running()) ::kill(pid_, SIGTERM);
  for (const auto deadline = Deadline::in(linger + kEndGrace); is_running(); turn())
    if (deadline.passed() || has_given_up()) ::kill(pid_, SIGKILL);
}

}  // namespace nessie::cli
