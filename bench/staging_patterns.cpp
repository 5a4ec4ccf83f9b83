// SPDX-License-Identifier: BSD-3-Clause
// The access patterns of the field, each a program in patterns/ that knows nothing of Nessie.
#include "staging_comparison.hpp"

namespace bench {
namespace {

using nessie::Status;
using Words = std::vector<std::string>;

/// A program with its own arguments, then those of this run.
Words with(Words program, const Words &arguments) {
  program.insert(program.end(), arguments.begin(), arguments.end());
  return program;
}

int processes_of(const Options &options, int usual, int in_once) {
  return options.processes > 0 ? options.processes : options.once ? in_once : usual;
}

}  // namespace

Status staging_contiguous(const Options &options, Report &report) {
  const Words program =
      with({"nessie-bench-contiguous"}, options.once ? Words{"--transfers", "2", "--transfer", "64"} : Words{});
  const int processes = processes_of(options, 8, 2);
  return compare_staging(
      options,
      {{.variant = "collective", .processes = processes, .program = program},
       {.variant = "independent", .processes = processes, .program = with(program, {"--independent"})}},
      report);
}

Status staging_blocks(const Options &options, Report &report) {
  const Words program = with({"nessie-bench-blocks"}, options.once ? Words{"--n", "9", "--steps", "2"} : Words{});
  const int processes = processes_of(options, 4, 4);
  return compare_staging(
      options,
      {{.variant = "blocking", .processes = processes, .program = program},
       {.variant = "nonblocking", .processes = processes, .program = with(program, {"--nonblocking"})}},
      report);
}

Status staging_climate(const Options &options, Report &report) {
  const Words few{"--columns", "60", "--surface", "20", "--profiles", "10", "--scalars", "3", "--fixed", "2"};
  const Words program = with({"nessie-bench-climate"}, options.once ? few : Words{});
  return compare_staging(options, {{.processes = processes_of(options, 8, 2), .program = program}}, report);
}

Status staging_flash(const Options &options, Report &report) {
  const int processes = processes_of(options, 8, 2);
  const Words program =
      with({"nessie-bench-flash"}, options.once ? Words{"--blocks", "3", "--unknowns", "6"} : Words{});
  std::vector<StagingCase> cases{{.variant = "8", .processes = processes, .program = with(program, {"--nxb", "8"})}};
  if (!options.once && !options.quick)
    cases.push_back(
        {.variant = "16", .processes = processes, .program = with(program, {"--nxb", "16", "--steps", "1"})});
  return compare_staging(options, cases, report);
}

/// The page cache keeps what was written: what is cold is the process, and its server.
Status staging_restart(const Options &options, Report &report) {
  const Words program = with({"nessie-bench-restart"}, options.once ? Words{"--n", "8", "--fields", "2"} : Words{});
  const int processes = processes_of(options, 8, 2);
  return compare_staging(options,
                         {{.variant = "after-write", .processes = processes, .program = program, .decisive = "read_s"},
                          {.variant = "cold",
                           .processes = processes,
                           .program = with(program, {"--read-only"}),
                           .before = with(program, {"--write-only"}),
                           .decisive = "read_s"}},
                         report);
}

}  // namespace bench
