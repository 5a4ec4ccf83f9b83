// SPDX-License-Identifier: BSD-3-Clause
#include "file_streams.hpp"

#include "process.hpp"

#include <base/fd.hpp>
#include <services/streams/places.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace nessie::cli {

namespace {

constexpr std::chrono::seconds kEndGrace{5}, kStart{10};

/// Until there is something to read, or nobody writes any more.
void await_word(const Fd &from, Deadline deadline) {
  pollfd waiting{from.get(), POLLIN, 0};
  while (!deadline.passed() && ::poll(&waiting, 1, 100) <= 0) continue;
}

}  // namespace

/// Who reads has the user's own credential, as this process; the staging servers have the run's.
Result<FileStreams> FileStreams::start(const FileStreamsOptions &options, const Signals &signals) {
  SpawnOptions streams;
  streams.command = {options.program};
  streams.environment = Environment::current();
  streams.environment.unset("NESSIE_SERVERS");
  if (!streams.environment.get("NESSIE_STREAMS_NAME"))  // runs of one user have each their own
    streams.environment.set("NESSIE_STREAMS_NAME", ::streams::name_of_run(::getpid()));
  ::streams::forget_ended_runs();
  streams.environment.set("NESSIE_STREAMS_FILES", options.pattern);
  streams.environment.set("NESSIE_STREAMS_FILES_OF", fmt::format("{}", fmt::join(options.staging_urls, " ")));
  streams.environment.set("NESSIE_STREAMS_FILES_CREDENTIAL", options.credential);
  streams.own_process_group = true;
  streams.death_signal = SIGTERM;
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  streams.stdin_fd = nothing.get();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kIo, "there are no descriptors left", Scope::kOperation, errno};
  Fd said(ends[0]), says(ends[1]);
  streams.stdout_fd = says.get();
  const auto pid = spawn(std::move(streams), signals);
  if (!pid) return pid.error();
  says.reset();
  await_word(said, Deadline::in(kStart));
  return FileStreams(*pid, std::move(said));
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
