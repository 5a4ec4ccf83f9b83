// SPDX-License-Identifier: BSD-3-Clause
// The `nessie` command.
#include "agent.hpp"
#include "commands.hpp"
#include "placement.hpp"
#include "stream.hpp"
#include "version.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>
#include <base/descriptors.hpp>
#include <base/nearest.hpp>
#include <services/staging/durability.hpp>
#include <xdr/idl/command.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace nessie::cli;

constexpr const char *kIntroduction =
    "Nessie takes over the I/O of an unchanged parallel program: it goes on computing while staging servers write its\n"
    "PnetCDF files.\n\n"
    "Examples:\n"
    "  nessie run -- mpiexec -n 8 ./sim                 stage the output of ./sim\n"
    "  nessie run --servers 2 --memory 4G -- mpiexec -n 64 ./sim input.nml\n"
    "  nessie run --mode direct -- mpiexec -n 8 ./sim   write at once, cache nothing\n"
    "  nessie serve; nessie attach -- mpiexec -n 8 ./sim; nessie stop    servers that outlive jobs\n"
    "  nessie check ./sim                               would ./sim be staged, and if not, why\n"
    "  nessie info                                      which transports there are, and which one is chosen\n"
    "  nessie doctor                                    what is wrong with this machine, and what to type\n"
    "  nessie clean                                     remove what runs that were killed left behind\n"
    "  nessie files                                     which files are complete, and what to do about others\n"
    "  nessie recover DIR                               finish files from the logs of a run that was killed\n"
    "  nessie slurm job.sh                              a job script of Slurm's, with nessie run in it\n"
    "  nessie directory list                            which services there are, and where\n"
    "  nessie stream tail flow                          arrays of a running program, step by step\n"
    "  nessie bench                                     list the measurements\n"
    "  nessie idl service.x                             C++, C, Fortran or Python from an interface file\n";

constexpr const char *kRunFooter =
    "Everything after -- is the command as it was before.\n"
    "The program's own exit code is returned; 74 if it is 0 and data did not reach the files. The summary goes to\n"
    "stderr. Ctrl-C reaches the program; what it had written is then drained; a second Ctrl-C gives that up.\n\n"
    "Examples:\n"
    "  nessie run -- mpiexec -n 8 ./sim\n"
    "  nessie run --json summary.json -- mpiexec -n 8 ./sim\n"
    "  nessie run --durability logged --log /local/ssd -- mpiexec -n 8 ./sim   no server's death loses data\n"
    "  NESSIE_CLOSE=durable nessie run -- mpiexec -n 8 ./sim   ncmpi_close waits for the file\n";

constexpr const char *kServeFooter =
    "Servers stay when a job ends; others find them by their name, on all nodes that see your home, at the same time\n"
    "too. attach returns when what its program has written is in the files, with the program's exit code, or 74. stop\n"
    "says what was staged for all of them.\n\n"
    "Examples:\n"
    "  nessie serve --servers 2 --memory 4G\n"
    "  nessie serve job.toml                          one nessied with the services of that file: docs/hosting.md\n"
    "  nessie attach -- mpiexec -n 8 ./sim\n"
    "  nessie attach default -- mpiexec -n 2 ./analysis\n"
    "  nessie stop\n";

constexpr const char *kCheckFooter =
    "The program is not run: its file, and those of the libraries that the dynamic linker finds for it, say what it "
    "is\n"
    "and what it calls. The command may be what you would run, with its launcher; of several programs, the first "
    "counts.\n"
    "What a program opens later (dlopen: Python, plug-ins) files do not show. --run starts it, alone, as one process,\n"
    "without input and output, for that many seconds, and ends it. It is your program that runs: it may write its "
    "files.\n"
    "The answer is one of\n"
    "  would be staged           0    what it writes with PnetCDF is\n"
    "  would be staged in part   1    and what is not\n"
    "  would not be staged       1    and why\n"
    "and what was found, each with what to do about it. 2: there is no such program, or it cannot be read.\n\n"
    "Examples:\n"
    "  nessie check ./sim\n"
    "  nessie check -- mpiexec -n 8 ./sim input.nml\n"
    "  nessie check --run 5 ./analysis.py data.nc\n"
    "  nessie check --json ./sim | jq -r '.findings[].what'\n";

