// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/fallback.hpp>

#include <interpose/pnetcdf/engine/access.hpp>
#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/native.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <services/staging/handle.hpp>

#include <algorithm>

namespace interpose {

bool may_have_lost(const OpenedAs &as) {
  return std::ranges::any_of(as.names, [](const auto &name) {
    const auto identity = staging::identity_of(name);
    return identity.inode != 0 && boards().may_hold(identity) && !Session::get().is_native_since_death(identity);
  });
}

namespace {

/// What was only posted has its data in the program's memory, and an id of the servers' file.
bool has_pending_anywhere(File &file) { return file.ranks().max_now(file.requests.size() > 0 ? 1 : 0) != 0; }

void note_native(const File &file) {
  Session::get().note_servers_died();
  Session::get().settle_no_more(file.identity);
  boards().note_survivor(file.identity);
}

}  // namespace

int look_for_servers(File &file) {
  file.awaits_look = false;
  const int died = file.ranks().from_root([] { return Session::get().look_for_servers() ? 1 : 0; });
  if (died == 0 || has_pending_anywhere(file)) return NC_NOERR;
  note_native(file);
  const int failed = open_natively_again(file, {kServersDied});
  return failed != NC_NOERR ? failed : kLeftNative;
}

bool may_be_made_natively(File &file, const nessie::Error &error) {
  const auto &as = file.opened_as();
  return file.is_new && is_loss(error) && has_plain_name(as) && Session::get().look_for_servers() &&
         staging::identity_of(as.names.front()) == file.identity;
}

int make_natively(File &file, const EndDefLayout &layout) {
  note_native(file);
  return make_natively_again(file, layout, {kServersDied});
}

}  // namespace interpose
