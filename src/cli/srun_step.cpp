// SPDX-License-Identifier: BSD-3-Clause
// Design notes. srun starts several programs in one MPI job in two ways: components (`srun -n 4 ./a : -n 2 ./b`), which
// must have nodes of their own each, and a file that tells each rank's program (--multi-prog), which no job of several
// components may have. Services share nodes with the program, so the step is made one with a file. That file says
// nothing of nodes: a list with a line for each rank does (--distribution=arbitrary). Where srun would put the
// program's ranks only srun knows, so it starts a word there that tells.
#include "srun_step.hpp"

#include "allocation.hpp"
#include "launcher.hpp"

#include <base/config.hpp>
#include <base/file.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace nessie::cli {

namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kMostWords = 126;    // of a program in srun's file; it drops what is more
constexpr std::size_t kLongestWord = 900;  // srun reads lines of 1024 characters
constexpr std::string_view kTold = "nessie-rank";

void append(Words &words, const Words &more) { words.insert(words.end(), more.begin(), more.end()); }

template <class... Arguments> Error wrong(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
  return {Code::kInvalidArgument, fmt::format(text, std::forward<Arguments>(arguments)...)};
}

template <class... Arguments> Error cannot(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
  return {Code::kUnsupported, fmt::format(text, std::forward<Arguments>(arguments)...)};
}

// --- the command -----------------------------------------------------------------------------------------------------

/// A component of the step.
struct Part {
  Words options;
  Words program;         ///< its words; with --multi-prog, those of its file
  bool is_list = false;  ///< it is such a file
};

struct Step {
  Words launcher;  ///< srun, and what stands before it
  std::vector<Part> parts;
};