constexpr const char *kInfoFooter =
    "The self-test takes about a third of a second for each transport. It asks the other side's endpoint, not its\n"
    "program, for echoes and for 1 MiB of memory. --to takes the credential from NESSIE_CREDENTIAL.\n\n"
    "Examples:\n"
    "  nessie info                                    this machine, between two processes of it\n"
    "  nessie info --to \"$NESSIE_SERVERS\" --all       under `nessie run`: its staging server\n";

constexpr const char *kDoctorFooter =
    "Looked at: limits, processors and memory that this job may have, /dev/shm, cross-memory attach, folders, mpiexec\n"
    "and the libraries of MPI and PnetCDF beside those that Nessie was built for, Slurm, loopback, host name,\n"
    "transports. A warning is what works, though slower, or not everywhere. A problem is what makes runs fail, or go\n"
    "native; they come last. What to type stands below each, behind ->.\n"
    "The exit code is 1 if there is a problem. Run it where the program is to run, in the job's script say.\n\n"
    "Examples:\n"
    "  nessie doctor\n"
    "  nessie doctor && nessie run -- mpiexec -n 8 ./sim\n"
    "  nessie doctor --json | jq '.checks[] | select(.verdict != \"ok\")'\n";

constexpr const char *kCleanFooter =
    "A run that ends, in whatever way, removes its own; one that is killed has a janitor for it. This is for what is\n"
    "left where both were killed: the run's folders, with shared memory, sockets, ledgers and contact files in them,\n"
    "in $XDG_RUNTIME_DIR, $TMPDIR, /tmp, /var/tmp and /dev/shm. Its servers are asked to end, and write first what\n"
    "programs gave them; ten seconds are waited for that.\n"
    "Of logs (nessie-log.XXXXXX) those go of which all is in the files; the others are named, with what to do: no\n"
    "data are removed. What servers have spilled (nessie-spill-XXXXXX) goes with them. Where --log and --spill were,\n"
    "NESSIE_STAGING_LOG, NESSIE_STAGING_SPILL and the folders that are left say, or DIR.\n"
    "Never touched are runs that live, which hold a lock, what processes still use, and what is not yours.\n\n"
    "Examples:\n"
    "  nessie clean --dry-run\n"
    "  nessie clean /local/ssd                        also what is left there of --log and --spill\n"
    "  nessie clean\n";

constexpr const char *kRecoverFooter =
    "With --durability logged or durable, what programs have written is in logs until it is in the files. A run of\n"
    "which all processes were killed, or whose node was, leaves them; so does one that could not write a file. This\n"
    "puts what is there into the files, and removes it. DIR is the folder that nessie run names at its end, beside\n"
    "others in the folder of --log, in $TMPDIR or /var/tmp: nessie-log.XXXXXX.\n"
    "A file is found by its name, if it is still the same file: one that was renamed, removed or replaced meanwhile\n"
    "is left alone, and what is kept of it stays. It can be killed at any moment, and done again.\n"
    "The exit code is 0 if all is in the files, 74 if something is missing, which is then said.\n\n"
    "Examples:\n"
    "  nessie recover /var/tmp/nessie-log.k3Jx9A\n"
    "  nessie recover --json /var/tmp/nessie-log.k3Jx9A | jq -r '.files[] | select(.complete | not).path'\n";

constexpr const char *kFilesFooter =
    "Of each file: its state, how much of what was acknowledged is in it, what it survives, its path.\n"
    "  complete       all that was acknowledged is in the file\n"
    "  draining       a server is putting it there; (open): its program may write more\n"
    "  logged only    it is in a log, and all servers are gone: nessie recover DIR, as is said, puts it there\n"
    "  incomplete     something did not reach it, or is lost: which variables, and which regions of them\n"
    "WHAT is a run that goes on, as nessie status takes it; or what is left of one that does not: a folder of logs\n"
    "(nessie-log.XXXXXX, or server.N in it), its own folder (nessie-XXXXXX), or its summary (nessie run --json). Of\n"
    "logs nothing is changed, and a server may have them open. A server that does not answer within two seconds is\n"
    "named.\n"
    "The exit code is 0; 74 if a file is incomplete, or logged only; 2 if there is no such run or folder; 1 if a "
    "server\n"
    "does not answer.\n\n"
    "Examples:\n"
    "  nessie files                                   under nessie run: of this run\n"
    "  nessie files /var/tmp/nessie-log.k3Jx9A        after all its processes were killed\n"
    "  nessie files --json summary.json | jq -r '.files[] | select(.state != \"complete\").path'\n";

