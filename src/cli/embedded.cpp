// SPDX-License-Identifier: BSD-3-Clause
#include "embedded.hpp"

#include "losses.hpp"

#include <interpose/embedded/embedded_abi.h>
#include <services/staging/board.h>
#include <base/file.hpp>
#include <services/staging/server/board.hpp>
#include <xdr/codec.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;

constexpr int kJobsAtOnce = 8;

void add_report(const fs::path &path, RunRecord &record) {
  const auto text = read_file(path);
  if (!text.ok()) return;
  auto report = xdr::decode<staging::ReportResult>(std::as_bytes(std::span(*text)));
  if (report.ok()) record.reports.push_back(*std::move(report));
}

void add_killed(const std::string &folder, const std::string &board_folder, int place, RunRecord &record) {
  const auto remains = read_remains(folder, board_folder, place);
  if (remains.lost.ok() && remains.lost->empty() && !remains.had_files) return;  // it had finished
  add_broken("a process of the program ended with a staging server in it", remains, record);
}

}  // namespace

std::string embedded_servers(int count) { return fmt::format("{}{}", NESSIE_EMBEDDED_SCHEME, count); }

std::vector<std::string> put_servers_in(const EmbeddedStart &start, Environment &environment) {
  environment.append("LD_PRELOAD", start.library, ':');
  std::vector<std::string> names;
  const auto set = [&](const char *name, const std::string &value) {
    if (value.empty()) return;
    environment.set(name, value);
    names.emplace_back(name);
  };
  set("NESSIE_STAGING_MODE", start.mode);
  set("NESSIE_STAGING_MEMORY", start.memory);
  set("NESSIE_STAGING_LISTEN", start.transports);
  set("NESSIE_STAGING_RUN_DIR", start.folder);
  return names;
}

int prepare_boards(const std::string &folder, int servers) {
  const int wanted = std::min(servers * kJobsAtOnce, NESSIE_MOST_SERVERS);
  int made = 0;
  while (made < wanted && staging::Board::prepare(fmt::format("{}/board.{}", folder, made)).ok()) ++made;
  return made;
}

void collect_from(const std::string &folder, const std::string &board_folder, RunRecord &record) {
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".report") add_report(entry.path(), record);
  for (int place = 0; place < NESSIE_MOST_SERVERS; ++place)
    if (fs::exists(fmt::format("{}/server.{}.ledger", folder, place), error))
      add_killed(folder, board_folder, place, record);
}

}  // namespace nessie::cli
