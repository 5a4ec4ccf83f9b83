// SPDX-License-Identifier: BSD-3-Clause
#include "launcher_words.hpp"

#include <base/config.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace nessie::cli {

namespace {

using Options = std::vector<std::string>;

/// By how many words follow them.
struct OptionLists {
  Options none, one, two;

  std::optional<std::size_t> words_behind(std::string_view option) const {
    const auto is_in = [=](const Options &list) { return std::ranges::find(list, option) != list.end(); };
    if (is_in(none)) return 0;
    if (is_in(one)) return 1;
    if (is_in(two)) return 2;
    return std::nullopt;
  }
};

const OptionLists &options_of_srun() {
  static const OptionLists lists = {
      split("exclusive pty label unbuffered overcommit overlap exact multi-prog preserve-env quiet verbose no-kill "
            "no-allocate spread-job contiguous hold use-min-nodes disable-status quit-on-interrupt kill-on-bad-exit "
            "immediate nice propagate reboot oversubscribe whole interactive send-libs test-only help usage version "
            "get-user-env join mincores parsable E H I K O Q V X Z h k l s u v",
            " "),
      split("ntasks ntasks-per-node nodes nodelist exclude job-name error output input partition account qos time "
            "A C D G J L M N S T W c d e i m n o p q r t w x",
            " "),
      {}};
  return lists;
}

const OptionLists &options_of_mpiexec() {
  static const OptionLists lists = {
      split("oversubscribe allow-run-as-root bynode bycore byslot display-map display-allocation report-bindings "
            "nooversubscribe tag-output quiet q v verbose do-not-launch use-hwthread-cpus pernode enable-recovery "
            "timestamp-output l prepend-rank print-rank-map nolocal bind-to-none bind-to-core "
            "report-child-jobs-separately forward-signals noprefix",
            " "),
      split(
          "H host hosts f hostfile x rf machinefile rankfile default-hostfile launcher rmk launcher-exec launch-agent "
          "bootstrap-exec bootstrap n np c N ppn perhost npernode map-by",
          " "),
      split("env genv mca gmca omca prtemca", " ")};
  return lists;
}

}  // namespace

bool is_launcher_name(std::string_view name) {
  return name.starts_with("mpiexec") || name.starts_with("mpirun") ||
         std::ranges::find(kLauncherNames, name) != kLauncherNames.end();
}

std::optional<std::size_t> words_behind(std::string_view option, bool of_srun) {
  return (of_srun ? options_of_srun() : options_of_mpiexec()).words_behind(option);
}

}  // namespace nessie::cli