/// The words of a launcher's options, each with its values.
std::vector<std::pair<LauncherOption, Words>> options_of(const Words &options, const Environment &environment) {
  Words words{"srun"};
  append(words, options);
  std::vector<std::pair<LauncherOption, Words>> found;
  const auto all = launcher_options(words, environment);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto end = i + 1 < all.size() ? all[i + 1].first : words.size();  // the value of one that is not known
    found.emplace_back(all[i], Words(words.begin() + static_cast<std::ptrdiff_t>(all[i].first),
                                     words.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  return found;
}

bool is_file(const std::string &word) {
  std::error_code error;
  return std::filesystem::is_regular_file(word, error);
}

/// Where the file of --multi-prog stands: the first one that is no option's value; 0: there is none.
std::size_t find_list(const Words &line, const std::vector<LauncherOption> &options) {
  std::set<std::size_t> of_options;
  for (const auto &option : options)
    for (auto i = option.first; i <= option.last; ++i) of_options.insert(i);
  for (std::size_t i = 1; i < line.size(); ++i)
    if (!of_options.contains(i) && is_file(line[i])) return i;
  return 0;
}

Result<Part> read_part(const Words &words, const Environment &environment) {
  Words line{"srun"};
  append(line, words);
  Part part;
  const auto options = launcher_options(line, environment);
  part.is_list = std::ranges::count(options, "multi-prog", &LauncherOption::name) > 0;
  const auto place = part.is_list ? find_list(line, options) : find_program_behind(line, environment);
  if (place == 0) return wrong("--mpmd does not find the program in '{}'", fmt::join(line, " "));
  const auto program = line.begin() + static_cast<std::ptrdiff_t>(place);
  part.options.assign(line.begin() + 1, program);
  part.program.assign(program, line.end());
  if (part.is_list && part.program.size() > 1)
    return cannot(
        "--mpmd cannot keep words behind the file of srun's programs ({}), which the services would get, too: write "
        "them into the file, to the programs that they are for",
        part.program[1]);
  return part;
}

Result<Step> read_step(const Words &command, const Environment &environment) {
  const auto launcher = find_launcher(command, environment).value_or(0);
  Step step;
  step.launcher.assign(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(launcher) + 1);
  for (auto begin = command.begin() + static_cast<std::ptrdiff_t>(launcher) + 1; begin <= command.end();) {
    const auto end = std::find(begin, command.end(), ":");
    auto part = read_part({begin, end}, environment);
    if (!part) return part.error();
    step.parts.push_back(*std::move(part));
    if (end == command.end()) break;
    begin = end + 1;
  }
  return step;
}

// --- srun's file -----------------------------------------------------------------------------------------------------

bool is_tellable(const std::string &word) {
  return !word.empty() && word.size() <= kLongestWord && word.find('\n') == std::string::npos;
}

std::string escaped(const std::string &word) {
  std::string text;
  for (const char letter : word) {
    if (std::string_view(" \t'\\%").find(letter) != std::string_view::npos) text += '\\';
    text += letter;
  }
  return text;
}

/// A word on each line, since these are short.
Result<std::string> line_of_file(const std::string &ranks, const Words &program) {
  if (program.size() > kMostWords || !std::ranges::all_of(program, is_tellable))
    return wrong(
        "srun cannot be told more than {} words of a program in a job of several, nor an empty one, or one with a new "
        "line: put the program and its arguments in a script, and run that",
        kMostWords);
  std::string text = ranks;
  for (const auto &word : program) text += (text == ranks ? " " : " \\\n") + escaped(word);
  return text + "\n";
}

/// Which ranks each program of a file is for, as it says it: "0-3,7"; "*".
Words ranks_in(const std::string &text) {
  Words ranks;
  std::istringstream lines(text);
  bool goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    const bool is_program = !goes_on && words >> first && !first.starts_with('#');
    goes_on = line.ends_with('\\');
    if (is_program) ranks.push_back(first);
  }
  return ranks;
}

// --- where srun puts the program's ranks -----------------------------------------------------------------------------

struct Seat {
  std::size_t part = 0;
  std::string node;
};
using Seats = std::vector<Seat>;  // by rank

/// Prints a Seat.
Words telling(std::size_t part) {
  return {"sh", "-c", fmt::format("echo {} $SLURM_PROCID {} $SLURMD_NODENAME", kTold, part)};
}

Words without(const std::vector<std::string_view> &names, const Words &options, const Environment &environment) {
  Words rest;
  for (const auto &[option, words] : options_of(options, environment))
    if (std::ranges::count(names, option.name) == 0) append(rest, words);
  return rest;
}

/// The file by which srun starts what tells, where the user's starts his programs.
Result<Words> telling_list(const Part &part, const std::string &folder) {
  const auto text = read_settings_file(part.program.front());
  if (!text) return text.error();
  std::string lines;
  for (const auto &ranks : ranks_in(*text)) lines += line_of_file(ranks, telling(0)).value();
  const auto path = folder + "/seats.conf";
  if (auto written = write_file(path, lines); !written) return written.error();
  return Words{"--multi-prog", path};
}

Result<Words> asking(const Step &step, const std::string &folder, const Environment &environment) {
  Words words = step.launcher;
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    const auto &part = step.parts[i];
    if (i > 0) words.emplace_back(":");
    append(words, without({"multi-prog", "bcast"}, part.options, environment));
    append(words, {"--mpi=none", "--input=none", "--output=all", "--error=all"});
    const auto tells = part.is_list ? telling_list(part, folder) : Result<Words>(telling(i));
    if (!tells) return tells.error();
    append(words, *tells);
  }
  return words;
}

std::optional<std::pair<std::size_t, Seat>> read_seat(const std::string &line) {
  std::istringstream words(line.substr(std::min(line.size(), line.find(kTold))));
  std::string told;
  std::size_t rank = 0;
  Seat seat;
  if (!(words >> told >> rank >> seat.part >> seat.node)) return std::nullopt;
  return std::pair(rank, seat);
}

Result<Seats> read_seats(const std::string &text, std::size_t parts) {
  std::map<std::size_t, Seat> by_rank;
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto seat = read_seat(line);
    if (seat && seat->second.part < parts) by_rank.insert(*std::move(seat));
    if (!line.empty()) last = line;
  }
  Seats seats;
  for (auto &[rank, seat] : by_rank)
    if (rank == seats.size()) seats.push_back(std::move(seat));
  if (seats.empty() || seats.size() != by_rank.size())
    return wrong("srun does not start processes as the command says: {}", last);
  return seats;
}

Result<Seats> ask_for_seats(const Step &step, const std::string &folder, const Environment &environment,
                            const AskCommand &ask) {
  const auto words = asking(step, folder, environment);
  if (!words) return words.error();
  const auto text = ask(*words);
  if (!text) return text.error();
  return read_seats(*text, step.parts.size());
}