constexpr const char *kSlurmFooter =
    "The script is read, not run; nessie run -- is put in front of each srun, mpiexec and mpirun that starts a "
    "parallel\n"
    "program, and nothing else is changed. The difference goes to stdout; to stderr, line by line, what was left as "
    "it\n"
    "is and why, what you have to decide, and what to change in #SBATCH lines so that servers have a core. Left alone "
    "are\n"
    "what is one process (-n 1), srun hostname and its like, srun --pty, here-documents.\n"
    "Words behind -- are options of nessie run.\n"
    "The exit code is 1 if there is something that cannot be told, or nothing to do; --submit submits nothing then.\n"
    "2: the script cannot be read, or is none of sh, bash, ksh or zsh.\n\n"
    "Examples:\n"
    "  nessie slurm job.sh                          show what would be changed\n"
    "  nessie slurm job.sh --output staged.sh -- --servers 2 --memory 4G\n"
    "  nessie slurm --submit job.sh                 submit it with that, and leave job.sh as it is\n"
    "  nessie slurm --json job.sh | jq -r '.commands[] | select(.treatment == \"doubtful\").why'\n";

constexpr const char *kDirectoryFooter =
    "NESSIE_DIRECTORY says where the directory is, unless --at does; NESSIE_CREDENTIAL holds the credential.\n"
    "watch says on stderr when the directory is gone, for which it then waits a minute, and when it is back.\n\n"
    "Examples:\n"
    "  nessie directory list                             everything\n"
    "  nessie directory list job17/                      what begins so\n"
    "  nessie directory lookup job17/storage --json      1 if nobody has announced it\n"
    "  nessie directory watch --at file:/scratch/job/directory.contact\n";

constexpr const char *kIdlFooter =
    "Of NAME.x come types whose bytes are rpcgen's and libtirpc's, and for its programs clients and servers:\n"
    "  cpp      NAME.hpp; NAME_rpc.hpp\n"
    "  c        NAME.h and NAME_xdr.c, as rpcgen's: link nessie_xdr_c and tirpc; NAME_rpc.h and NAME_rpc.c\n"
    "  fortran  NAME.f90: a module; link Nessie::fortran\n"
    "  python   NAME.py, on the package nessie\n"
    "The language is XDR's (RFC 4506), with the program blocks of RFC 5531. Faults are told with file, line and\n"
    "column; nothing is written then.\n\n"
    "Examples:\n"
    "  nessie idl service.x\n"
    "  nessie idl --language cpp,c service.x\n"
    "  nessie idl --out build/generated --namespace lab::service service.x\n";

constexpr const char *kStatusFooter =
    "A process that serves by NSSI tells what it has counted: of each operation the calls, how many a second, how "
    "long\n"
    "half of them (p50) and 99 in a hundred (p99) at most have waited and taken; its callers; its limits, and who "
    "waits\n"
    "for room. docs/observing.md explains the rest. NESSIE_CREDENTIAL is the job's secret.\n\n"
    "Examples:\n"
    "  nessie status                     under `nessie run`: the staging servers\n"
    "  nessie status --watch \"$URL\"      a process, every two seconds: what happened since\n"
    "  nessie status dir:job17/storage   all that are announced under that name\n"
    "  nessie status --json file:a.contact | jq .nssi.operations\n";

constexpr const char *kTraceFooter =
    "Processes that run with NESSIE_NSSI_TRACE=FOLDER write files there, one each, of which each can be loaded alone.\n"
    "Together they show a call on its way through the services. NESSIE_NSSI_TRACE_EVERY=1000 takes one call in so "
    "many.\n\n"
    "Examples:\n"
    "  NESSIE_NSSI_TRACE=/tmp/trace nessie run -- mpiexec -n 8 ./sim\n"
    "  nessie trace /tmp/trace -o sim.json    then open sim.json in https://ui.perfetto.dev or chrome://tracing\n";

std::string check_size(const std::string &text) {
  const auto size = nessie::parse_size(text);
  return size ? std::string() : size.error().message;
}

std::string check_durability(const std::string &text) {
  const auto rules = staging::DurabilityRules::parse(text);
  return rules ? std::string() : rules.error().message;
}

