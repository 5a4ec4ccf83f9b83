// SPDX-License-Identifier: BSD-3-Clause
// What can be told of an MPI command line from the outside, cheaply.
#pragma once

#include "environment.hpp"

#include <optional>
#include <string>
#include <vector>

namespace nessie::cli {

enum class MpiFlavour { kUnknown, kOpenMpi, kMpich };

/// Which MPI's mpiexec `program` is, by the name of the file that it is in the end.
MpiFlavour flavour_of_launcher(const std::string &program, const Environment &environment);
/// Which MPI the ELF file is linked to.
MpiFlavour flavour_of_program(const std::string &path);

/// A sentence, if a launcher of one MPI would start a program of another: each rank would then be a job of its own, and
/// they would overwrite each other's files.
std::optional<std::string> mismatch(const std::vector<std::string> &command, const Environment &environment);

/// Whether the command may start processes on other nodes: it names hosts, or the batch job has several.
bool may_use_other_nodes(const std::vector<std::string> &command, const Environment &environment);

}  // namespace nessie::cli
