// SPDX-License-Identifier: BSD-3-Clause
#include "plot.hpp"

#include "child.hpp"

#include <base/file.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace bench {

nessie::Status plot(const Report &report, const std::string &file) {
  std::error_code error;
  const auto lines =
      (std::filesystem::temp_directory_path(error) / fmt::format("nessie-bench.{}.json", getpid())).string();
  if (auto status = nessie::write_file(lines, report.json()); !status.ok()) return status;
  const auto drawn = run_program({sibling("nessie-bench-plot"), lines, file}, std::chrono::seconds(120));
  unlink(lines.c_str());
  return drawn ? nessie::Status() : nessie::Status(drawn.error());
}

}  // namespace bench
