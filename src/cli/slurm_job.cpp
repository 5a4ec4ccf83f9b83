// SPDX-License-Identifier: BSD-3-Clause
#include "slurm_job.hpp"

#include <base/config.hpp>

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <sstream>

namespace nessie::cli {

namespace {

constexpr std::string_view kDirective = "#SBATCH";

/// The option's value, as "--name=value", "--name value", "-nvalue" or "-n value"; nothing if the word is not it.
std::optional<std::string> value_at(const std::vector<std::string> &words, std::size_t i, std::string_view name,
                                    std::string_view letter) {
  const std::string_view word = words[i];
  const auto next = i + 1 < words.size() ? words[i + 1] : std::string();
  if (word == name || (!letter.empty() && word == letter)) return next;
  if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
    return std::string(word.substr(name.size() + 1));
  if (!letter.empty() && word.starts_with(letter)) return std::string(word.substr(letter.size()));
  return std::nullopt;
}

/// True if it is about processors.
bool read_option(const std::vector<std::string> &words, std::size_t i, JobRequest &request) {
  const auto take = [&](std::string_view name, std::string_view letter, std::string &place) {
    const auto value = value_at(words, i, name, letter);
    if (value) place = *value;
    return value.has_value();
  };
  if (words[i].starts_with("--exclusive")) return request.is_exclusive = true;
  if (words[i].starts_with("--mem")) request.has_memory = true;
  return take("--ntasks", "-n", request.ntasks) || take("--ntasks-per-node", "", request.ntasks_per_node) ||
         take("--nodes", "-N", request.nodes) || take("--cpus-per-task", "-c", request.cpus_per_task);
}

std::string one_more(const std::string &number) {
  int value = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), value);
  return problem == std::errc() && end == number.data() + number.size() ? std::to_string(value + 1) : number + "+1";
}

std::string fixed_tasks(const std::string &option, const std::string &number, bool takes_all_tasks) {
  return takes_all_tasks ? fmt::format("; and {}={} behind srun, which else starts one process more", option, number)
                         : std::string();
}

std::string advise_cores(const JobRequest &request, bool takes_all_tasks) {
  const auto where = request.line > 0 ? fmt::format("line {}: ", request.line) : std::string();
  const std::string why = "staging servers run on the job's first node, and share its processors with your program; ";
  if (request.is_exclusive)
    return where + why + "the job has whole nodes: where your processes leave one core free there, they need not share";
  if (!request.ntasks_per_node.empty())
    return where + why +
           fmt::format("for a core of their own: #SBATCH --ntasks-per-node={}{}", one_more(request.ntasks_per_node),
                       fixed_tasks("--ntasks-per-node", request.ntasks_per_node, takes_all_tasks));
  const auto tasks = request.ntasks.empty() ? std::string("1") : request.ntasks;
  return where + why +
         fmt::format("for a core of their own: #SBATCH --ntasks={}{}", one_more(tasks),
                     fixed_tasks("--ntasks", tasks, takes_all_tasks));
}

}  // namespace

JobRequest read_directives(std::string_view script) {
  JobRequest request;
  std::istringstream lines{std::string(script)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const auto start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos) continue;
    if (line[start] != '#') break;
    if (!line.starts_with(kDirective)) continue;
    const auto text = line.substr(kDirective.size());
    const auto words = split(text.substr(0, text.find(" #")), " \t\r");
    if (!words.empty() && (words.front() == "hetjob" || words.front() == "packjob")) ++request.components;
    for (std::size_t i = 0; i < words.size() && request.components == 1; ++i)
      if (read_option(words, i, request)) request.line = number;
  }
  return request;
}

std::vector<std::string> advise(const JobRequest &request, bool takes_all_tasks) {
  std::vector<std::string> sentences = {advise_cores(request, takes_all_tasks)};
  if (request.has_memory)
    sentences.emplace_back(
        "of the job's memory on its first node the servers take a quarter of what is free when they start "
        "(nessie run --memory says otherwise): ask for more where your program needs all");
  return sentences;
}

}  // namespace nessie::cli
