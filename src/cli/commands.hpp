// SPDX-License-Identifier: BSD-3-Clause
// The commands of `nessie`: what each takes, and the function that does it and returns the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

/// nessie run: a program, unchanged, with staging servers beside it.
struct RunOptions {
  int servers = 0;         ///< 0: nobody said how many
  std::string place;       ///< where they are: --place; empty: near
  bool dry_run = false;    ///< only say where everything would be
  bool mpmd = false;       ///< the servers are ranks of the program's job
  bool embedded = false;   ///< the servers are threads of the program's processes
  std::string mode;        ///< empty: the setting staging.mode, or auto
  std::string memory;      ///< of each server; empty: the setting staging.memory, or a quarter of what is free, shared
  std::string durability;  ///< rules (staging::DurabilityRules); empty: the setting durability, or memory
  std::string log_base;    ///< where servers keep logs, in a folder of the run's own; empty: the setting staging.log
  std::string stream;      ///< which of its files other programs can follow, as a pattern; empty: none
  std::string json_file;   ///< where to write the summary as JSON; empty: nowhere
  bool quiet = false;      ///< say nothing unless something went wrong
  bool for_other_jobs = false;  ///< the servers are reached from other nodes, though the command names none
  std::vector<std::string> command;
};
/// The program's own exit code; 74 if that is 0 and data did not reach the files; 126 or 127 if the program could not
/// be started; 1 if Nessie could not.
int run(const RunOptions &options);

/// nessie serve: staging servers, or a composition of services, for jobs that come later.
struct ServeOptions {
  RunOptions run;           ///< its servers
  std::string composition;  ///< instead: the file of one nessied's services
  std::string name = "default";
  bool foreground = false;
  std::string keep;  ///< of nessie keep: the name
};
/// Returns when they serve, in the background; in the foreground, when they were stopped, as run().
int serve(const ServeOptions &options);
/// nessie keep: stands, as the program of a run, for the programs that attach.
int keep(const std::string &name);

/// nessie attach: a program, unchanged, with servers that `nessie serve` has started.
struct AttachOptions {
  std::string name;  ///< empty: the only ones
  bool quiet = false;
  std::vector<std::string> command;
};
/// As run().
int attach(const AttachOptions &options);

/// nessie stop: what the servers have goes to the files, and they end.
struct StopOptions {
  std::string name;  ///< empty: the only ones
  int timeout_s = 600;
};
/// As run(), for all programs that were attached.
int stop(const StopOptions &options);

/// nessie check: whether a program would be staged, and why, without running it.
struct CheckOptions {
  bool json = false;
  std::optional<double> run_s;  ///< run it for so long, to learn what it opens
  std::vector<std::string> command;
};
/// 0: it would be staged. 1: it would not, or in part. 2: there is no such program, or it cannot be read or run.
int check(const CheckOptions &options);

/// nessie info: how processes reach each other from this machine, why so, and how well.
struct InfoOptions {
  std::string url;   ///< whom to connect to; empty: a process forked for the purpose
  bool all = false;  ///< with `url`: test every URL of the list, not only the chosen one
  bool test = true;  ///< measure
  bool json = false;
  bool settings = false;  ///< list the settings instead
};
int info(const InfoOptions &options);
/// `nessie info --settings`: every setting, its value as it is now and where that comes from, or else its default, and
/// what it means.
int list_settings(bool as_json);

/// nessie status: what processes that serve report.
struct StatusOptions {
  /// Of processes that serve, as nssi::find() takes them; none: the staging servers that NESSIE_SERVERS names.
  std::vector<std::string> places;
  bool json = false;
  std::optional<double> watch_s;  ///< again and again, after so long each time
};
/// Non-zero if one does not answer.
int status(const StatusOptions &options);