std::string check_place(const std::string &text) {
  const auto wish = parse_place(text);
  return wish ? std::string() : wish.error().message;
}

/// Of the servers, which `nessie run` and `nessie serve` start.
void add_server_options(CLI::App *run, RunOptions &options) {
  run->add_option("-s,--servers", options.servers, "Staging servers to start (1, or as many as --place makes)")
      ->check(CLI::Range(1, NESSIE_MOST_SERVERS));
  run->add_option(
         "-m,--mode", options.mode,
         "caching: answer when the data are in a server's memory; direct: when they are written; auto (default): "
         "caching, and files that gain nothing are left to native PnetCDF")
      ->check(CLI::IsMember({"auto", "caching", "direct"}));
  run->add_option("-M,--memory", options.memory, "Memory for data, of each server, e.g. 4G (a quarter of what is free)")
      ->check(check_size);
  run->add_option(
         "--durability", options.durability,
         "What a file survives that says nothing else. memory (default): its program's death; replicated: that of a "
         "server, too, since another one has its data; logged: of all servers, since a log on this node's storage has "
         "them; durable: a power failure. In all but memory a server that dies is started again and goes on. Before "
         "it, for files whose names match: \"*.rst=replicated logged\"")
      ->type_name("RULES")
      ->check(check_durability);
  run->add_option(
         "--log", options.log_base,
         "Folder for the servers' logs, on storage of this node (the first of $TMPDIR and /var/tmp that is not "
         "in memory). Each run makes one of its own in it, and removes it when all is in the files")
      ->type_name("DIR");
  run->add_option("--place", options.place,
                  "Where the servers are: near (default): on this node; node, or node:N: on the last nodes of the job, "
                  "which the program is kept from; each-node, or each-node:N: so many on each; numa: one on each NUMA "
                  "domain of each node; host:a,b")
      ->check(check_place);
}

CLI::App *add_run(CLI::App &app, RunOptions &options) {
  auto *run = app.add_subcommand("run", "Run a program with its PnetCDF output staged");
  run->footer(kRunFooter);
  add_server_options(run, options);
  run->add_flag("--dry-run", options.dry_run, "Only print where servers and program would be; JSON with --json");
  run->add_flag("--mpmd", options.mpmd,
                "The servers are ranks of the program's own MPI job, where the network lets no others reach it; the "
                "program's MPI_COMM_WORLD has none of them (Open MPI's mpiexec, srun -n)");
  run->add_flag("--embedded", options.embedded,
                "The servers are threads of the program's own processes: nothing runs beside it, and what is not in "
                "the files when a process dies is lost with it")
      ->excludes("--mpmd", "--place", "--dry-run", "--durability", "--log");
  const std::string beside = "The servers are processes of their own, beside the program's job (default)";
  run->add_flag("--beside", beside)->excludes("--mpmd", "--embedded");
  run->add_flag_callback(
      "--fail-fast", [] { ::setenv("NESSIE_STAGING_FAIL_FAST", "yes", 1); },
      "The program is told at once of what cannot be written, though that is tried again (NESSIE_STAGING_PATIENCE)");
  run->add_flag_callback(
      "--read-back", [] { ::setenv("NESSIE_STAGING_READ_BACK", "yes", 1); },
      "What is on the disk is read back at syncs and closes, and compared with what was written");
  run->add_option_function<std::string>(
      "--spill", [](const std::string &folder) { ::setenv("NESSIE_STAGING_SPILL", folder.c_str(), 1); },
      "A folder of node-local storage, for what the servers' memory has no room for while files take longer");
  run->add_flag(
         "--stream{*}", options.stream,
         "Other programs can follow the files that the program writes, as streams; --stream=PATTERN: those whose "
         "names match")
      ->type_name("[=PATTERN]")
      ->excludes("--mpmd", "--embedded", "--dry-run");
  run->add_option("--json", options.json_file, "Write the summary to this file as JSON");
  run->add_flag("-q,--quiet", options.quiet, "Say nothing unless something goes wrong");
  run->prefix_command();
  return run;
}

