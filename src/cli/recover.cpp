// SPDX-License-Identifier: BSD-3-Clause
// Design notes. A staging server is started for each log, one after the other, as several may have parts of one file.
// It is told to end at once, so that it waits for nobody, and then it finishes what is there. What it tells is all that
// is told here; what it could not finish is in the log still.
#include "commands.hpp"

#include "installation.hpp"
#include "janitor.hpp"
#include "log_folder.hpp"
#include "logs.hpp"
#include "run_directory.hpp"
#include "servers.hpp"
#include "signals.hpp"
#include "speech.hpp"
#include "summary.hpp"

#include <base/config.hpp>
#include <base/credential.hpp>
#include <base/file.hpp>
#include <base/printable.hpp>
#include <services/staging/report_json.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kTurn = std::chrono::milliseconds(200), kGlance = std::chrono::milliseconds(5);

/// What has become of all files that were in the logs.
struct Recovered {
  std::map<std::string, staging::FileReport> files;  ///< by path; those that are complete have no message
  std::vector<std::string> broken;                   ///< servers that did not tell
  bool is_complete() const {
    return broken.empty() && std::ranges::all_of(files, [](const auto &file) { return file.second.message.empty(); });
  }
};

void add(const staging::FileReport &file, Recovered &recovered) {
  auto &known = recovered.files[file.path];
  known.path = file.path;
  known.bytes_acknowledged += file.bytes_acknowledged;
  known.bytes_in_file += file.bytes_in_file;
  known.missing.insert(known.missing.end(), file.missing.begin(), file.missing.end());
  if (!file.message.empty() && known.message != file.message)
    known.nc_error = file.nc_error, known.message += (known.message.empty() ? "" : "; ") + file.message;
}

/// False: it is no report.
bool add_report(const std::string &path, Recovered &recovered) {
  const auto text = read_file(path);
  const auto reports = staging::reports_in(text.ok() ? json::parse(*text, nullptr, false) : json());
  if (!reports) return false;
  for (const auto &file : *reports) add(file, recovered);
  return true;
}

class Recovery {
 public:
  Recovery(const Installation &installation, Logs logs, Signals signals, RunDirectory folder)
      : installation_(installation),
        logs_(std::move(logs)),
        signals_(std::move(signals)),
        folder_(std::move(folder)),
        janitor_({folder_.path()}, logs_.folder, credential_) {}

  /// A signal has ended it, if that is not 0.
  int execute() {
    for (const int index : logs_.servers)
      if (const int signal = finish(index)) return signal;
    for (const int index : logs_.servers) (void)::rmdir(logs_.path(index).c_str());
    (void)::rmdir(logs_.folder.c_str());
    return 0;
  }
  const Recovered &recovered() const { return recovered_; }

 private:
  int finish(int index) {
    auto started = ChildServers::start(options(index), folder_, signals_);
    if (!started.ok()) return recovered_.broken.push_back(started.error().message), 0;
    auto &servers = **started;
    while (servers.running(0)) {
      if (servers.all_listen()) servers.end();  // before, there would be nothing that it finished
      line_.show(fmt::format("server {} of {} puts what is in its log into the files", index, logs_.of));
      const auto signal = signals_.wait(Deadline::in(servers.all_listen() ? kTurn : kGlance).earlier(servers.due()));
      if (signal && asks_to_end(signal->number) && !signal->was_ignored) return signal->number;  // kills the server
      if (signal && stops_by_default(signal->number)) signals_.stop(signal->number);
      servers.reap();
      servers.look();
    }
    line_.hide();
    if (!add_report(folder_.file(fmt::format("server.{}.report", index)), recovered_))
      recovered_.broken.push_back(fmt::format("the server that was to finish what is in {} {}",
                                              printable(logs_.path(index)), servers.how_it_ended(0)));
    return 0;
  }

  ServerOptions options(int index) const {
    ServerOptions options;
    options.program = installation_.nessied;
    options.first = index;
    options.of = logs_.of;
    options.durability = kDefaultDurability;
    options.log_folder = logs_.folder;
    options.credential = credential_;
    options.arguments = {"--listen", "shm"};
    return options;
  }

  const Installation &installation_;
  const Logs logs_;
  const std::string credential_ = Credential::generate().to_hex();
  Signals signals_;
  RunDirectory folder_;
  Janitor janitor_;
  ProgressLine line_{false};
  Recovered recovered_;
};

std::vector<std::string> left_of(const Logs &logs) {
  std::vector<std::string> left;
  std::error_code ignored;
  for (const int index : logs.servers)
    if (fs::exists(logs.path(index), ignored)) left.push_back(logs.path(index));
  return left;
}

void print_text(const Recovered &recovered, const std::vector<std::string> &left) {
  for (const auto &[path, file] : recovered.files) {
    if (file.message.empty()) {
      fmt::print("{}: complete, {}\n", printable(path), format_size(file.bytes_acknowledged));
      continue;
    }
    fmt::print("{}: incomplete: {}\n", printable(path), printable(file.message));
    for (const auto &range : file.missing) fmt::print("  missing: {}\n", printable(range));
  }
  for (const auto &broken : recovered.broken) fmt::print("{}\n", broken);
  for (const auto &log : left) fmt::print("what is not in the files is kept in {}\n", printable(log));
  if (recovered.files.empty() && recovered.broken.empty() && left.empty())
    fmt::print("nothing to do: there is nothing that is not in the files\n");
}

void print_json(const Logs &logs, const Recovered &recovered, const std::vector<std::string> &left, int code) {
  std::vector<staging::FileReport> reports;
  for (const auto &[path, file] : recovered.files) reports.push_back(file);
  auto files = staging::to_json(reports);
  for (auto &file : files) file["complete"] = file["message"] == "";
  const json all = {{"folder", to_utf8(logs.folder)},
                    {"files", files},
                    {"errors", staging::to_json(recovered.broken)},
                    {"left", staging::to_json(left)},
                    {"exit_code", code}};
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

int recover(const RecoverOptions &options) {
  const auto logs = find_logs(options.folder);
  if (!logs.ok()) return (void)say_failure("recover", logs.error().message), 2;
  for (const int index : logs->servers)
    if (is_log_in_use(logs->path(index)))
      return say_failure("recover", fmt::format("a staging server has {} open, and puts what is in it into the files "
                                                "itself: wait for its end",
                                                printable(logs->path(index))));
  const auto installation = Installation::find();
  if (!installation) return say_failure("recover", installation.error().message);
  auto signals = Signals::open();
  if (!signals) return say_failure("recover", signals.error().message);
  auto folder = RunDirectory::make();
  if (!folder) return say_failure("recover", folder.error().message);
  Recovery recovery(*installation, *logs, *std::move(signals), *std::move(folder));
  if (const int signal = recovery.execute()) return 128 + signal;
  const auto left = left_of(*logs);
  const int code = recovery.recovered().is_complete() && left.empty() ? 0 : kExitDataLost;
  if (options.json)
    print_json(*logs, recovery.recovered(), left, code);
  else
    print_text(recovery.recovered(), left);
  return code;
}

}  // namespace nessie::cli
