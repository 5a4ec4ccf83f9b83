// SPDX-License-Identifier: BSD-3-Clause
#include "losses.hpp"

#include <services/staging/server/ledger.hpp>

#include <fmt/format.h>

#include <iterator>

namespace nessie::cli {

Status note_losses(const std::string &run_directory, int index, std::vector<staging::FileReport> &losses) {
  auto ledger = staging::read_ledger(fmt::format("{}/server.{}.ledger", run_directory, index));
  if (!ledger) return ledger.error();
  losses.insert(losses.end(), std::make_move_iterator(ledger->begin()), std::make_move_iterator(ledger->end()));
  return {};
}

}  // namespace nessie::cli