// --- the step --------------------------------------------------------------------------------------------------------

/// Options that say how many ranks there are, and where: the files of the new step say both.
bool is_of_layout(const LauncherOption &option, const std::string &word) {
  static constexpr std::array<std::string_view, 9> kNames = {"ntasks",          "nodes",      "nodelist",
                                                             "exclude",         "relative",   "distribution",
                                                             "ntasks-per-node", "multi-prog", "overcommit"};
  if (word.starts_with("--")) return std::ranges::count(kNames, option.name) > 0;
  return std::string_view("nNwxrmO").find(option.name.front()) != std::string_view::npos;
}

/// What is left of a component's options.
std::vector<Words> kept_options(const Part &part, const Environment &environment) {
  std::vector<Words> kept;
  for (auto &[option, words] : options_of(part.options, environment))
    if (!is_of_layout(option, words.front())) kept.push_back(std::move(words));
  return kept;
}

/// One step has one set of options.
Result<Words> common_options(const Step &step, const Environment &environment) {
  const auto first = kept_options(step.parts.front(), environment);
  for (const auto &part : step.parts)
    for (const auto &option : kept_options(part, environment))
      if (std::ranges::count(first, option) == 0)
        return cannot(
            "--mpmd makes one step of srun's programs, all of which get the first one's options: {} of a further one "
            "cannot be kept; give it to the first program, too, or run without --mpmd",
            fmt::join(option, " "));
  Words words;
  for (const auto &option : first) append(words, option);
  return words;
}

/// The lines of the file for the program's ranks.
Result<std::string> lines_of_program(const Step &step, const Seats &seats) {
  if (step.parts.front().is_list) return read_settings_file(step.parts.front().program.front());
  std::string text;
  for (std::size_t i = 0; i < step.parts.size(); ++i) {
    const auto is_its = [&](const Seat &seat) { return seat.part == i; };
    const auto first = std::ranges::find_if(seats, is_its) - seats.begin();
    const auto count = std::ranges::count_if(seats, is_its);
    const auto line = line_of_file(fmt::format("{}-{}", first, first + count - 1), step.parts[i].program);
    if (!line) return line.error();
    text += *line;
  }
  return text;
}

/// The services' line comes first: a last one of the user's may be for all ranks that are left.
Result<std::string> write_programs(const Step &step, const Seats &seats, std::size_t services, const Words &service,
                                   const std::string &folder) {
  const auto of_services = line_of_file(fmt::format("{}-{}", seats.size(), seats.size() + services - 1), service);
  if (!of_services) return of_services.error();
  const auto of_program = lines_of_program(step, seats);
  if (!of_program) return of_program.error();
  auto path = folder + "/programs.conf";
  if (auto written = write_file(path, *of_services + *of_program); !written) return written.error();
  return path;
}

/// Where `nessie run` is; outside of the job's nodes, the step's first one stands for that.
std::string node_of(const ServerPlace &place, const Seats &seats, const Environment &environment) {
  if (!place.host.empty() && !place.here) return place.host;
  return environment.get("SLURMD_NODENAME").value_or(seats.front().node);
}

Result<Words> words_of_layout(const Seats &seats, const std::vector<ServerPlace> &places, const std::string &folder,
                              const Environment &environment) {
  Words nodes;
  for (const auto &seat : seats) nodes.push_back(seat.node);
  for (const auto &place : places) nodes.push_back(node_of(place, seats, environment));
  const auto path = folder + "/ranks.hosts";
  if (auto written = write_file(path, fmt::format("{}\n", fmt::join(nodes, "\n"))); !written) return written.error();
  const auto different = std::set<std::string>(nodes.begin(), nodes.end()).size();
  return Words{"--nodelist=" + path, fmt::format("--nodes={}", different), "--distribution=arbitrary",
               fmt::format("--ntasks-per-node={}", std::max<std::size_t>(nodes.size() / different, 1))};
}

