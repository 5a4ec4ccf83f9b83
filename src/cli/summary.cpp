// SPDX-License-Identifier: BSD-3-Clause
#include "summary.hpp"

#include "launcher.hpp"
#include "log_folder.hpp"
#include "speech.hpp"

#include <base/config.hpp>
#include <base/printable.hpp>
#include <services/staging/report_json.hpp>

#include <fmt/format.h>

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nessie::cli {

namespace {

using staging::FileReport;
using staging::ReportResult;

constexpr double kWorthTelling = 2;  // seconds of starting
constexpr std::size_t kMaxFilesListed = 8;
constexpr std::size_t kMaxRangesListed = 8;

double rate(std::uint64_t bytes, double seconds) { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }

void join_by_path(const std::vector<FileReport> &reports, std::vector<FileReport> &files) {
  for (const auto &report : reports) {
    auto same =
        std::find_if(files.begin(), files.end(), [&](const FileReport &file) { return file.path == report.path; });
    if (same == files.end()) {
      files.push_back(report);
      continue;
    }
    same->bytes_acknowledged += report.bytes_acknowledged;
    same->bytes_in_file += report.bytes_in_file;
    same->missing.insert(same->missing.end(), report.missing.begin(), report.missing.end());
    if (same->nc_error == 0) same->nc_error = report.nc_error;
    if (same->message.empty()) same->message = report.message;
  }
}

void join_notes(const std::vector<std::string> &notes, std::vector<std::string> &all) {
  for (const auto &note : notes) {
    if (std::find(all.begin(), all.end(), note) == all.end()) all.push_back(note);
  }
}

void add(const ReportResult &report, Totals &totals) {
  auto &all = totals.all;
  for (const auto counter : {&ReportResult::bytes_pulled, &ReportResult::bytes_pushed, &ReportResult::bytes_drained,
                             &ReportResult::bytes_pending, &ReportResult::writes, &ReportResult::reads,
                             &ReportResult::files, &ReportResult::left_native})
    all.*counter += report.*counter;
  all.clients = std::max(all.clients, report.clients);
  all.memory_high_bytes = std::max(all.memory_high_bytes, report.memory_high_bytes);
  totals.perceived_bytes_per_s += rate(report.bytes_pulled, report.busy_pull_s);
  totals.durable_bytes_per_s += rate(report.bytes_drained, report.busy_drain_s);
  join_by_path(report.drained, all.drained);
  join_by_path(report.failures, all.failures);
  join_notes(report.native, all.native);
  if (!report.why_left.empty()) all.why_left = report.why_left;
}

double first_write_to_last_drain(const std::vector<ReportResult> &reports) {
  double first = 0, last = 0;
  for (const auto &report : reports) {
    if (report.first_write_s > 0) first = first > 0 ? std::min(first, report.first_write_s) : report.first_write_s;
    last = std::max(last, report.last_drain_s);
  }
  return std::max(0.0, last - first);
}

std::string format_rate(double bytes_per_s) {
  return fmt::format("{}/s", format_size(static_cast<std::uint64_t>(bytes_per_s)));
}

/// Why no process of the program came to the servers.
std::string why_nobody_came(const RunRecord &record) {
  if (const auto word = preload_in(record.command); !word.empty())
    return fmt::format("LD_PRELOAD was replaced by what starts the program ('{}'): add ':{}' to it", printable(word),
                       record.preload_library);
  return "no process of the program came to the servers: it opens no file with PnetCDF, or Nessie's library is not in "
         "front of it (`nessie check` tells), or it cannot reach the servers, which it says itself";
}

bool moved_nothing(const Totals &totals) { return totals.all.writes == 0 && totals.all.reads == 0; }

/// What the preloaded library says of every program that it is not in front of; most are none that would be staged.
bool is_about_preload(const std::string &note) { return note.starts_with("LD_PRELOAD was "); }

/// The note by which a process of the program has said itself why nothing was staged, the surer the better; or end().
auto note_that_is_the_reason(const RunRecord &record, const Totals &totals) {
  const bool may_be =
      moved_nothing(totals) && totals.all.native.empty() && record.broken_servers.empty() && totals.all.clients == 0;
  const auto sure = std::ranges::find_if_not(record.notes, is_about_preload);
  if (!may_be) return record.notes.end();
  return sure != record.notes.end() ? sure : record.notes.begin();
}

std::string describe_reason(const std::string &note, const RunRecord &record) {
  if (!is_about_preload(note)) return printable(note);
  return fmt::format("{}: if that is what calls PnetCDF, it needs ':{}' in LD_PRELOAD", printable(note),
                     record.preload_library);
}

/// Derived from what happened.
std::string why_nothing_was_staged(const RunRecord &record, const Totals &totals) {
  if (!totals.all.native.empty()) return "all files went native";
  if (totals.all.left_native > 0) return "all files were left to native PnetCDF";
  if (!record.broken_servers.empty() && totals.all.clients == 0)
    return "a staging server ended before it had stored anything";
  if (totals.all.files > 0) return "the servers opened or created files for the program, which moved no data itself";
  if (totals.all.clients > 0) return "the program's processes came to the servers, but moved no data";
  const auto reason = note_that_is_the_reason(record, totals);
  return reason != record.notes.end() ? describe_reason(*reason, record) : why_nobody_came(record);
}

std::string describe_notes(const RunRecord &record, const Totals &totals) {
  std::string text;
  const auto reason = note_that_is_the_reason(record, totals);
  for (auto note = record.notes.begin(); note != record.notes.end(); ++note) {
    if (note != reason)
      text += fmt::format("nessie: {}{}\n", is_about_preload(*note) ? "" : "not staged: ", printable(*note));
  }
  return text;
}

std::string describe_choice(const Totals &totals) {
  if (totals.all.left_native == 0) return {};
  return fmt::format("nessie: left to native PnetCDF: {}; {}\n", counted(totals.all.left_native, "file"),
                     printable(totals.all.why_left));
}

std::string describe_untold(const RunRecord &record) {
  std::string text;
  if (record.broken_at_work > 0)
    text += "nessie: a staging server ended before it told all that it had done: that is not in these numbers\n";
  if (record.untold_natives > 0)
    text += fmt::format("nessie: not staged, but native: {} more, which that server would have told\n",
                        counted(record.untold_natives, "file"));
  return text;
}

bool was_restarted(const ServersRecord &placement) {
  return std::ranges::any_of(placement.servers, [](const auto &server) { return !server.deaths.empty(); });
}

std::string describe_staged(const RunRecord &record, const Totals &totals) {
  if (moved_nothing(totals) && (record.broken_at_work > 0 || was_restarted(record.placement)))
    return "nessie: what was staged is not known\n";
  if (moved_nothing(totals))
    return fmt::format("nessie: nothing was staged: {}\n", why_nothing_was_staged(record, totals));
  std::string text =
      fmt::format("nessie: staged {} in {}", format_size(totals.all.bytes_pulled), counted(totals.all.writes, "write"));
  if (totals.perceived_bytes_per_s > 0)
    text += fmt::format(", at {} as the program saw it", format_rate(totals.perceived_bytes_per_s));
  if (totals.durable_bytes_per_s > 0)
    text += fmt::format("; into the files at {}", format_rate(totals.durable_bytes_per_s));
  if (totals.all.reads > 0)
    text += fmt::format("; read {} in {} reads", format_size(totals.all.bytes_pushed), totals.all.reads);
  return text + fmt::format("; {} of memory at most\n", format_size(totals.all.memory_high_bytes));
}

std::string describe_files(const std::vector<FileReport> &files) {
  std::string text;
  for (std::size_t i = 0; i < std::min(files.size(), kMaxFilesListed); ++i) {
    text += fmt::format("nessie:   {}: {}\n", printable(files[i].path), format_size(files[i].bytes_in_file));
  }
  if (files.size() > kMaxFilesListed)
    text += fmt::format("nessie:   … and {} more files\n", files.size() - kMaxFilesListed);
  return text;
}

std::uint64_t missing_bytes(const FileReport &file) {
  return file.bytes_acknowledged - std::min(file.bytes_acknowledged, file.bytes_in_file);
}

std::string describe_loss(const FileReport &file) {
  const auto missing = missing_bytes(file);
  std::string text = fmt::format("nessie: error: {}", printable(file.path));
  if (missing > 0 || file.message.empty())
    text += fmt::format(": {} ({} bytes) did not reach the file", format_size(missing), missing);
  if (!file.message.empty()) text += ": " + file.message;
  text += '\n';
  for (std::size_t i = 0; i < std::min(file.missing.size(), kMaxRangesListed); ++i) {
    text += fmt::format("nessie:   missing: {}\n", printable(file.missing[i]));
  }
  if (file.missing.size() > kMaxRangesListed) {
    text +=
        fmt::format("nessie:   … and {} more ranges (all of them: --json)\n", file.missing.size() - kMaxRangesListed);
  }
  return text;
}

// MPI-IO tells PnetCDF only that a write failed. When the file system has no room for what is missing, that is why.
void explain_full_disk(FileReport &file) {
  struct statvfs disk {};
  if (statvfs(file.path.c_str(), &disk) != 0) return;
  const auto free_bytes = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (free_bytes >= missing_bytes(file) || file.message.find(std::strerror(ENOSPC)) != std::string::npos) return;
  file.message +=
      fmt::format("{}{} ({} free)", file.message.empty() ? "" : ": ", std::strerror(ENOSPC), format_size(free_bytes));
}

std::vector<FileReport> all_losses(const RunRecord &record, const Totals &totals) {
  auto losses = totals.all.failures;
  join_by_path(record.lost, losses);
  for (auto &loss : losses) explain_full_disk(loss);
  return losses;
}

nlohmann::json to_json(const ServersRecord &placement) {
  const auto or_null = [](const std::string &text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(to_utf8(text));
  };
  auto servers = nlohmann::json::array();
  for (const auto &server : placement.servers)
    servers.push_back({{"index", servers.size()},
                       {"host", or_null(server.host)},
                       {"cores", or_null(server.cores)},
                       {"url", or_null(server.url)},
                       {"restarts", server.deaths.size()}});
  return {{"place", to_utf8(placement.place)}, {"started", or_null(placement.started)}, {"servers", servers}};
}

}  // namespace

namespace {

std::string describe_restarts(const ServersRecord &placement) {
  std::string text;
  for (std::size_t index = 0; index < placement.servers.size(); ++index)
    if (const auto &deaths = placement.servers[index].deaths; !deaths.empty())
      text += fmt::format(
          "nessie: staging server {} was started again{}, and went on from its log; what was done before that is not "
          "counted here\n",
          index, deaths.size() == 1 ? "" : fmt::format(" {} times", deaths.size()));
  return text;
}

}  // namespace

Totals add_up(const RunRecord &record) {
  Totals totals;
  for (const auto &report : record.reports) add(report, totals);
  totals.durable_s = first_write_to_last_drain(record.reports);
  return totals;
}

std::string describe_work(const RunRecord &record) {
  const auto totals = add_up(record);
  std::string text =
      fmt::format("nessie: the program ended with {} after {:.2f} s; ", record.program_exit_code, record.program_s);
  text += record.servers == 0
              ? "there were no staging servers\n"
              : fmt::format("{} ({}, {}) drained for {:.2f} s more\n", counted(record.servers, "staging server"),
                            record.mode, record.memory, record.drain_s);
  if (record.start_s > kWorthTelling)
    text += fmt::format("nessie: the servers took {:.1f} s to start\n", record.start_s);
  text += describe_restarts(record.placement);
  text += describe_staged(record, totals);
  text += describe_notes(record, totals);
  text += describe_files(totals.all.drained);
  for (const auto &note : totals.all.native)
    text += fmt::format("nessie: not staged, but native: {}\n", printable(note));
  return text + describe_choice(totals) + describe_untold(record);
}

std::string describe_trouble(const RunRecord &record) {
  std::string text;
  for (const auto &server : record.broken_servers) text += fmt::format("nessie: error: {}\n", server);
  if (record.gave_up) text += "nessie: error: the drain was given up\n";
  for (const auto &loss : all_losses(record, add_up(record))) text += describe_loss(loss);
  if (!record.kept_log.empty()) text += fmt::format("nessie: error: {}\n", describe_left(record.kept_log));
  return text;
}

nlohmann::json to_json(const RunRecord &record) {
  const auto totals = add_up(record);
  auto json = staging::to_json(totals.all);
  json.update({{"command", staging::to_json(record.command)},
               {"mode", record.mode},
               {"servers", record.servers},
               {"memory", record.memory},
               {"durability", record.durability},
               {"placement", to_json(record.placement)},
               {"program_exit_code", record.program_exit_code},
               {"exit_code", exit_code(record)},
               {"start_s", record.start_s},
               {"program_s", record.program_s},
               {"drain_s", record.drain_s},
               {"total_s", record.program_s + record.drain_s},
               {"durable_s", totals.durable_s},
               {"perceived_MBps", totals.perceived_bytes_per_s / 1e6},
               {"durable_MBps", totals.durable_bytes_per_s / 1e6},
               {"notes", staging::to_json(record.notes)},
               {"broken_servers", staging::to_json(record.broken_servers)},
               {"gave_up", record.gave_up},
               {"log", record.kept_log.empty() ? nlohmann::json() : nlohmann::json(to_utf8(record.kept_log))},
               {"failures", staging::to_json(all_losses(record, totals))}});
  return json;
}

int exit_code(const RunRecord &record) {
  if (record.program_exit_code != 0) return record.program_exit_code;
  const bool complete = record.broken_with_files == 0 && !record.gave_up && record.kept_log.empty() &&
                        all_losses(record, add_up(record)).empty();
  return complete ? 0 : kExitDataLost;
}

}  // namespace nessie::cli
