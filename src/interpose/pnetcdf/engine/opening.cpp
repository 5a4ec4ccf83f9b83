// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/opening.hpp>

#include <interpose/pnetcdf/engine/boards.hpp>
#include <interpose/pnetcdf/engine/hints.hpp>
#include <interpose/pnetcdf/engine/native_turn.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>
#include <base/random.hpp>
#include <services/staging/handle.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace interpose {

namespace {

/// Whether one of this process's descriptors is this file.
bool is_open_here(const staging::FileIdentity &identity) {
  std::error_code error;
  if (identity.inode == 0) return false;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd", error))
    if (staging::identity_of(entry.path().string()) == identity) return true;
  return false;
}

/// Invalid if it cannot be opened, or is no regular file.
nessie::Fd open_file(const std::string &name, int flags) {
  nessie::Fd file(::open(name.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666));
  struct stat status {};
  if (file && (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))) file.reset();
  return file;
}

int access_of(int omode) { return (omode & NC_WRITE) != 0 ? O_RDWR : O_RDONLY; }

/// Whether MPI-IO must have its say in what is made: it decides what a name with a colon means, and how a file is
/// striped.
bool needs_mpi_io(const OpenedAs &as) {
  const auto stripes = [](const staging::Hint &hint) { return hint.key.starts_with("striping_"); };
  return as.names.size() > 1 || std::ranges::any_of(as.hints, stripes);
}

/// By which of its names native PnetCDF has the file open; empty: there is no telling.
std::string name_of_open(const OpenedAs &as) {
  if (as.names.size() == 1) return as.names.front();
  for (const auto &name : as.names)
    if (is_open_here(staging::identity_of(name))) return name;
  return {};
}

/// Finds the file that PnetCDF has open just now as `id`, and closes that.
ProgramFile find_file(const OpenedAs &as, int flags, int id) {
  ProgramFile found;
  if (auto name = name_of_open(as); !name.empty()) found = {open_file(name, flags), std::move(name)};
  (void)ncmpi_close(id);
  return found;
}

}  // namespace

ProgramFile create_as_program(const OpenedAs &as, int cmode, MPI_Info info) {
  if (needs_mpi_io(as)) {
    int id = -1;
    NativeTurn turn;
    (void)turn.lend_reserve();
    if (ncmpi_create(MPI_COMM_SELF, as.path.c_str(), cmode, info, &id) != NC_NOERR) return {};
    return find_file(as, O_RDWR, id);
  }
  if ((cmode & NC_NOCLOBBER) != 0 && ::access(as.path.c_str(), F_OK) == 0) return {};
  return {open_file(as.path, O_RDWR | O_CREAT), as.names.front()};
}

ProgramFile open_as_program(const OpenedAs &as, MPI_Info info) {
  if (as.names.size() == 1) return {open_file(as.path, access_of(as.mode)), as.names.front()};
  int id = -1;
  NativeTurn turn;
  (void)turn.lend_reserve();
  const int error = ncmpi_open(MPI_COMM_SELF, as.path.c_str(), as.mode, info, &id);
  if (error != NC_NOERR && error != NC_ENULLPAD) return {};
  return find_file(as, access_of(as.mode), id);
}

// A file that does not exist, or is on no board, has nothing to be settled: that saves it a question.
void settle(const OpenedAs &as) {
  if (Session::get().servers_died()) return;
  for (const auto &name : as.names) {
    const auto identity = staging::identity_of(name);
    if (identity.inode == 0 || !boards().may_hold(identity)) continue;
    if (auto settled = Session::get().client()->settle({identity, name}); !settled)
      nessie::log::error("{}: waiting for its data to be written: {}", as.path, settled.error().to_string());
  }
}

staging::FileIdentity identity_of_open(const OpenedAs &as) { return staging::identity_of(name_of_open(as)); }