Result<Words> one_step(const Step &step, const std::vector<ServerPlace> &places, const Words &service,
                       const std::string &folder, const Environment &environment, const AskCommand &ask) {
  const auto options = common_options(step, environment);
  if (!options) return options.error();
  const auto seats = ask_for_seats(step, folder, environment, ask);
  if (!seats) return seats.error();
  const auto layout = words_of_layout(*seats, places, folder, environment);
  if (!layout) return layout.error();
  const auto file = write_programs(step, *seats, places.size(), service, folder);
  if (!file) return file.error();
  Words words = step.launcher;
  append(words, *options);
  append(words, *layout);
  append(words, {fmt::format("--ntasks={}", seats->size() + places.size()), "--overcommit", "--multi-prog", *file});
  return words;
}

/// srun makes the job itself, and nobody can tell yet where.
Result<Words> step_outside_of_a_job(const Step &step, int ranks, std::size_t services, const Words &service,
                                    const std::string &folder) {
  const auto &part = step.parts.front();
  if (step.parts.size() > 1)
    return cannot("--mpmd with a srun of several programs needs a job: salloc … nessie run --mpmd -- srun …");
  if (ranks == 0) return wrong("--mpmd has to know how many processes the program has: srun -n 8 ./sim");
  const auto file = write_programs(step, Seats(static_cast<std::size_t>(ranks)), services, service, folder);
  if (!file) return file.error();
  Words words = step.launcher;
  append(words, part.options);
  append(words, {fmt::format("--ntasks={}", static_cast<std::size_t>(ranks) + services), "--overcommit", "--multi-prog",
                 *file});
  return words;
}

// --- heterogeneous jobs ----------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 2> kGroupOptions = {"het-group", "pack-group"};

int number_in(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "0,2-3"
std::set<int> read_groups(const std::string &list) {
  std::set<int> groups;
  for (const auto &range : split(list, ",")) {
    const auto dash = range.find('-');
    const int first = number_in(range), last = dash == std::string::npos ? first : number_in(range.substr(dash + 1));
    for (int group = first; group <= last && std::ssize(groups) < kMostHosts; ++group) groups.insert(group);
  }
  return groups;
}

/// What a component says of that; srun gives one that says nothing the group of its place in the command.
std::set<int> groups_of(const Part &part, int place, const Environment &environment) {
  for (const auto &[option, words] : options_of(part.options, environment))
    if (std::ranges::count(kGroupOptions, option.name) > 0)
      return read_groups(option.value.empty() ? words.back() : option.value);
  return {place};
}

Result<Words> step_in_heterogeneous_job(const Step &step, const Words &command, std::size_t services, Words service,
                                        const Environment &environment) {
  if (step.parts.front().is_list)
    return cannot("srun --multi-prog runs in one component of a heterogeneous job: run without --mpmd");
  std::set<int> used;
  for (std::size_t i = 0; i < step.parts.size(); ++i)
    used.merge(groups_of(step.parts[i], static_cast<int>(i), environment));
  if (used.empty()) return wrong("--het-group says no component of the job");
  const int groups = number_in(environment.get("SLURM_HET_SIZE").value_or(""));
  const bool is_first = *used.begin() > 0;
  if (!is_first && *used.rbegin() + 1 >= groups)
    return cannot(
        "the program has all components of this heterogeneous job, or the last one, and srun starts one program on "
        "each: ask for another one behind them for the servers (sbatch … : --nodes=1), or run without --mpmd");
  if (is_first) service.emplace_back("--first");
  Words words = command;
  append(words, {":", fmt::format("--het-group={}", is_first ? 0 : *used.rbegin() + 1),
                 fmt::format("--ntasks={}", services), "--overcommit"});
  append(words, service);
  return words;
}

}  // namespace

Result<Words> step_with_services(const Words &command, const std::vector<ServerPlace> &places, const Words &service,
                                 const std::string &folder, const Environment &environment, const AskCommand &ask) {
  const auto step = read_step(command, environment);
  if (!step) return step.error();
  if (has_several_components(environment))
    return step_in_heterogeneous_job(*step, command, places.size(), service, environment);
  if (!environment.get("SLURM_JOB_ID"))
    return step_outside_of_a_job(*step, find_ranks(command, environment).count, places.size(), service, folder);
  return one_step(*step, places, service, folder, environment, ask);
}

}  // namespace nessie::cli