void add_serve(CLI::App &app, ServeOptions &options) {
  auto *serve = app.add_subcommand("serve", "Start staging servers that outlive the jobs that use them");
  serve->footer(kServeFooter);
  auto *file = serve
                   ->add_option("FILE.toml", options.composition,
                                "Instead of staging servers one nessied with the services of this file")
                   ->check(CLI::ExistingFile);
  serve->add_option("-n,--name", options.name, "What they are called")->capture_default_str();
  add_server_options(serve, options.run);
  for (const char *other : {"--servers", "--mode", "--memory", "--durability", "--log", "--place"})
    file->excludes(serve->get_option(other));
  serve->add_flag("--foreground", options.foreground, "Return when they were stopped");
  app.add_subcommand("keep", "Stand for the programs that attach; `nessie serve` starts this")
      ->group("")
      ->add_option("NAME", options.keep)
      ->required();
}

void add_attach(CLI::App &app, AttachOptions &options) {
  auto *attach = app.add_subcommand("attach", "Run a program with the servers that `nessie serve` has started");
  attach->footer(kServeFooter);
  attach->add_option("NAME", options.name, "Which (the only ones)");
  attach->add_flag("-q,--quiet", options.quiet, "Say nothing unless something goes wrong");
}

void add_stop(CLI::App &app, StopOptions &options) {
  auto *stop = app.add_subcommand("stop", "Have the servers that `nessie serve` has started finish, and end");
  stop->footer(kServeFooter);
  stop->add_option("NAME", options.name, "Which (the only ones)");
  stop->add_option("-t,--timeout", options.timeout_s, "How many seconds what they have may take to the files")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
}

void add_agent(CLI::App &app, AgentOptions &options) {
  auto *agent = app.add_subcommand("agent", "Start a staging server where a launcher has put this; `nessie run` does");
  agent->group("");  // for nobody else
  agent->add_option("--run", options.run, "The run's URL")->required();
  agent->add_option("--servers", options.servers, "How many the run has")->required();
  agent->add_option("--mode", options.mode, "As nessie run's");
  agent->add_option("--memory", options.memory, "As nessie run's");
  agent->add_option("--durability", options.durability, "As nessie run's");
  agent->add_option("--log", options.log_base, "As nessie run's");
  agent->add_option("--spill", options.spill, "As nessie run's");
  agent->add_option("--fail-fast", options.fail_fast, "yes or no, as nessie run's");
  agent->add_option("--read-back", options.read_back, "yes or no, as nessie run's");
  agent->add_option("--boards", options.board_directory, "The folder of boards");
  agent->add_option("--listen", options.listen, "Transports");
  agent->add_option("--cores", options.cores, "Of each server, as 6-7/8-9");
  agent->add_flag("--first", options.is_first, "The launcher's first processes are agents, not the last ones");
  agent->add_flag("--rank", options.is_rank, "At the end of stdin the program's job has done with MPI");
}

void add_check(CLI::App &app, CheckOptions &options) {
  auto *check = app.add_subcommand("check", "Tell whether a program would be staged below nessie run, and why");
  check->footer(kCheckFooter);
  check->add_flag("--json", options.json, "Print JSON");
  check->add_option("--run", options.run_s, "Run the program for so many seconds, to learn which libraries it opens")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0));
  check->prefix_command();
}

void add_info(CLI::App &app, InfoOptions &options) {
  auto *info = app.add_subcommand("info", "Show this machine's transports, which one is chosen and why, and test them");
  info->footer(kInfoFooter);
  auto *to = info->add_option("--to", options.url,
                              "Try this endpoint's URLs, a list joined by ';', instead of this machine's transports");
  info->add_flag("--all", options.all, "Test every URL of the list, not only the one that is chosen")->needs(to);
  info->add_flag("!--no-test", options.test, "Measure nothing");
  info->add_flag("--settings", options.settings, "List all settings, with what they are now and where that comes from")
      ->excludes(to);
  info->add_flag("--json", options.json, "Print JSON; settings one object a line");
}

void add_directory_action(CLI::App &parent, DirectoryOptions &options, DirectoryOptions::Action action,
                          const char *name, const char *about) {
  using Action = DirectoryOptions::Action;
  auto *sub = parent.add_subcommand(name, about);
  auto *word = sub->add_option(action == Action::kLookup ? "NAME" : "PREFIX", options.name,
                               action == Action::kLookup ? "A name" : "Only names that begin so");
  if (action == Action::kLookup) word->required();
  sub->add_option("--at", options.where, "Where the directory is: a URL, file:PATH or env:VARIABLE (NESSIE_DIRECTORY)");
  sub->add_option("-t,--timeout", options.timeout_s, "How many seconds the directory may take to answer")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  if (action == Action::kWatch)
    sub->add_option("-n,--changes", options.changes, "End after so many changes")->check(CLI::Range(1, INT_MAX));
  sub->add_flag("--json", options.json, "Print JSON, one object a line");
  sub->callback([&options, action] { options.action = action; });
}