namespace {

bool has_colon(const std::string &name) { return name.find(':') != std::string::npos; }

/// Nodes number devices each in its own way.
bool may_be(const staging::FileIdentity &identity, const File &file) { return identity.inode == file.identity.inode; }

/// What the program opened, if that still goes by one of its names.
ProgramFile find_again(const File &file, int flags) {
  ProgramFile found;
  for (const auto &name : file.opened_as().names) {
    auto candidate = open_file(name, flags);
    if (!candidate || !may_be(staging::identity_of(candidate.get()), file)) continue;
    const bool is_it = staging::identity_of(candidate.get()) == file.identity;
    if (is_it || !found.file) found = {std::move(candidate), name};
    if (is_it) break;
  }
  return found;
}

/// Whether native PnetCDF would open what the program has open, in this mode, by this name.
bool leads_to(const std::string &name, const File &file, int omode) {
  const int access = (omode & NC_WRITE) != 0 ? R_OK | W_OK : R_OK;
  return staging::identity_of(name) == file.identity && ::faccessat(AT_FDCWD, name.c_str(), access, AT_EACCESS) == 0;
}

/// Asks the home server to lend the file.
nessie::Result<nessie::Fd> ask_for(const File &file) {
  NativeTurn turn;
  (void)turn.lend_reserve();  // to what the server gives
  turn.let_others();
  return Session::get().client()->lend(file.token(), file.identity);
}

std::string name_of(const nessie::Fd &descriptor) { return fmt::format("/proc/self/fd/{}", descriptor.get()); }

}  // namespace

// On another node than root's the file's identity may be another: then nothing is lent, and its name is good enough.
bool borrow(File &file, int omode, NativeHandle &handle) {
  const auto &names = file.opened_as().names;
  if (std::ranges::any_of(names, [&](const auto &name) { return leads_to(name, file, omode); })) return true;
  auto lent = ask_for(file);
  if (lent) {
    handle.named = std::move(*lent);
    return true;
  }
  if (std::ranges::none_of(names, [&](const auto &name) { return may_be(staging::identity_of(name), file); }))
    (void)file.lost(lent.error(), "it does not go by its name any more, and is not lent", NC_EFILE);
  return false;
}

bool has_plain_name(const OpenedAs &as) { return as.names.size() == 1 && !has_colon(as.names.front()); }

// A name with a colon would be taken apart by PnetCDF: each process has a name of its own for what it has open.
std::string name_to_open(const File &file, int omode, NativeHandle &handle) {
  const auto &names = file.opened_as().names;
  if (handle.named) return name_of(handle.named);
  if (has_plain_name(file.opened_as())) {
    const auto identity = staging::identity_of(names.front());
    return identity.inode == 0 || may_be(identity, file) ? names.front() : std::string();
  }
  auto found = find_again(file, access_of(omode));
  handle.named = std::move(found.file);
  return has_colon(found.name) ? name_of(handle.named) : found.name;
}

namespace {

/// Why it cannot be, in a sentence; empty if it is.
std::string open_for_child(const File &file, staging::FileToken token) {
  if (!Session::get().connected()) return Session::get().reason();
  const int omode = file.writable ? NC_WRITE : NC_NOWRITE;
  auto found = find_again(file, access_of(omode));
  if (!found.file) {
    auto lent = ask_for(file);
    if (!lent) return "it does not go by its name any more, and is not lent: " + lent.error().message;
    found = {std::move(*lent), file.opened_as().names.front()};
  }
  if (auto settled = Session::get().client()->settle({file.identity, found.name}); !settled)
    return settled.error().message;
  const auto opened = Session::get().client()->open(
      {token, found.name, omode, file.opened_as().hints, {}, 1, durability_hint(file.opened_as().hints)},
      found.file.get());
  if (!opened) return opened.error().message;
  const bool is_open = opened->nc_error == NC_NOERR || opened->nc_error == NC_ENULLPAD;
  return is_open ? std::string() : ncmpi_strerror(opened->nc_error);
}

}  // namespace

bool inherit(File &file) {
  const auto token = nessie::random_u64();
  if (const auto why = open_for_child(file, token); !why.empty()) {
    nessie::log::error("{}: a child of the process that has it open cannot use it: {}", file.opened_as().path, why);
    return false;
  }
  file.begin_anew(token);
  return true;
}

}  // namespace interpose
