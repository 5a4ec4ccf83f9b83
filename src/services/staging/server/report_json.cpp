// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/report_json.hpp>

#include <base/printable.hpp>

#include <fmt/format.h>

namespace staging {

namespace {

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (const char c : nessie::to_utf8(text)) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

template <class List, class Print> std::string array(const List &list, Print print) {
  std::string out = "[";
  for (const auto &element : list) out += (out.size() == 1 ? "" : ", ") + print(element);
  return out + "]";
}

std::string to_json(const FileReport &file) {
  const auto bytes =
      nessie::is_utf8(file.path) ? std::string() : fmt::format(R"("path_bytes": "{}", )", nessie::hex_bytes(file.path));
  return fmt::format(
      R"({{"path": {}, {}"nc_error": {}, "message": {}, "bytes_acknowledged": {}, "bytes_in_file": {}, "missing": {}}})",
      quoted(file.path), bytes, file.nc_error, quoted(file.message), file.bytes_acknowledged, file.bytes_in_file,
      array(file.missing, quoted));
}

}  // namespace

std::string to_json(const ReportResult &r) {
  const auto files = [](const auto &list) { return array(list, [](const auto &file) { return to_json(file); }); };
  return fmt::format(
      "{{\"bytes_pulled\": {}, \"bytes_pushed\": {}, \"bytes_drained\": {}, \"bytes_pending\": {}, \"writes\": {}, "
      "\"reads\": {}, "
      "\"files\": {}, \"clients\": {}, \"memory_high_bytes\": {}, \"busy_pull_s\": {:.6f}, \"busy_drain_s\": {:.6f}, "
      "\"first_write_s\": {:.6f}, \"last_pull_s\": {:.6f}, \"last_drain_s\": {:.6f},\n \"drained\": {},\n "
      "\"failures\": {},\n \"native\": {}, \"left_native\": {}, \"why_left\": {}}}\n",
      r.bytes_pulled, r.bytes_pushed, r.bytes_drained, r.bytes_pending, r.writes, r.reads, r.files, r.clients,
      r.memory_high_bytes, r.busy_pull_s, r.busy_drain_s, r.first_write_s, r.last_pull_s, r.last_drain_s,
      files(r.drained), files(r.failures), array(r.native, quoted), r.left_native, quoted(r.why_left));
}

}  // namespace staging