void add_directory(CLI::App &app, DirectoryOptions &options) {
  using Action = DirectoryOptions::Action;
  auto *parent = app.add_subcommand("directory", "Show which services a directory has, and where they are");
  parent->footer(kDirectoryFooter);
  parent->require_subcommand(1);
  add_directory_action(*parent, options, Action::kList, "list", "List what there is");
  add_directory_action(*parent, options, Action::kLookup, "lookup", "Show the instances of a name");
  add_directory_action(*parent, options, Action::kWatch, "watch", "List what there is, now and after each change");
}

void add_idl(CLI::App &app, xdr::idl::Command &command) {
  auto *idl = app.add_subcommand("idl", "Compile interface files to C++, C, Fortran and Python");
  idl->footer(kIdlFooter);
  idl->add_option("FILE.x", command.files, "Interface files")->required();
  idl->add_option("-o,--out", command.directory, "Where to put what comes out")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  idl->add_option("-l,--language", command.languages,
                  "What to compile to: cpp (default), c, fortran, python; several as cpp,c")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(xdr::idl::languages()));
  idl->add_option("--namespace", command.name_space, "C++ namespace, e.g. lab::service (the file's name)");
}

/// What follows --watch may be the first place.
void set_watch(StatusOptions &options, const std::string &text) {
  double seconds = 2;
  const auto end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, seconds);
  const bool is_number = problem == std::errc() && rest == end;
  if (is_number && seconds <= 0) throw CLI::ValidationError("--watch", "expects seconds, more than none of them");
  options.watch_s = is_number ? seconds : 2;
  if (!is_number && !text.empty()) options.places.push_back(text);
}

void add_status(CLI::App &app, StatusOptions &options) {
  auto *status = app.add_subcommand("status", "Ask processes that serve, or the staging servers, how they are");
  status->footer(kStatusFooter);
  status->add_option("PLACE", options.places,
                     "Processes that serve by NSSI: URL, file:PATH, pmix:NAME, dir:NAME or env:VARIABLE\n"
                     "(the staging servers that NESSIE_SERVERS names)");
  status->add_flag("--json", options.json, "Print JSON, a line for each");
  status
      ->add_option_function<std::string>(
          "-w,--watch", [&](const std::string &text) { set_watch(options, text); },
          "Again and again, after so many seconds (2) each time, as --watch=SECONDS")
      ->expected(0, 1)
      ->default_str("2");
}

void add_files(CLI::App &app, FilesOptions &options) {
  auto *files = app.add_subcommand("files", "Say which files of a run are complete, and what to do about the others");
  files->footer(kFilesFooter);
  files->add_option("WHAT", options.what,
                    "URL, file:PATH, pmix:NAME, dir:NAME or env:VARIABLE of a server; or a folder that is left, or a "
                    "summary\n(the staging servers that NESSIE_SERVERS names)");
  files->add_flag("--json", options.json, "Print JSON");
}

void add_trace(CLI::App &app, TraceOptions &options) {
  auto *trace = app.add_subcommand("trace", "Put the traces of several processes together");
  trace->footer(kTraceFooter);
  trace->add_option("FOLDER", options.folder, "Where they are")->required()->check(CLI::ExistingDirectory);
  trace->add_option("-o,--out", options.out_file, "Where to put the whole (standard output)");
}

void add_doctor(CLI::App &app, DoctorOptions &options) {
  auto *doctor = app.add_subcommand("doctor", "Say what is wrong with this machine, and what to type");
  doctor->footer(kDoctorFooter);
  doctor->add_flag("--json", options.json, "Print JSON");
}

void add_clean(CLI::App &app, CleanOptions &options) {
  auto *clean = app.add_subcommand("clean", "Remove what runs of yours that were killed left behind");
  clean->footer(kCleanFooter);
  clean->add_option("DIR", options.folders, "Folders in which runs had their logs (--log), or have spilled (--spill)");
  clean->add_flag("-n,--dry-run", options.dry_run, "Only say what would be removed");
  clean->add_flag("--json", options.json, "Print JSON");
}