/// nessie files: how it is with each file of a run.
struct FilesOptions {
  /// A process that serves, as nssi::find() takes it; or what is left: a folder of logs, a run's folder, a run's
  /// summary. Empty: the run whose servers NESSIE_SERVERS names.
  std::string what;
  bool json = false;
};
/// 0: all is in the files, or on its way there. 74 (kExitDataLost): something is in a log only, or lost. 2: there is no
/// such run. 1: a server does not answer.
int files(const FilesOptions &options);

/// nessie trace: the traces of several processes, put together.
struct TraceOptions {
  std::string folder;
  std::string out_file;  ///< empty: standard output
};
int trace(const TraceOptions &options);

/// nessie directory: what a directory has.
struct DirectoryOptions {
  enum class Action { kList, kLookup, kWatch };
  Action action = Action::kList;
  std::string name;   ///< of lookup; the beginning of names otherwise
  std::string where;  ///< empty: as the settings say
  int timeout_s = 10;
  int changes = 0;  ///< after which watching ends; 0: never
  bool json = false;
};
/// Non-zero if the directory does not answer, or a name that is looked up is not there.
int directory(const DirectoryOptions &options);

/// nessie doctor: what is wrong with this machine, and what to type.
struct DoctorOptions {
  bool json = false;
};
/// Non-zero if there is a problem; a warning is none.
int doctor(const DoctorOptions &options);

/// nessie clean: removes what a run of this user left behind that was killed together with its janitor.
struct CleanOptions {
  std::vector<std::string> folders;  ///< where logs and what was spilled may be, besides
  bool dry_run = false;              ///< only say what would be removed
  bool json = false;
};
/// Non-zero if something cannot be removed.
int clean(const CleanOptions &options);

/// nessie recover: puts what dead staging servers have left in logs where it belongs.
struct RecoverOptions {
  std::string folder;  ///< of a run's logs, or server.N in it
  bool json = false;
};
/// 0: all that was acknowledged is in the files. 74 (kExitDataLost): not all of it. 2: there is no such folder. 1: a
/// server has the log, or none can be started.
int recover(const RecoverOptions &options);

/// nessie slurm: a job script whose parallel programs run under `nessie run`.
struct SlurmOptions {
  std::string script;
  std::string output;     ///< where to write it; empty: nowhere, only the difference is shown
  bool in_place = false;  ///< write it over the script
  bool submit = false;    ///< give it to sbatch
  bool json = false;
  std::vector<std::string> run_options;  ///< of `nessie run`
};
/// 0: all that the script starts in parallel is rewritten, or needs not be. 1: of something that cannot be told, or
/// there is nothing. 2: it cannot be read, or understood, or written.
int slurm(const SlurmOptions &options);

/// nessie stream: streams that programs write, and what becomes of their steps.
struct StreamOptions {
  enum class Action { kList, kInfo, kTail, kRecord, kForward, kReceive, kForget, kServe };
  Action action = Action::kList;
  std::string name;
  std::string at;  ///< where the servers are; empty: as the settings say
  int timeout_s = 30;
  bool json = false;
  std::uint64_t steps = 0;             ///< after which it ends; 0: never
  std::vector<std::string> variables;  ///< empty: all
  std::string subscription;            ///< empty: none
  bool append = false;
  std::string from;                   ///< of tail: "oldest", "latest", "next" or a number; empty: latest
  bool every = false;                 ///< of tail: every step, not the newest
  bool values = false;                ///< of tail: the elements
  std::vector<std::string> boxes;     ///< of tail: as BoxText; none: all variables whole
  std::string out;                    ///< of record and receive: a file
  std::string folder;                 ///< of receive, instead
  std::string to, as, rate;           ///< of forward: a place, the stream's name there, bytes a second
  std::string listen, most;           ///< of receive: HOST:PORT, the largest step
  std::string memory, log, announce;  ///< of serve
};
/// 0: it is done. 1: not, and stderr says why. 2: what was said cannot be meant. 74 (kExitDataLost): steps were gone
/// before they were handed on.
int stream(const StreamOptions &options);

/// nessie bench: becomes the bench program; returns only if it is not there.
int bench(const std::vector<std::string> &arguments);

}  // namespace nessie::cli
