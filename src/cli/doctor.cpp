// SPDX-License-Identifier: BSD-3-Clause
#include "doctor.hpp"

#include "commands.hpp"
#include "speech.hpp"

#include <base/printable.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace nessie::cli {

namespace {

const char *word_for(Health verdict) {
  switch (verdict) {
    case Health::kOk: return "ok";
    case Health::kWarning: return "warning";
    default: return "problem";
  }
}

auto count_of(const std::vector<Diagnosis> &findings, Health verdict) {
  return static_cast<std::uint64_t>(std::ranges::count(findings, verdict, &Diagnosis::verdict));
}

void print_text(std::vector<Diagnosis> findings) {
  std::ranges::stable_sort(findings, {}, &Diagnosis::verdict);
  for (const auto &each : findings) {
    fmt::print("{:<8} {:<20} {}\n", word_for(each.verdict), each.name, printable(each.sentence));
    if (!each.mend.empty()) fmt::print("{:<8} {:<20} -> {}\n", "", "", each.mend);
  }
  const auto problems = count_of(findings, Health::kProblem), warnings = count_of(findings, Health::kWarning);
  if (problems + warnings == 0) return fmt::print("All is well: nessie run -- mpiexec -n 2 ./sim\n");
  fmt::print("{}, {}: what to type stands behind ->\n", counted(problems, "problem"), counted(warnings, "warning"));
}

void print_json(const std::vector<Diagnosis> &findings) {
  auto checks = nlohmann::json::array();
  for (const auto &each : findings)
    checks.push_back({{"name", each.name},
                      {"verdict", word_for(each.verdict)},
                      {"sentence", each.sentence},
                      {"mend", each.mend.empty() ? nlohmann::json(nullptr) : nlohmann::json(each.mend)}});
  const nlohmann::json all = {{"nessie", NESSIE_VERSION},
                              {"problems", count_of(findings, Health::kProblem)},
                              {"warnings", count_of(findings, Health::kWarning)},
                              {"checks", checks}};
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

int doctor(const DoctorOptions &options) {
  const auto findings = look_at_everything();
  options.json ? print_json(findings) : print_text(findings);
  return count_of(findings, Health::kProblem) == 0 ? 0 : 1;
}

}  // namespace nessie::cli
