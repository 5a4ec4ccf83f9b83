// SPDX-License-Identifier: BSD-3-Clause
// What was written and synced is read back: from the disk, as far as the kernel lets go of what it has in memory. What
// differs is written again from the file's journal, or is lost.
#include <services/staging/server/server.hpp>

#include <base/log.hpp>

#include <pnetcdf.h>

namespace staging {

namespace {

constexpr int kMostTries = 3;

}  // namespace

/// After a sync, of who has the file alone. NC_EREAD: something is lost; the file knows what.
int Server::look_back(OpenFile &file) {
  auto differing = find_differing(file);
  for (int tries = 0; !differing.empty() && file.can_be_put_again() && tries < kMostTries; ++tries) {
    note_differing(file, differing, false);
    const auto put = put_again(file);
    if (put.nc_error != NC_NOERR || sync_natively(file, &NativeFile::sync_to_disk).nc_error != NC_NOERR) break;
    differing = find_differing(file);
  }
  if (differing.empty()) return NC_NOERR;
  note_differing(file, differing, true);
  return NC_EREAD;
}

/// The same, of who shares the file with others: what differs is only told of.
bool Server::is_as_written(OpenFile &file) {
  if (!file.read_back) return true;
  const auto differing = find_differing(file);
  note_differing(file, differing, !file.can_be_put_again());
  return differing.empty();
}

std::vector<ReadBack::Run> Server::find_differing(OpenFile &file) {
  std::vector<ReadBack::Run> differing;
  if (file.was_written_past()) return on_io([&] { return file.read_back->clear(), 0; }), differing;
  on_io([&] { return file.native->forget_cached(), file.read_back->begin(), 0; });
  while (on_io([&] { return file.read_back->look_at_some(*file.native, differing); })) continue;
  return differing;
}

void Server::note_differing(OpenFile &file, const std::vector<ReadBack::Run> &differing, bool are_lost) {
  for (const auto &[varid, elements] : differing) {
    auto *variable = file.find(varid);
    if (variable == nullptr) continue;
    nessie::log::error("{}: {} is not on the disk as it was written; {}", file.path,
                       staging::describe(variable->cached->variable, elements),
                       are_lost ? "it is lost: write it again, and have this storage checked"
                                : "it is written again from where it is kept; have this storage checked");
    if (are_lost) file.lost(*variable, elements);
  }
}

}  // namespace staging
