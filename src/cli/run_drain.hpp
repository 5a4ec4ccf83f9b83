// SPDX-License-Identifier: BSD-3-Clause
// The end of a `nessie run`: all of its servers finish what they have acknowledged, and end.
#pragma once

#include "drain.hpp"
#include "servers.hpp"
#include "speech.hpp"
#include "summary.hpp"

#include <base/config.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nessie::cli {

class RunDrain {
 public:
  struct Surroundings {
    const Config &config;
    const std::string &credential;
    Servers &servers;
    const std::string &folder, &board_folder;  ///< where the servers keep ledgers, and boards
    ProgressLine &line;
    const Deadline &naming;                               ///< when to say, once, what is not in the files yet
    std::function<void(std::chrono::milliseconds)> turn;  ///< handles whatever has happened, and waits for it so long
    std::function<bool()> has_given_up;                   ///< the user wants no more of it
    std::function<bool()> is_left_alone;                  ///< nobody would tell of servers whose node is gone
  };
  explicit RunDrain(Surroundings surroundings);

  /// Returns when no server runs any more; all that they tell, and what is missing of those that cannot, is in the
  /// record.
  void finish(RunRecord &record);

 private:
  /// Of one server.
  struct Asked {
    std::unique_ptr<ServerDrain> drain;     ///< none: it does not run
    std::size_t deaths = 0;                 ///< before it was asked
    bool has_died = false;                  ///< since, or it was not there
    Deadline patience = Deadline::never();  ///< with a server whose connection broke, and that has not ended
  };
  void note_absent(RunRecord &record);
  void ask(std::size_t place);
  bool is_busy(std::size_t place);
  bool has_died_since(std::size_t place) const;
  static bool has_patience(Asked &asked);
  void watch();
  void name_pending();
  bool is_lost(int index) const;
  void show_progress();
  void collect(RunRecord &record);
  void note_broken(int index, const std::string &how, RunRecord &record) const;
  void await_end();

  const Surroundings around_;
  std::vector<Asked> asked_;  ///< by index
  std::uint64_t most_pending_ = 0;
  bool has_named_ = false;
};

}  // namespace nessie::cli
