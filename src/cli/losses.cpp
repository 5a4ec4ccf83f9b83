// SPDX-License-Identifier: BSD-3-Clause
#include "losses.hpp"

#include <services/staging/board.h>
#include <base/file.hpp>
#include <services/staging/server/ledger.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <iterator>

namespace nessie::cli {

Status note_losses(const std::string &run_directory, int index, std::vector<staging::FileReport> &losses) {
  auto ledger = staging::read_ledger(fmt::format("{}/server.{}.ledger", run_directory, index));
  if (!ledger) return ledger.error();
  losses.insert(losses.end(), std::make_move_iterator(ledger->begin()), std::make_move_iterator(ledger->end()));
  return {};
}

namespace {

staging::FileReport file_of(const nlohmann::json &json) {
  staging::FileReport file;
  json.at("path").get_to(file.path);
  json.at("nc_error").get_to(file.nc_error);
  json.at("message").get_to(file.message);
  json.at("bytes_acknowledged").get_to(file.bytes_acknowledged);
  json.at("bytes_in_file").get_to(file.bytes_in_file);
  json.at("missing").get_to(file.missing);
  return file;
}

staging::ReportResult report_of(const nlohmann::json &json) {
  staging::ReportResult report;
  json.at("bytes_pulled").get_to(report.bytes_pulled);
  json.at("bytes_pushed").get_to(report.bytes_pushed);
  json.at("bytes_drained").get_to(report.bytes_drained);
  json.at("writes").get_to(report.writes);
  json.at("reads").get_to(report.reads);
  json.at("files").get_to(report.files);
  json.at("clients").get_to(report.clients);
  json.at("memory_high_bytes").get_to(report.memory_high_bytes);
  for (const auto &file : json.at("drained")) report.drained.push_back(file_of(file));
  for (const auto &file : json.at("failures")) report.failures.push_back(file_of(file));
  json.at("native").get_to(report.native);
  return report;
}

}  // namespace

Result<staging::ReportResult> read_report(const std::string &run_directory, int index) {
  const auto path = fmt::format("{}/server.{}.report", run_directory, index);
  const auto text = read_file(path);
  if (!text) return text.error();
  try {
    return report_of(nlohmann::json::parse(*text));
  } catch (const nlohmann::json::exception &) { return Error{Code::kBadMessage, path + " is no report"}; }
}

LastTraces read_board(const std::string &board_directory, int index) {
  const auto bytes = read_file(fmt::format("{}/board.{}", board_directory, index));
  nessie_board board{};
  if (!bytes.ok() || bytes->size() != sizeof board) return {};
  std::memcpy(&board, bytes->data(), sizeof board);
  if (board.magic != NESSIE_BOARD_MAGIC) return {};
  return {board.used > 0 || board.overflow > 0, board.natives};
}

}  // namespace nessie::cli
