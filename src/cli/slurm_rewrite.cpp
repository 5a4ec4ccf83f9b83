// SPDX-License-Identifier: BSD-3-Clause
#include "slurm_rewrite.hpp"

#include "launcher_words.hpp"
#include "slurm_shell.hpp"

#include <base/config.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

namespace nessie::cli {

namespace {

using Words = std::vector<std::string>;

std::string base_name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

bool is_in(const std::string &word, std::string_view list) {
  const auto words = split(list, " ");
  return std::ranges::find(words, word) != words.end();
}

bool is_launcher(const std::string &word) { return is_launcher_name(base_name(word)); }

/// Launchers that do not tell other nodes what Nessie needs, as far as is known.
bool is_unknown_launcher(const std::string &word) {
  return is_in(base_name(word), "aprun jsrun lrun ibrun mpprun prun flux poe ccc_mprun");
}

/// Those that become, or start, the command behind them; with the letters of their options that take a word.
const std::map<std::string, std::string> kWrappers = {
    {"exec", "a"},     {"command", ""}, {"time", "fo"},    {"env", "uCS"},    {"nohup", ""},   {"nice", "n"},
    {"ionice", "cnp"}, {"setsid", ""},  {"timeout", "sk"}, {"stdbuf", "ioe"}, {"numactl", ""}, {"builtin", ""}};

/// Commands that a launcher's name is only a word for.
bool is_harmless(const std::string &word) {
  return is_in(base_name(word),
               "echo printf which type command hash module ml logger cat grep sed awk ls man test [ export "
               "declare local readonly typeset set unset alias unalias rm cp mv mkdir touch kill pkill "
               "killall pgrep trap : true false return exit spack conda source . sbatch scancel squeue cd");
}

/// Programs of which nobody wants the output staged.
bool is_helper(const std::string &program) {
  return is_in(base_name(program),
               "hostname date echo printf env printenv ls mkdir rm cp mv cat chmod touch ln tar rsync "
               "nvidia-smi rocm-smi sleep true false lscpu free uptime uname id whoami ulimit ps top "
               "df du stat sync killall pkill kill scontrol sinfo squeue sbcast numastat lstopo "
               "hwloc-ls ldd which module taskset ip ping nproc test");
}

bool is_container(const std::string &program) {
  return is_in(base_name(program),
               "singularity apptainer shifter sarus podman podman-hpc docker charliecloud ch-run enroot");
}

bool is_assignment(const std::string &word) {
  const auto equals = word.find('=');
  return equals != std::string::npos && equals > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool is_quantity(const std::string &word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

/// Words that stand for what is not known.
constexpr char kUnknown[] = "$";

/// The command's words as far as they are known: literals, and values of variables that the script sets to one thing.
class Expansion {
 public:
  Expansion(const ShellScript &script, const ShellCommand &command) {
    for (const auto &word : command.words) add(script, word);
  }

  const Words &words() const { return words_; }
  /// Which word of the command it comes from.
  std::size_t origin(std::size_t word) const { return origins_[word]; }
  /// The name of the variable that it comes from, or nothing.
  const std::string &variable(std::size_t word) const { return variables_[word]; }

 private:
  void add(const ShellScript &script, const ShellWord &word) {
    const auto origin = origins_.empty() ? 0 : origins_.back() + 1;
    const auto name = variable_in(word.raw);
    const auto values =
        name ? script.variables.equal_range(*name) : std::pair{script.variables.end(), script.variables.end()};
    Words parts = name && std::distance(values.first, values.second) > 0
                      ? split(best(values.first, values.second), " \t")
                      : Words{literal(word.raw).value_or(kUnknown)};
    if (parts.empty()) parts = {kUnknown};
    for (auto &part : parts) {
      words_.push_back(std::move(part));
      origins_.push_back(origin);
      variables_.push_back(name.value_or(""));
    }
  }

  /// Of several values of a variable one that begins with a launcher counts.
  template <class Iterator> static std::string best(Iterator first, Iterator last) {
    auto found = std::find_if(first, last, [](const auto &entry) {
      const auto words = split(entry.second, " \t");
      return !words.empty() && is_launcher(words.front());
    });
    return (found == last ? first : found)->second;
  }

  Words words_;
  std::vector<std::size_t> origins_;
  std::vector<std::string> variables_;
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// A variable of the modules' or the user's, which the script does not set: its name tells.
bool is_launchers_name(const std::string &variable) {
  const auto name = lower(variable);
  return name == "srun" || name.ends_with("mpirun") || name.ends_with("mpiexec") || name == "mpi_launcher" ||
         name == "mpirun_cmd";
}

bool is_launcher_at(const Expansion &command, std::size_t i) {
  const auto &word = command.words()[i];
  return is_launcher(word) || (word == kUnknown && is_launchers_name(command.variable(i)));
}

/// Behind a wrapper at `i`, its options and assignments: where what it starts stands.
std::size_t behind_wrapper(const Words &words, std::size_t i) {
  const auto &letters = kWrappers.at(base_name(words[i]));
  for (++i; i < words.size(); ++i) {
    const auto &word = words[i];
    if (word.size() == 2 && word.front() == '-' && letters.find(word[1]) != std::string::npos)
      ++i;
    else if (!word.starts_with('-') && !is_assignment(word) && !is_quantity(word))
      break;
  }
  return i;
}

/// Which word is the launcher.
std::optional<std::size_t> find_launcher_word(const Expansion &command) {
  const auto &words = command.words();
  const bool asks = words.size() > 1 && words[0] == "command" && is_in(words[1], "-v -V");
  for (std::size_t i = 0; i < words.size() && !asks;) {
    if (is_launcher_at(command, i)) return i;
    if (!kWrappers.contains(base_name(words[i]))) break;
    i = behind_wrapper(words, i);
  }
  return std::nullopt;
}

// --- what a launcher is told ------------------------------------------------------------------------------------------

struct Launch {
  std::string program;  ///< kUnknown where it cannot be told
  std::string processes;
  std::string exports;
  bool is_interactive = false, only_asks = false, has_several_programs = false, reads_programs_from_file = false;
};

/// One that is not known takes a word: the program cannot be looked up here. srun's letters may have theirs with them.
std::size_t words_taken_by(const std::string &option, bool of_srun) {
  const bool has_its_own = of_srun && !option.starts_with("--") && option.size() > 2;
  if (has_its_own || option.find('=') != std::string::npos) return 0;
  const auto name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  return words_behind(name, of_srun).value_or(1);
}

std::string value_of(const Words &words, std::size_t i) {
  const auto equals = words[i].find('=');
  if (equals != std::string::npos) return words[i].substr(equals + 1);
  return i + 1 < words.size() ? words[i + 1] : std::string();
}

void note_option(const Words &words, std::size_t i, bool is_srun, Launch &launch) {
  const auto &word = words[i];
  const auto name = word.substr(0, word.find('='));
  if (is_in(name, "-n -np --np --n --ntasks")) launch.processes = value_of(words, i);
  if (is_srun && word.starts_with("-n") && word.size() > 2) launch.processes = word.substr(2);
  if (is_srun && name == "--export") launch.exports = value_of(words, i);
  if (is_srun && name == "--pty") launch.is_interactive = true;
  if (is_srun && name == "--multi-prog") launch.reads_programs_from_file = true;
  if (is_in(word, "--version --help -V -h --usage --mpi=list --test-only")) launch.only_asks = true;
}

Launch read_launch(const Words &words, std::size_t launcher) {
  Launch launch;
  const bool is_srun = words[launcher] == kUnknown || base_name(words[launcher]) == "srun";
  for (std::size_t i = launcher + 1; i < words.size(); ++i) {
    if (words[i] == ":") launch.has_several_programs = true;
    if (!launch.program.empty()) continue;
    if (!words[i].starts_with('-')) {
      launch.program = words[i];
      continue;
    }
    note_option(words, i, is_srun, launch);
    i += words_taken_by(words[i], is_srun);
  }
  return launch;
}

// --- what is done -----------------------------------------------------------------------------------------------------

class Rewriter {
 public:
  Rewriter(std::string_view text, const ShellScript &script, const std::string &in_front)
      : text_(text), script_(script), in_front_(in_front) {}

  Rewritten rewrite() {
    for (const auto &command : script_.commands) look_at(command);
    for (const auto &document : script_.here_documents)
      if (names_launcher(document.raw))
        note(document.offset, "<<", Treatment::kLeft, "a here-document is text, as it is; rewrite what becomes of it");
    std::ranges::stable_sort(result_.commands, {}, &ParallelCommand::line);
    insert();
    return std::move(result_);
  }

 private:
  void look_at(const ShellCommand &command) {
    const Expansion expansion(script_, command);
    const auto launcher = find_launcher_word(expansion);
    if (!launcher) return look_for_hidden(command, expansion);
    const auto &word = command.words[expansion.origin(*launcher)];
    if (*launcher == 0 && script_.functions.contains(std::string(word.raw)))
      return note(command, Treatment::kLeft, "it is a function of this script, which starts what it does");
    const auto launch = read_launch(expansion.words(), *launcher);
    if (const auto doubt = doubt_about(launch); !doubt.empty()) return note(command, Treatment::kDoubtful, doubt);
    if (const auto why = why_left(launch); !why.empty()) return note(command, Treatment::kLeft, why);
    places_.push_back(word.offset);
    if (launch.processes.empty() && base_name(expansion.words()[*launcher]) == "srun") result_.takes_all_tasks = true;
    note(command, Treatment::kRewritten, remark(command, launch));
  }

  static std::string doubt_about(const Launch &launch) {
    if (!launch.exports.empty() && !is_in("ALL", comma_to_blank(launch.exports)))
      return "--export without ALL keeps from the program what Nessie tells it: write --export=ALL,... and call nessie "
             "slurm "
             "again";
    if (is_container(launch.program))
      return "the program runs in a container, where Nessie's library must be, too, below the same name: if it is, put "
             "nessie run -- in front yourself";
    return {};
  }

  static std::string comma_to_blank(std::string text) {
    std::ranges::replace(text, ',', ' ');
    return text;
  }

  static std::string why_left(const Launch &launch) {
    if (launch.only_asks) return "it starts no program";
    if (launch.is_interactive) return "it is for a terminal (--pty)";
    if (is_helper(launch.program))
      return fmt::format("{} writes nothing that would be staged", base_name(launch.program));
    if (launch.processes == "1" && !launch.has_several_programs)
      return "it is one process; if it writes much with PnetCDF, put nessie run -- in front yourself";
    return {};
  }

  static std::string remark(const ShellCommand &command, const Launch &launch) {
    if (command.in_background)
      return "it runs in the background: each such program has servers of its own, each with a quarter of the memory "
             "that is "
             "free (nessie run --memory says otherwise), and sees what another one writes only when that has ended";
    if (launch.reads_programs_from_file)
      return "its programs, in a file, are one job: those that share files share servers";
    return {};
  }

  /// A launcher that is no command of the script, but a word of one.
  void look_for_hidden(const ShellCommand &command, const Expansion &expansion) {
    const auto &words = expansion.words();
    const auto name = base_name(words.front());
    if (is_unknown_launcher(name))
      return note(
          command, Treatment::kDoubtful,
          fmt::format("{} is a launcher that nessie run has not been tried with: put nessie run -- in front yourself, "
                      "and see whether its summary says that the files were staged",
                      name));
    const auto hidden = std::ranges::find_if(command.words, [](const auto &word) { return names_launcher(word.raw); });
    if (hidden == command.words.end() || is_harmless(name)) return;
    if (behind_nessie(words)) return note(command, Treatment::kAlready, "");
    if (name == "nessie") return;
    note(command, Treatment::kDoubtful,
         fmt::format(
             "what starts a parallel program is a word of {} here, and not a command of this script: put nessie run "
             "-- in front of it yourself",
             name == kUnknown ? std::string(command.words.front().raw) : name));
  }

  /// "exec nessie run", "time /opt/nessie/bin/nessie run".
  static bool behind_nessie(const Words &words) {
    std::size_t i = 0;
    while (i < words.size() && kWrappers.contains(base_name(words[i]))) i = behind_wrapper(words, i);
    return i + 1 < words.size() && base_name(words[i]) == "nessie" && words[i + 1] == "run";
  }

  /// As a word of its own, not as a part of one.
  static bool names_launcher(std::string_view text) {
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '=';
    };
    const auto stands_in = [&](std::string_view name) {
      for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
        const auto end = at + name.size();
        const bool begins = at == 0 || !is_part(text[at - 1]) || text[at - 1] == '=';
        if (begins && (end >= text.size() || (!is_part(text[end]) && text[end] != '/'))) return true;
      }
      return false;
    };
    return std::ranges::any_of(kLauncherNames, stands_in) ||
           std::ranges::any_of(std::array{"aprun", "jsrun", "ibrun"}, stands_in);
  }

  void note(const ShellCommand &command, Treatment treatment, std::string why) {
    std::string what;
    for (const auto &word : command.words) {
      if (what.size() > 60) break;
      if (!what.empty()) what += ' ';
      what += word.raw;
    }
    std::ranges::replace(what, '\n', ' ');
    if (what.size() > 60) what = what.substr(0, 57) + "...";
    note(command.words.front().offset, std::move(what), treatment, std::move(why));
  }

  void note(std::size_t offset, std::string what, Treatment treatment, std::string why) {
    result_.commands.push_back({line_of(text_, offset), treatment, std::move(what), std::move(why)});
  }

  void insert() {
    std::ranges::sort(places_);
    std::size_t from = 0;
    for (const auto place : places_) {
      result_.text += text_.substr(from, place - from);
      result_.text += in_front_;
      from = place;
    }
    result_.text += text_.substr(from);
  }

  std::string_view text_;
  const ShellScript &script_;
  const std::string &in_front_;
  std::vector<std::size_t> places_;
  Rewritten result_;
};

/// Empty, if it is one of those that are understood; no first line means that sbatch refuses it.
std::string other_language(std::string_view script) {
  const auto line = std::string(script.substr(0, script.find('\n')));
  if (!line.starts_with("#!")) return {};
  const auto words = split(line.substr(2), " \t\r");
  for (const auto &word : words) {
    const auto name = base_name(word);
    if (is_in(name, "env") || name.starts_with('-')) continue;
    return is_in(name, "sh bash dash ksh zsh ash mksh") ? std::string() : name;
  }
  return {};
}

}  // namespace

Result<Rewritten> rewrite(std::string_view script, const std::string &in_front) {
  if (script.find('\0') != std::string_view::npos) return Error{Code::kInvalidArgument, "it is no text"};
  if (const auto language = other_language(script); !language.empty())
    return Error{
        Code::kInvalidArgument,
        fmt::format("it is a script of {}, and only those of sh, bash, ksh and zsh are understood: put nessie run -- "
                    "in front of its parallel programs yourself",
                    language)};
  const auto read = read_shell(script);
  if (!read) return read.error();
  return Rewriter(script, *read, in_front).rewrite();
}

}  // namespace nessie::cli
