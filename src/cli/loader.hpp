// SPDX-License-Identifier: BSD-3-Clause
// Which libraries a program loads: the dynamic linker says so, who knows best.
#pragma once

#include "signals.hpp"
#include "subject.hpp"

#include <nessie/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

/// What the dynamic linker prints with LD_TRACE_LOADED_OBJECTS.
struct LoaderList {
  std::vector<std::string> paths;    ///< in the order in which they are loaded
  std::vector<std::string> missing;  ///< the names of those that are not found
};
LoaderList parse_loader_list(std::string_view text);

/// What a process wrote with LD_DEBUG=files,scopes.
struct LoaderLog {
  struct Library {
    std::string path;
    bool deep = false;  ///< opened with RTLD_DEEPBIND, or by such a one
  };
  std::string program;             ///< its name: the last one, if it became several
  std::vector<Library> at_start;   ///< that were there when it began
  std::vector<Library> libraries;  ///< that were opened after that
};
LoaderLog parse_loader_log(std::string_view text);

/// Adds the libraries that the program loads when it starts, or why they cannot be known. Nothing of it is run.
void list_libraries(Subject &subject, Signals &signals);

/// Runs a command for so long, without input and output, and ends it and whatever it started; adds the libraries that
/// it opened meanwhile. kNotFound, kRefused, kIo: it could not be started. kCancelled: this process is to end.
Status try_out(const std::vector<std::string> &command, double run_s, Subject &subject, Signals &signals);

}  // namespace nessie::cli
