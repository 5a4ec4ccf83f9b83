// SPDX-License-Identifier: BSD-3-Clause
// `nessie slurm`: what is written, submitted and said.
#include "commands.hpp"
#include "environment.hpp"
#include "installation.hpp"
#include "launcher.hpp"
#include "process.hpp"
#include "slurm_diff.hpp"
#include "slurm_job.hpp"
#include "slurm_rewrite.hpp"
#include "speech.hpp"

#include <base/file.hpp>
#include <base/printable.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace nessie::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kBadInput = 2;

int fail(const std::string &why) { return say_failure("slurm", why), kBadInput; }

/// As a word of a shell's.
std::string quoted(const std::string &word) {
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("_-./=:,+@%", c) != nullptr;
  });
  if (is_plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// By its whole path, unless it is the one that is found by its name: the job's script may have another PATH.
std::string own_name() {
  const auto self = own_path(), found = find_program("nessie", Environment::current());
  std::error_code ignored;
  return self.empty() || (!found.empty() && fs::equivalent(found, self, ignored)) ? "nessie" : quoted(self);
}

std::string in_front(const std::vector<std::string> &run_options) {
  auto text = own_name() + " run";
  for (const auto &option : run_options) text.append(" ").append(quoted(option));
  return text + " -- ";
}

const char *word_for(Treatment treatment) {
  switch (treatment) {
    case Treatment::kRewritten: return "rewritten";
    case Treatment::kAlready: return "already";
    case Treatment::kLeft: return "left";
    default: return "doubtful";
  }
}

std::size_t count(const Rewritten &rewritten, Treatment treatment) {
  return static_cast<std::size_t>(std::ranges::count(rewritten.commands, treatment, &ParallelCommand::treatment));
}

bool is_settled(const Rewritten &rewritten) {
  const bool any = count(rewritten, Treatment::kRewritten) + count(rewritten, Treatment::kAlready) > 0;
  return any && count(rewritten, Treatment::kDoubtful) == 0;
}

std::vector<std::string> advice_for(std::string_view script, const Rewritten &rewritten) {
  if (count(rewritten, Treatment::kRewritten) == 0) return {};
  return advise(read_directives(script), rewritten.takes_all_tasks);
}

void print_remarks(const std::string &path, const Rewritten &rewritten, const std::vector<std::string> &advice) {
  for (const auto &command : rewritten.commands) {
    if (command.treatment == Treatment::kRewritten && command.why.empty()) continue;
    const char *how = command.treatment == Treatment::kAlready    ? "is under nessie run already"
                      : command.treatment == Treatment::kLeft     ? "left as it is"
                      : command.treatment == Treatment::kDoubtful ? "left as it is, though it may be parallel"
                                                                  : "rewritten";
    write_to_stderr(fmt::format("{}:{}: {}: {}{}{}\n", printable(path), command.line, printable(command.what), how,
                                command.why.empty() ? "" : ": ", printable(command.why)));
  }
  for (const auto &sentence : advice) write_to_stderr(fmt::format("{}: #SBATCH: {}\n", printable(path), sentence));
  if (rewritten.commands.empty())
    write_to_stderr(
        fmt::format("{}: nothing here starts a parallel program: if another script does, which this one calls, "
                    "call nessie slurm for that one\n",
                    printable(path)));
}

void print_json(const SlurmOptions &options, const Rewritten &rewritten, const std::vector<std::string> &advice,
                const std::string &diff) {
  auto commands = json::array();
  for (const auto &command : rewritten.commands)
    commands.push_back({{"line", command.line},
                        {"command", command.what},
                        {"treatment", word_for(command.treatment)},
                        {"why", command.why.empty() ? json(nullptr) : json(command.why)}});
  const json all = {{"script", options.script}, {"changed", !diff.empty()}, {"settled", is_settled(rewritten)},
                    {"commands", commands},     {"advice", advice},         {"diff", diff}};
  fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
}

// --- files ------------------------------------------------------------------------------------------------------------

Status write_script(const std::string &path, const std::string &text, mode_t mode) {
  if (auto written = write_output(path, text); !written) return written;
  struct stat file {};
  if (::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode)) (void)::chmod(path.c_str(), mode & 07777);
  return {};
}

/// Whole, or not at all. A link is kept, and what it names is replaced.
Status replace_script(const std::string &path, const std::string &text, mode_t mode) {
  std::error_code error;
  const auto target = fs::canonical(path, error).string();
  if (auto written = write_file(target, text); !written) return written;
  (void)::chmod(target.c_str(), mode & 07777);
  return {};
}

/// Its exit code.
Result<int> run_sbatch(const std::string &script) {
  SpawnOptions sbatch;
  sbatch.command = {"sbatch", script};
  sbatch.environment = Environment::current();
  const auto pid = spawn(std::move(sbatch));
  if (!pid) return pid.error();
  return exit_code_of(await_end(*pid));
}

/// The script has its own name in a folder of its own, because sbatch calls the job so. Returns sbatch's exit code.
int submit(const SlurmOptions &options, const std::string &text) {
  std::string folder = (fs::temp_directory_path() / "nessie-slurm-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return fail(fmt::format("cannot make {}: {}", folder, std::strerror(errno)));
  const auto path = (fs::path(folder) / fs::path(options.script).filename()).string();
  const auto written = write_script(path, text, 0600);
  auto code = written ? run_sbatch(path) : Result<int>(written.error());
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return code ? *code : fail(code.error().message);
}

Status write_where_wanted(const SlurmOptions &options, const std::string &text) {
  struct stat file {};
  const mode_t mode = ::stat(options.script.c_str(), &file) == 0 ? file.st_mode : 0644;
  if (options.in_place) return replace_script(options.script, text, mode);
  return options.output.empty() ? Status() : write_script(options.output, text, mode);
}

}  // namespace

int slurm(const SlurmOptions &options) {
  const auto script = read_settings_file(options.script);
  if (!script) return fail(script.error().message);
  const auto rewritten = rewrite(*script, in_front(options.run_options));
  if (!rewritten) return fail(fmt::format("{}: {}", printable(options.script), rewritten.error().message));
  const auto new_name = options.output.empty() ? options.script : options.output;
  const auto diff = unified_diff(*script, rewritten->text, options.script, new_name);
  const auto advice = advice_for(*script, *rewritten);
  if (options.json) {
    print_json(options, *rewritten, advice, diff);
  } else {
    fmt::print("{}", diff);
    std::fflush(stdout);
    print_remarks(options.script, *rewritten, advice);
  }
  if (auto written = write_where_wanted(options, rewritten->text); !written) return fail(written.error().message);
  if (!is_settled(*rewritten)) return 1;
  return options.submit ? submit(options, rewritten->text) : 0;
}

}  // namespace nessie::cli
