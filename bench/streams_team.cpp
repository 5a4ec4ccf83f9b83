// SPDX-License-Identifier: BSD-3-Clause
#include "streams_team.hpp"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace bench {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::streams::Reader;
using nessie::streams::Reading;
using nessie::streams::StepState;
using nessie::streams::Writer;

namespace {

constexpr const char *kStream = "bench";
constexpr auto kTeamLimit = std::chrono::seconds(300), kPatience = std::chrono::seconds(60);
constexpr auto kEnd = std::chrono::milliseconds(10'000);

}  // namespace

Deadline soon() { return Deadline::in(kPatience); }

// --- the server -------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<StreamsServer>> StreamsServer::start(const std::string &transport,
                                                            const std::vector<std::string> &settings) {
  std::vector<std::string> command{sibling("nessie-streams"), "--listen", transport};
  command.insert(command.end(), {"--set", fmt::format("streams.name=bench-{}", ::getpid())});
  for (const auto &setting : settings) command.insert(command.end(), {"--set", setting});
  const auto is_log = [](const std::string &setting) { return setting.starts_with("streams.log="); };
  if (std::ranges::none_of(settings, is_log)) command.insert(command.end(), {"--log", "none"});
  std::unique_ptr<StreamsServer> server(new StreamsServer);
  server->program_ = std::make_unique<Partner>(
      [&](int, int to_parent) -> int { exec_program(command, {}, to_parent, STDERR_FILENO); });
  for (char letter = 0; server->program_->read_value(letter) && letter != '\n';) server->at_ += letter;
  if (server->at_.find("://") != std::string::npos) return server;
  return Error{Code::kIo, fmt::format("{} did not start", command.front())};
}

StreamsServer::~StreamsServer() {
  if (!program_) return;
  ::kill(program_->pid(), SIGTERM);
  (void)program_->wait(kEnd);
}

double StreamsServer::resident_bytes() const {
  std::ifstream status(fmt::format("/proc/{}/status", program_->pid()));
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}

// --- those who write and read -------------------------------------------------------------------------------------------

Result<Writer> open_writer(const std::string &at, int rank, int size, int readers) {
  nessie::streams::WriterOptions options;
  options.rank = rank;
  options.size = size;
  options.at = at;
  options.await_readers = readers;
  return Writer::open(kStream, options, soon());
}

Result<Reader> open_reader(const std::string &at, int rank, int size, Reading reading) {
  nessie::streams::ReaderOptions options;
  options.rank = rank;
  options.size = size;
  options.at = at;
  options.reading = reading;
  options.group = 1;
  return Reader::open(kStream, options, soon());
}

// --- what is written and read -----------------------------------------------------------------------------------------

StepArray::StepArray(std::uint64_t size_bytes, int rank, int size) {
  const auto count = static_cast<std::int64_t>(std::max<std::uint64_t>(1, size_bytes / sizeof(double)));
  box_ = {{rank * count}, {count}};
  all_ = count * size;
  own_.assign(static_cast<std::size_t>(count), 1);
}

Status StepArray::define(Writer &writer) const {
  return writer.define({"x", nessie::streams::Type::kDouble, {all_}, {}, false});
}

Status StepArray::put(Writer &writer, Putting how) {
  if (how == Putting::kSpan) {
    void *memory = nullptr;
    auto status = span(writer, memory);
    if (status.ok()) fill(writer, memory);
    return status;
  }
  own_.front() = own_.back() = static_cast<double>(writer.step());
  return how == Putting::kLent ? writer.put_lent("x", box_, own_.data()) : writer.put("x", box_, own_.data());
}

Status StepArray::span(Writer &writer, void *&memory) const {
  const auto got = writer.span("x", box_);
  if (!got.ok()) return got.error();
  memory = *got;
  return {};
}

void StepArray::fill(const Writer &writer, void *memory) const {
  std::fill_n(static_cast<double *>(memory), own_.size(), static_cast<double>(writer.step()));
}

Status StepArray::get(Reader &reader) {
  auto status = reader.get("x", box_, own_.data(), own_.size() * sizeof(double), soon());
  if (!status.ok()) return status;
  const auto step = static_cast<double>(reader.step());
  if (own_.front() == step && own_.back() == step) return {};
  return Error{Code::kBadMessage, fmt::format("step {} has the values {} and {}", step, own_.front(), own_.back())};
}

Status write_step(Writer &writer, const std::function<Status()> &work) {
  const auto begun = writer.begin_step(soon());
  if (!begun.ok()) return begun.error();
  if (*begun != StepState::kOk) return Error{Code::kTimedOut, "the readers of the workload did not come"};
  if (auto status = work(); !status.ok()) return status;
  return writer.end_step(soon());
}

// --- the crew ---------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Board>> run_streams_crew(int members, const Duty &duty) {
  return run_crew(members, Housing::kProcesses, kTeamLimit, duty);
}

}  // namespace bench
