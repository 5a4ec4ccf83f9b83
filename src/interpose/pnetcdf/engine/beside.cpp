// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/beside.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>

namespace interpose {

namespace {

void settle(const File &file, bool to_write) {
  auto &session = Session::get();
  if (session.servers_died()) return;
  auto settled = session.client()->settle({file.identity, {}, to_write});
  if (!settled && !(is_loss(settled.error()) && session.look_for_servers()))
    nessie::log::error("waiting for what was put through other handles: {}", settled.error().to_string());
}

}  // namespace

void settle_beside(const File &file) {
  if (file.identity.inode == 0 || !Session::get().connected() || !boards().may_hold(file.identity)) return;
  settle(file, false);
}

void begin_beside(const File &file) {
  if (file.identity.inode == 0 || boards().note_beside(file.identity)) return settle_beside(file);
  if (Session::get().connected()) settle(file, true);
}

void note_beside(const File &file) { (void)boards().note_write(file.identity); }

}  // namespace interpose
