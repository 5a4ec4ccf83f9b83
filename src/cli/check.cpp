// SPDX-License-Identifier: BSD-3-Clause
// `nessie check`: what is found out, and how it is printed.
#include "commands.hpp"
#include "judge.hpp"
#include "launcher.hpp"
#include "loader.hpp"
#include "signals.hpp"
#include "speech.hpp"
#include "subject.hpp"

#include <base/printable.hpp>

#include <fmt/format.h>
#include <gnu/lib-names.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace nessie::cli {

namespace {

using nlohmann::json;

constexpr int kBadInput = 2;

int fail(const Error &error) {
  (void)say_failure("check", error.message);
  return kBadInput;
}

/// Whether the dynamic linker would say what the program opens.
bool can_be_watched(const Subject &subject) {
  return subject.program().elf.interpreter.ends_with(LD_SO) && !subject.rights_count && subject.missing.empty();
}

Status watch(const CheckOptions &options, const Environment &environment, Subject &subject, Signals &signals) {
  if (!options.run_s || !can_be_watched(subject)) return {};
  const auto place = find_program_behind(options.command, environment);
  const std::vector<std::string> command(options.command.begin() + static_cast<std::ptrdiff_t>(place),
                                         options.command.end());
  return try_out(command, *options.run_s, subject, signals);
}

// --- for people -------------------------------------------------------------------------------------------------------

const std::string &name_of(const Subject &subject) {
  return subject.scripts.empty() ? subject.path : subject.scripts.front();
}

void print_text(const Subject &subject, const Judgement &judgement) {
  fmt::print("{}: {}\n", printable(name_of(subject)), judgement.sentence());
  for (const auto &finding : judgement.findings) {
    fmt::print("  - {}\n", finding.what);
    if (!finding.advice.empty()) fmt::print("    what to do: {}\n", finding.advice);
  }
}

// --- for programs -----------------------------------------------------------------------------------------------------

const char *word_for(Verdict verdict) {
  return verdict == Verdict::kStaged ? "staged" : verdict == Verdict::kPartly ? "part" : "not";
}

json or_null(const std::string &text) { return text.empty() ? json(nullptr) : json(text); }

json findings_json(const Judgement &judgement) {
  auto list = json::array();
  for (const auto &finding : judgement.findings)
    list.push_back({{"what", finding.what}, {"do", or_null(finding.advice)}});
  return list;
}

json libraries_json(const Subject &subject) {
  auto list = json::array();
  for (const auto &object : subject.objects)
    if (&object != &subject.program())
      list.push_back({{"path", object.path},
                      {"soname", or_null(object.elf.soname)},
                      {"opened_later", object.late},
                      {"deepbind", object.deep}});
  return list;
}

json trial_json(const Subject &subject) {
  if (!subject.trial) return nullptr;
  return {{"seconds", subject.trial->seconds}, {"ended_itself", subject.trial->ended_itself}};
}

void print_json(const Subject &subject, const Judgement &judgement) {
  const json all = {{"program", name_of(subject)},
                    {"runs", subject.path},
                    {"verdict", word_for(judgement.verdict)},
                    {"sentence", judgement.sentence()},
                    {"findings", findings_json(judgement)},
                    {"calls", judgement.calls},
                    {"mpi", or_null(judgement.mpi)},
                    {"pnetcdf", or_null(judgement.pnetcdf)},
                    {"libraries", libraries_json(subject)},
                    {"missing", subject.missing},
                    {"trial", trial_json(subject)}};
  fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
}

}  // namespace

int check(const CheckOptions &options) {
  const auto environment = Environment::current();
  auto subject = examine(options.command, environment);
  if (!subject) return fail(subject.error());
  auto signals = Signals::open();
  if (!signals) return fail(signals.error());
  list_libraries(*subject, *signals);
  if (auto watched = watch(options, environment, *subject, *signals); !watched) return fail(watched.error());
  const auto judgement = judge(*subject);
  options.json ? print_json(*subject, judgement) : print_text(*subject, judgement);
  return judgement.verdict == Verdict::kStaged ? 0 : 1;
}

}  // namespace nessie::cli
