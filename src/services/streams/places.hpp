// SPDX-License-Identifier: BSD-3-Clause
// Where servers of streams announce themselves to other programs of their user on their node.
#pragma once

#include <sys/types.h>

#include <string>

namespace streams {

/// A folder of contact files: $XDG_RUNTIME_DIR/nessie/streams, or /tmp/nessie-UID/streams where there is none.
std::string contact_folder();

/// How the servers are called that follow the files of a run (`streams.name`), by the process of `nessie run`.
std::string name_of_run(pid_t run);
/// The contact file of servers of that name.
std::string contact_of(const std::string &name);
bool is_run(const std::string &name);
/// Whether servers that said that they are there follow the files of a run. `at`: as nssi::find() takes it.
bool is_of_run(const std::string &at);
/// Removes contact files of runs that are over, and could not do it themselves.
void forget_ended_runs();

}  // namespace streams
