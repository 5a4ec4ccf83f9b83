// SPDX-License-Identifier: BSD-3-Clause
// Where the other parts of Nessie lie, relative to this program: in a build folder and wherever it was installed to.
#pragma once

#include <nessie/result.hpp>

#include <string>

namespace nessie::cli {

/// This program's file. Empty: it cannot be told.
std::string own_path();

struct Installation {
  std::string nessied;          ///< the staging daemon
  std::string preload_library;  ///< what is put in front of an application's PnetCDF

  /// kNotFound, naming the places that were searched.
  static Result<Installation> find();
};

/// What services in a program's own job need besides.
struct MpmdInstallation {
  std::string commsplitter;  ///< gives each program of a job a world of its own
  std::string rank;          ///< stands for a service in the job (nessie-rank)

  /// kNotFound as above.
  static Result<MpmdInstallation> find();
};

/// What is put in front of the MPI of a program that has servers in its own processes. kNotFound as above.
Result<std::string> find_embedded_library();

/// nessied by the name by which it serves streams. kNotFound as above.
Result<std::string> find_streams_program();

/// The program behind `nessie bench`. kNotFound as above.
Result<std::string> find_bench_program();

}  // namespace nessie::cli
