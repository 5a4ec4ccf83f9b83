// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/beside.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>

namespace interpose {

void settle_beside(const File &file) {
  if (file.identity.inode == 0 || !Session::get().connected() || !boards().may_hold(file.identity)) return;
  if (auto settled = Session::get().client()->settle({file.identity, {}}); !settled)
    nessie::log::error("waiting for what was put through other handles: {}", settled.error().to_string());
}

void note_beside(const File &file) { (void)boards().note_write(file.identity); }

}  // namespace interpose