void add_recover(CLI::App &app, RecoverOptions &options) {
  auto *recover = app.add_subcommand("recover", "Finish files from the logs that a run has left which was killed");
  recover->footer(kRecoverFooter);
  recover->add_option("DIR", options.folder, "The folder of its logs, or server.N in it")->required();
  recover->add_flag("--json", options.json, "Print JSON");
}

void add_slurm(CLI::App &app, SlurmOptions &options) {
  auto *slurm = app.add_subcommand("slurm", "Put nessie run into a job script of Slurm's");
  slurm->footer(kSlurmFooter);
  slurm->add_option("SCRIPT", options.script, "The script")->required();
  auto *output = slurm->add_option("-o,--output", options.output, "Write the new script to this file");
  auto *in_place = slurm->add_flag("--in-place", options.in_place, "Write the new script over the old one");
  output->excludes(in_place);
  slurm->add_flag("--submit", options.submit, "Give the new script to sbatch");
  slurm->add_flag("--json", options.json, "Print JSON, with the difference in it");
}

// Everything after the first "--" of these is the program's, or for `nessie run`, whatever it looks like.
std::vector<std::string> cut_command(std::vector<std::string> &arguments) {
  static const std::vector<std::string> takes_one = {"run", "attach", "check", "slurm"};
  if (arguments.empty() || std::ranges::count(takes_one, arguments.front()) == 0) return {};
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) return {};
  std::vector<std::string> command(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return command;
}

