// SPDX-License-Identifier: BSD-3-Clause
#include "staging_figures.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;

/// The words "name=number" that follow the last "result ".
std::map<std::string, double> result_words(const std::string &output) {
  auto at = output.rfind("result ");
  std::istringstream words(at == std::string::npos ? "" : output.substr(at));
  std::map<std::string, double> figures;
  for (std::string word; words >> word;)
    if (auto equals = word.find('='); equals != std::string::npos)
      figures[word.substr(0, equals)] = std::strtod(word.c_str() + equals + 1, nullptr);
  return figures;
}

/// The drain goes on while the processes end. They have said their result before.
double seconds_until_in_files(const StagingRun &run) {
  return std::max(0.0, std::chrono::duration<double>(run.last_change - run.program.last_output).count());
}

/// Why not all that the program moved went by way of the servers; empty if it did.
std::string what_went_native(const Figures &figures, const nlohmann::json &summary) {
  const auto sentences = [&](const char *word) { return summary.value(word, nlohmann::json::array()); };
  const auto moved = [&](const char *word) { return figures.contains(word) ? figures.at(word) : 0; };
  const double staged = summary.value("bytes_staged", 0.0), read = summary.value("bytes_read", 0.0);
  if (sentences("native").empty() && staged >= moved("bytes_written") && read >= moved("bytes_read")) return {};
  return fmt::format("of {:.0f} bytes {:.0f} came to the servers, of {:.0f} that were read {:.0f} from there; {} {}",
                     moved("bytes_written"), staged, moved("bytes_read"), read, sentences("native").dump(),
                     sentences("notes").dump());
}

}  // namespace

Result<Figures> native_figures(const StagingRun &run) {
  auto said = result_words(run.program.output);
  if (!said.contains("run_s")) return Error{Code::kIo, "the program printed no result:\n" + run.program.output};
  Figures figures{{"cpu_s", run.program.cpu_s}, {"bytes", said["bytes"] > 0 ? said["bytes"] : said["read_bytes"]}};
  if (const double bytes = said["bytes"]; bytes > 0) {
    figures["bytes_written"] = bytes;
    figures["perceived_s"] = said["io_s"];
    figures["durable_s"] = said["run_s"] + seconds_until_in_files(run);
    figures["perceived_MBps"] = bytes / figures["perceived_s"] / 1e6;
    figures["durable_MBps"] = bytes / figures["durable_s"] / 1e6;
    figures["io_share"] = said["io_s"] / said["run_s"];
  }
  if (const double bytes = said["read_bytes"]; bytes > 0) {
    figures["bytes_read"] = bytes;
    figures["read_s"] = said["read_s"];
    figures["read_MBps"] = bytes / figures["read_s"] / 1e6;
  }
  if (said["wait_s"] > 0) figures["wait_s"] = said["wait_s"];
  return figures;
}

Result<Figures> staged_figures(const StagingRun &run, const nlohmann::json &summary) {
  auto figures = native_figures(run);
  if (!figures) return figures;
  if (const auto why = what_went_native(*figures, summary); !why.empty())
    return Error{Code::kIo, fmt::format("not everything was staged: {}", why)};
  if (const double most = summary.value("memory_high_bytes", 0.0); most > 0) (*figures)["memory_bytes"] = most;
  return figures;
}

}  // namespace bench
