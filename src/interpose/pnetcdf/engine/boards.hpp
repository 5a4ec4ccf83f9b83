// SPDX-License-Identifier: BSD-3-Clause
// The servers' boards (services/staging/board.h), as the shim has mapped them.
#pragma once

#include <interpose/pnetcdf/engine_abi.h>
#include <services/staging/protocol.hpp>

namespace interpose {

class Boards {
 public:
  void set(const nessie_boards *boards) { boards_ = boards; }
  /// Whether those of all servers can be seen.
  bool are_complete() const;
  /// Changes whenever any file is opened to be written.
  std::uint64_t count_of_writers() const;
  /// Whether the file is open for writing, or a server may have something of it that is not in the file.
  bool is_written(const staging::FileIdentity &identity) const {
    return boards_->holds(identity.device, identity.inode) != 0;
  }

 private:
  const nessie_boards *boards_ = nullptr;
};

Boards &boards();

}  // namespace interpose
