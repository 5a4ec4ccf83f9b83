// SPDX-License-Identifier: BSD-3-Clause
#include "environment.hpp"

#include <services/staging/board.h>
#include <base/config.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace nessie::cli {

namespace {

// libfabric loads libraries that catch a crash and write a file into the working folder, unless they are told not to.
void leave_crashes_alone(Environment &environment) {
  for (const char *name : {"IPATH_NO_BACKTRACE", "HFI_NO_BACKTRACE"}) {
    if (!environment.get(name)) environment.set(name, "1");
  }
}

// A program that is built with AddressSanitizer, and says itself by default how the sanitizer is to behave, would not
// start with a library preloaded. For all others the library itself answers.
void let_sanitizer_come_later(Environment &environment) {
  environment.append("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
}

}  // namespace

Environment Environment::current() {
  Environment environment;
  for (char **line = environ; line && *line; ++line) {
    const std::string_view text = *line;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) {
      environment.variables_.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

std::optional<std::string> Environment::get(const std::string &name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

void Environment::set(const std::string &name, std::string value) { variables_[name] = std::move(value); }

void Environment::unset(const std::string &name) { variables_.erase(name); }

void Environment::unset_prefix(std::string_view prefix) {
  std::erase_if(variables_, [prefix](const auto &variable) { return variable.first.starts_with(prefix); });
}

void Environment::append(const std::string &name, const std::string &value, char separator) {
  auto &list = variables_[name];
  const auto parts = split(list, std::string_view(&separator, 1));
  if (std::find(parts.begin(), parts.end(), value) != parts.end()) return;
  list = list.empty() ? value : list + separator + value;
}

std::vector<char *> Environment::to_envp() {
  lines_.clear();
  for (const auto &[name, value] : variables_) lines_.push_back(fmt::format("{}={}", name, value));
  std::vector<char *> pointers;
  for (auto &line : lines_) pointers.push_back(line.data());
  pointers.push_back(nullptr);
  return pointers;
}

void put_in_front(const Staging &staging, Environment &environment) {
  environment.append("LD_PRELOAD", staging.preload_library, ':');  // so that tools before it see the program's calls
  environment.set("NESSIE_SERVERS", fmt::format("{}", fmt::join(staging.server_urls, " ")));
  environment.set("NESSIE_CREDENTIAL", staging.credential);
  if (!staging.notes.empty()) environment.set("NESSIE_NOTES", staging.notes);
  if (!staging.boards.empty()) environment.set(NESSIE_BOARD_VARIABLE, staging.boards);
  leave_crashes_alone(environment);
  let_sanitizer_come_later(environment);
}

void keep_shared_memory_in(const std::string &folder, Environment &environment) {
  for (const char *name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory",  // 4, 5
                           "OMPI_MCA_orte_tmpdir_base"}) {
    if (!environment.get(name)) environment.set(name, folder);
  }
}

void make_singleton(const std::string &scratch_folder, Environment &environment) {
  for (const char *prefix : {"OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "OMPI_APP_", "OMPI_FIRST_", "OMPI_MCA_ess",
                             "OMPI_MCA_orte_", "OMPI_MCA_pmix", "OMPI_MCA_mca_base_env", "PMIX_", "PMI_", "SLURM_"}) {
    environment.unset_prefix(prefix);
  }
  leave_crashes_alone(environment);
  environment.set("OMPI_MCA_ess_singleton_isolated", "1");  // no helper process of Open MPI's beside the server
  environment.set("OMPI_MCA_orte_tmpdir_base", scratch_folder);
  environment.set("OMPI_MCA_btl", "self");
  environment.unset("LD_PRELOAD");  // the user's tools are for his program
}

}  // namespace nessie::cli