/// What is wrong with the first word, where a command is expected; empty if it is one, or there is none. CLI11 says
/// only that one is required.
std::string doubt_about_command(const CLI::App &app) {
  const auto given = app.get_subcommands();
  if (!given.empty()) return doubt_about_command(*given.front());
  const auto words = app.remaining();
  if (words.empty() || app.get_require_subcommand_min() == 0) return {};
  const auto &word = words.front();
  std::vector<std::string> commands;
  for (const auto *each : app.get_subcommands([](const CLI::App *) { return true; }))
    commands.push_back(each->get_name());
  const auto nearest = nessie::nearest_of(word, commands);
  return fmt::format("there is no {} '{}' of {}{}", word.starts_with('-') ? "option" : "command", word,
                     app.get_parent() != nullptr ? "nessie " + app.get_name() : "nessie",
                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

/// The exit status: 2 if the command line cannot be understood.
int tell(const CLI::App &app, const CLI::ParseError &error) {
  const auto doubt = error.get_name() == "RequiredError" ? doubt_about_command(app) : std::string();
  if (doubt.empty()) return app.exit(error) == 0 ? 0 : 2;
  fmt::print(stderr, "{}\nRun with --help for more information.\n", doubt);
  return 2;
}

/// What is wrong with the word, which stands before the command that `app` takes and is none of its options.
std::string doubt_about_option(const CLI::App &app, const std::string &word) {
  if (!word.starts_with('-')) return fmt::format("'{}' stands before '--': what is to be run goes behind it", word);
  std::vector<std::string> options;
  for (const auto *option : app.get_options())
    for (const auto &name : option->get_lnames()) options.push_back("--" + name);
  const auto nearest = nessie::nearest_of(word, options);
  return fmt::format("there is no option '{}'{}", word,
                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

/// The command that `app` takes: what came behind "--", or from the first word on that is no option. Without one
/// stderr says what is wrong.
std::vector<std::string> command_of(const CLI::App &app, std::vector<std::string> behind_dashes,
                                    std::string_view how_to_say_it) {
  auto words = app.remaining();
  if (words.empty() && !behind_dashes.empty()) return behind_dashes;
  if (!words.empty() && behind_dashes.empty() && !words.front().starts_with('-')) return words;
  const auto doubt = words.empty() ? std::string(how_to_say_it) : doubt_about_option(app, words.front());
  fmt::print(stderr, "nessie {}: {}\n", app.get_name(), doubt);
  return {};
}

/// What is wrong with options of `nessie run` that a job script is to give to it; empty: nothing.
std::string doubt_about_run_options(std::vector<std::string> words) {
  CLI::App app;
  RunOptions options;
  auto *run = add_run(app, options);
  run->set_help_flag();
  words.insert(words.begin(), run->get_name());
  std::ranges::reverse(words);  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError &error) { return error.what(); }
  const auto unknown = run->remaining();
  if (unknown.empty()) return {};
  return unknown.front().starts_with('-') ? doubt_about_option(*run, unknown.front())
                                          : fmt::format("'{}' is none", unknown.front());
}

/// What each command was given.
struct Options {
  RunOptions run;
  ServeOptions serve;
  AttachOptions attach;
  StopOptions stop;
  AgentOptions agent;
  CheckOptions check;
  InfoOptions info;
  StatusOptions status;
  FilesOptions files;
  TraceOptions trace;
  DoctorOptions doctor;
  CleanOptions clean;
  RecoverOptions recover;
  SlurmOptions slurm;
  DirectoryOptions directory;
  StreamOptions stream;
  xdr::idl::Command interfaces;
};

int dispatch(const CLI::App &app, Options &options, std::vector<std::string> command) {
  if (const auto *selected = app.get_subcommand("run"); *selected) {
    options.run.command =
        command_of(*selected, std::move(command), "say what to run, e.g.: nessie run -- mpiexec -n 8 ./sim");
    return options.run.command.empty() ? 2 : run(options.run);
  }
  if (const auto *selected = app.get_subcommand("check"); *selected) {
    options.check.command =
        command_of(*selected, std::move(command), "say which program to check, e.g.: nessie check ./sim");
    return options.check.command.empty() ? 2 : check(options.check);
  }
  if (const auto *selected = app.get_subcommand("attach"); *selected) {
    options.attach.command =
        command_of(*selected, std::move(command), "say what to run, e.g.: nessie attach -- mpiexec -n 8 ./sim");
    return options.attach.command.empty() ? 2 : attach(options.attach);
  }
  if (*app.get_subcommand("serve")) return serve(options.serve);
  if (*app.get_subcommand("keep")) return keep(options.serve.keep);
  if (*app.get_subcommand("stop")) return stop(options.stop);
  if (*app.get_subcommand("agent")) return agent(options.agent);
  if (*app.get_subcommand("info")) return info(options.info);
  if (*app.get_subcommand("status")) return status(options.status);
  if (*app.get_subcommand("files")) return files(options.files);
  if (*app.get_subcommand("trace")) return trace(options.trace);
  if (*app.get_subcommand("doctor")) return doctor(options.doctor);
  if (*app.get_subcommand("clean")) return clean(options.clean);
  if (*app.get_subcommand("recover")) return recover(options.recover);
  if (*app.get_subcommand("slurm")) {
    if (const auto doubt = doubt_about_run_options(command); !doubt.empty()) {
      fmt::print(stderr, "nessie slurm: behind '--' are options of nessie run: {}\n", doubt);
      return 2;
    }
    options.slurm.run_options = std::move(command);
    return slurm(options.slurm);
  }
  if (*app.get_subcommand("directory")) return directory(options.directory);
  if (*app.get_subcommand("stream")) return stream(options.stream);
  if (*app.get_subcommand("idl")) return xdr::idl::compile(options.interfaces);
  if (const auto *selected = app.get_subcommand("bench"); *selected) return bench(selected->remaining());
  std::puts(version().c_str());
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  nessie::occupy_closed_standard_streams();
  CLI::App app(kIntroduction, "nessie");
  app.require_subcommand(1);
  app.set_version_flag("--version", version, "Print the version");
  Options options;
  add_run(app, options.run);
  add_serve(app, options.serve);
  add_attach(app, options.attach);
  add_stop(app, options.stop);
  add_agent(app, options.agent);
  add_check(app, options.check);
  add_info(app, options.info);
  add_doctor(app, options.doctor);
  add_clean(app, options.clean);
  add_recover(app, options.recover);
  add_slurm(app, options.slurm);
  add_directory(app, options.directory);
  add_stream(app, options.stream);
  add_idl(app, options.interfaces);
  add_status(app, options.status);
  add_files(app, options.files);
  add_trace(app, options.trace);
  app.add_subcommand("bench", "Measure Nessie beside its baselines; alone, lists the measurements")
      ->prefix_command()
      ->set_help_flag();
  app.add_subcommand("version", "Print the version");

  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto command = cut_command(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError &error) { return tell(app, error); }
  return dispatch(app, options, std::move(command));
}
