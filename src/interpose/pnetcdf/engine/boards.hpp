// SPDX-License-Identifier: BSD-3-Clause
// The servers' boards (services/staging/board.h), as the shim has mapped them.
#pragma once

#include <interpose/pnetcdf/engine_abi.h>
#include <services/staging/board.h>
#include <staging.hpp>

namespace interpose {

class Boards {
 public:
  void set(const nessie_boards *boards) { boards_ = boards; }
  /// Whether the counts of all servers can be seen.
  bool are_complete() const;
  /// Whether a server may have something of a file that is not in it: of any file, where the boards cannot be seen.
  bool may_hold(const staging::FileIdentity &identity) const;
  /// Changes whenever somebody of the run has written to the file, or began to write to any natively.
  std::uint64_t count_of_writes(const staging::FileIdentity &identity) const;
  /// Whether some program of the run has, or had, the file open to write past PnetCDF, which nobody counts.
  bool was_opened_to_write(const staging::FileIdentity &identity) const;
  /// Tells those who keep copies that what was put is where any later read finds it. False: they cannot be told by
  /// this process; the server does when it has carried the write out.
  bool note_write(const staging::FileIdentity &identity) const;
  /// Tells the servers, which keep pages for readers, that native PnetCDF is about to write to the file. False: they
  /// cannot be told by this process.
  bool note_beside(const staging::FileIdentity &identity) const;
  /// Tells `nessie run` that a file goes on natively of which the servers, who have died, held nothing.
  void note_survivor(const staging::FileIdentity &identity) const;

 private:
  /// Of all boards.
  void set_bit(std::uint64_t (nessie_board_writes::*set)[NESSIE_BOARD_BITS / 64],
               const staging::FileIdentity &identity) const;
  const nessie_boards *boards_ = nullptr;
};

Boards &boards();

}  // namespace interpose
