// SPDX-License-Identifier: BSD-3-Clause
// From ncmpi_create and ncmpi_open to ncmpi_close. All ranks of the program's communicator decide together whether a
// file is staged: it is if every rank reaches the servers and nothing asks for what is not staged.
#include <interpose/pnetcdf/engine/arguments.hpp>
#include <interpose/pnetcdf/engine/beside.hpp>
#include <interpose/pnetcdf/engine/completion.hpp>
#include <interpose/pnetcdf/engine/enddef.hpp>
#include <interpose/pnetcdf/engine/fallback.hpp>
#include <interpose/pnetcdf/engine/file_table.hpp>
#include <interpose/pnetcdf/engine/functions.hpp>
#include <interpose/pnetcdf/engine/hints.hpp>
#include <interpose/pnetcdf/engine/leaving.hpp>
#include <interpose/pnetcdf/engine/mark.hpp>
#include <interpose/pnetcdf/engine/modes.hpp>
#include <interpose/pnetcdf/engine/native.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/paths.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/credential.hpp>
#include <services/staging/handle.hpp>

#include <sys/stat.h>

#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

namespace interpose {

namespace {

std::uint32_t processes_of(File &file) { return static_cast<std::uint32_t>(file.ranks().size()); }

/// For a file that the servers have, and the program will not get from them.
void forget_at_servers(const Communicator &ranks, staging::FileToken token) {
  if (ranks.is_root()) (void)Session::get().client()->abort(token);
}

int register_file(std::unique_ptr<File> file, int *ncidp) {
  *ncidp = files().add(file);
  if (*ncidp >= 0) return NC_NOERR;
  forget_at_servers(file->ranks(), file->token());
  return NC_ENFILE;
}

/// The program's mode with the format that it means when it names none.
int with_default_format(int cmode) {
  int format = NC_FORMAT_CLASSIC;
  if ((cmode & (NC_64BIT_DATA | NC_64BIT_OFFSET | NC_NETCDF4 | NC_CLASSIC_MODEL)) != 0) return cmode;
  ncmpi_inq_default_format(&format);
  if (format == NC_FORMAT_CDF5) return cmode | NC_64BIT_DATA;
  return format == NC_FORMAT_CDF2 ? cmode | NC_64BIT_OFFSET : cmode;
}

/// What root announces before anything else.
struct Proposal {
  enum { kMode, kTokenHigh, kTokenLow, kSafe, kLeftNative, kMayBeLeft };
  std::array<std::int64_t, 6> facts{};
  std::string why_left;  ///< on root

  Proposal(Communicator &ranks, const std::string &path, int mode, bool is_new) {
    const auto token = nessie::random_u64();
    if (is_new && ranks.is_root() && Session::get().is_auto()) why_left = policy().leaves_next_native().value_or("");
    facts = {mode,
             static_cast<std::int64_t>(token >> 32),
             static_cast<std::int64_t>(token & 0xffffffffU),
             asks_for_safe_mode() ? 1 : 0,
             why_left.empty() ? 0 : 1,
             is_new && ranks.is_root() && interpose::may_be_left(path) ? 1 : 0};
    ranks.broadcast(facts);
  }
  bool is_left_native() const { return facts[kLeftNative] != 0; }
  bool may_be_left() const { return facts[kMayBeLeft] != 0; }
  int mode() const { return static_cast<int>(facts[kMode]); }
  bool is_safe() const { return facts[kSafe] != 0; }
  staging::FileToken token() const {
    return static_cast<std::uint64_t>(facts[kTokenHigh]) << 32 | static_cast<std::uint64_t>(facts[kTokenLow]);
  }
};

constexpr char kNoMirror[] = "this process has no descriptor or memory left for its header, or no memfd or no /proc";

/// Why a file is not staged, as far as this rank knows.
std::string why(const std::string &reason) {
  constexpr char kAnother[] = "another process of the program cannot reach the staging servers, or hold its header";
  return reason.empty() ? kAnother : reason;
}

}  // namespace

// --- create ----------------------------------------------------------------------------------------------------------------

namespace {

/// What came of a file on root. It goes native unless it is staged, or the server was lost; `why` says why, if it would
/// not have to.
struct Attempt {
  int error = NC_NOERR;
  bool made = false;  ///< the program's file is there
  bool staged = false;
  std::string why = {};
  staging::FileIdentity identity = {};
};

constexpr char kNoRegularFile[] = "it is no regular file that a server could be given";

/// On each rank: any of them may be asked for what it has sent.
void expect_return(const File &file) {
  if (is_kept_by_hint(file.opened_as().hints)) Session::get().client()->expect_return();
}

std::string not_at_server(int error) {
  return std::string("the staging server cannot open it: ") + ncmpi_strerror(error);
}

Attempt create_as_root(File &file, MPI_Info info, const std::function<void()> &meanwhile) {
  const OpenedAs &as = file.opened_as();
  settle(as);
  const auto program = create_as_program(as, as.mode, info);
  if (!program.file) return {.why = kNoRegularFile};
  auto result = Session::get().client()->create(
      {file.token(), program.name, as.mode, as.hints, {}, processes_of(file), durability_hint(as.hints)},
      program.file.get(), meanwhile);
  if (!result && is_loss(result.error())) {
    if (Session::get().look_for_servers()) return {.made = true, .why = kServersDied};
    return {.error = file.lost(result.error(), "ncmpi_create", NC_EOFILE), .made = true};
  }
  if (!result) return {.made = true, .why = result.error().message};
  if (*result != NC_NOERR) return {.made = true, .why = not_at_server(*result)};
  const auto identity = staging::identity_of(program.file.get());
  Session::get().settle_at_exit({identity, program.name});
  return {.made = true, .staged = true, .identity = identity};
}

/// Each rank makes its mirror, root while the server creates the file: whether all can stage, and what root made of it,
/// told in one go.
struct Creation {
  bool everywhere = false, made = false;
  bool differs = false;  ///< any rank's mode
  int error = NC_NOERR;
  std::string why;
  staging::FileIdentity identity;

  /// `reason`: why this rank cannot stage; empty if it may.
  Creation(File &file, MPI_Info info, std::string reason, bool is_different) {
    constexpr auto kNotRoot = std::numeric_limits<std::int64_t>::min();
    const bool is_root = file.ranks().is_root();
    bool has_mirror = false, has_tried = false;
    const auto make_mirror = [&] { has_tried = true, has_mirror = file.mirror.create(file.opened_as().mode, info); };
    const bool may_stage = reason.empty();
    const auto mine = may_stage && is_root ? create_as_root(file, info, make_mirror) : Attempt{};
    if (may_stage && !is_root) make_mirror();
    if (has_tried && !has_mirror) reason = kNoMirror;
    const bool fails = !reason.empty() || (is_root && !mine.staged && mine.error == NC_NOERR);
    const auto of_root = [&](auto value) { return is_root ? static_cast<std::int64_t>(value) : kNotRoot; };
    const auto all = file.ranks().max(std::array<std::int64_t, 6>{fails ? 1 : 0, of_root(mine.error), mine.made ? 1 : 0,
                                                                  of_root(mine.identity.device),
                                                                  of_root(mine.identity.inode), is_different ? 1 : 0});
    everywhere = all[0] == 0;
    error = static_cast<int>(all[1]);
    made = all[2] != 0;
    differs = all[5] != 0;
    why = reason.empty() ? mine.why : reason;
    identity = {static_cast<std::uint64_t>(all[3]), static_cast<std::uint64_t>(all[4])};
    if (!everywhere && mine.staged) forget_at_servers(file.ranks(), file.token());
  }
};

void begin_to_count(int ncid, const Spent &spent) {
  if (auto *file = files().at(ncid)) file->spent = spent;
}

/// Tells the policy of a file that is closed.
void note_closed(const Spent &spent, bool was_staged, std::int64_t bytes) {
  struct stat status {};
  if (!spent.counts) return;
  if (!was_staged && ::stat(spent.path.c_str(), &status) == 0) bytes = status.st_size;
  policy().note({was_staged, bytes, spent.seconds});
}

int create_staged(std::unique_ptr<File> file, const Creation &creation, int *ncidp) {
  if (creation.error != NC_NOERR) {
    *ncidp = -1;
    return creation.error;
  }
  file->identity = creation.identity;
  file->in_define_mode = file->is_new = file->was_created = true;
  ncmpi_inq_format(file->id(), &file->format);
  return register_file(std::move(file), ncidp);
}

}  // namespace

int on_create(MPI_Comm comm, const char *path, int cmode, MPI_Info info, int *ncidp) {
  if (path == nullptr || *path == '\0' || comm == MPI_COMM_NULL) return ncmpi_create(comm, path, cmode, info, ncidp);
  auto ranks = std::make_unique<Communicator>(comm);
  Spent spent{Session::get().is_auto() && ranks->is_root(), 0, path};
  std::optional<Stopwatch> stopwatch(spent);
  const Proposal proposal(*ranks, path, cmode, true);
  const bool is_different = proposal.mode() != cmode;
  const int mode = with_default_format(proposal.mode());

  OpenedAs as{path, absolute_names(path), mode, collect_hints(info)};
  std::string reason = why_not_staged(mode);
  const bool is_choice = reason.empty() && proposal.is_left_native();
  if (is_choice) reason = proposal.why_left.empty() ? "rank 0 has chosen so" : proposal.why_left;
  auto file = std::make_unique<File>(std::move(ranks), std::move(as), proposal.token());
  file->safe = proposal.is_safe();
  file->may_be_left = proposal.may_be_left();
  if (reason.empty()) expect_return(*file);
  const Creation creation(*file, info, reason, is_different);
  if (!creation.everywhere) {
    const int native_mode = creation.made ? cmode & ~NC_NOCLOBBER : cmode;
    const int error = create_natively(*file, comm, native_mode, info, ncidp, {why(creation.why), is_choice});
    stopwatch.reset();
    if (is_choice) begin_to_count(*ncidp, spent);
    return error;
  }
  const int error = create_staged(std::move(file), creation, ncidp);
  stopwatch.reset();
  begin_to_count(*ncidp, spent);
  if (error != NC_NOERR) return error;
  return is_different || (proposal.is_safe() && creation.differs) ? NC_EMULTIDEFINE_CMODE : NC_NOERR;
}

// --- open ------------------------------------------------------------------------------------------------------------------

namespace {

bool is_harmless(int error) { return error == NC_NOERR || error == NC_ENULLPAD; }

constexpr int kGoNative = 1;  // no code of PnetCDF's

/// Root's answer, for all; `why` it is kGoNative, if it would not have to be.
staging::HeaderResult open_as_root(File &file, MPI_Info info, std::string &why) {
  const OpenedAs &as = file.opened_as();
  settle(as);
  const auto program = open_as_program(as, info);
  if (!program.file) return why = kNoRegularFile, failure(kGoNative);
  auto result = Session::get().client()->open(
      {file.token(), program.name, as.mode, as.hints, {}, processes_of(file), durability_hint(as.hints)},
      program.file.get());
  if (!result && is_loss(result.error())) {
    if (Session::get().look_for_servers() && !may_have_lost(as)) return why = kServersDied, failure(kGoNative);
    return failure(file.lost(result.error(), "ncmpi_open", NC_EOFILE));
  }
  if (!result) return why = result.error().message, failure(kGoNative);
  if (!is_harmless(result->nc_error)) return why = not_at_server(result->nc_error), failure(kGoNative);
  if ((as.mode & NC_WRITE) != 0)
    Session::get().settle_at_exit({staging::identity_of(program.file.get()), program.name});
  file.get_bytes = result->bytes_read;
  return std::move(*result);
}

/// When a process has found that all servers have died.
int refuse_what_may_be_lost(File &file) {
  const nessie::Error error{nessie::Code::kPeerLost,
                            "all staging servers have died, and may have had something of it in their memory only",
                            nessie::Scope::kService};
  const bool is_refused = Session::get().look_for_servers() && may_have_lost(file.opened_as());
  return is_refused ? file.lost(error, "ncmpi_open", NC_EOFILE) : NC_NOERR;
}

/// Makes the rank's mirror of an open file, on all ranks. False: one of them cannot have it.
bool mirror_everywhere(File &file, const staging::HeaderResult &opened, std::string &why) {
  const OpenedAs &as = file.opened_as();
  const Info info(as.hints);
  const bool here = file.mirror.open(opened.header, as.mode, info.get());
  if (!here) why = kNoMirror;
  return file.ranks().max(here ? 0 : 1) == 0;
}

int open_staged(std::unique_ptr<File> file, staging::HeaderResult opened, int *ncidp) {
  file->in_define_mode = false;
  file->writable = (file->opened_as().mode & NC_WRITE) != 0;
  file->num_records = opened.num_records;
  file->identity = opened.identity;
  file->hints_in_use = std::move(opened.hints);
  ncmpi_inq_format(file->id(), &file->format);
  file->may_be_left = may_be_left(*file);
  file->note_settled();
  const int full = register_file(std::move(file), ncidp);
  return full != NC_NOERR ? full : opened.nc_error;
}

}  // namespace

int on_open(MPI_Comm comm, const char *path, int omode, MPI_Info info, int *ncidp) {
  if (path == nullptr || *path == '\0' || comm == MPI_COMM_NULL) return ncmpi_open(comm, path, omode, info, ncidp);
  auto ranks = std::make_unique<Communicator>(comm);
  const Proposal proposal(*ranks, path, omode, false);
  const bool is_different = proposal.mode() != omode;

  OpenedAs as{path, absolute_names(path), proposal.mode(), collect_hints(info)};
  std::string reason = why_not_staged(0);
  auto file = std::make_unique<File>(std::move(ranks), std::move(as), proposal.token());
  const auto [cannot, differs, died] = file->ranks().max(
      std::array<std::int64_t, 3>{reason.empty() ? 0 : 1, is_different ? 1 : 0, Session::get().servers_died() ? 1 : 0});
  if (died != 0)
    if (const int lost = file->ranks().from_root([&] { return refuse_what_may_be_lost(*file); }); lost != NC_NOERR) {
      *ncidp = -1;
      return lost;
    }
  if (cannot != 0) return open_natively(*file, comm, omode, info, ncidp, {why(reason)});
  file->safe = proposal.is_safe();
  expect_return(*file);
  staging::HeaderResult opened;
  if (file->ranks().is_root()) opened = open_as_root(*file, info, reason);
  share(file->ranks(), opened);
  if (opened.nc_error == kGoNative) return open_natively(*file, comm, omode, info, ncidp, {why(reason)});
  if (!is_harmless(opened.nc_error)) {
    *ncidp = -1;
    return opened.nc_error;
  }
  if (!mirror_everywhere(*file, opened, reason)) {
    forget_at_servers(file->ranks(), file->token());
    return open_natively(*file, comm, omode, info, ncidp, {why(reason)});
  }
  const int error = open_staged(std::move(file), std::move(opened), ncidp);
  const bool is_told = is_different || (proposal.is_safe() && differs != 0);
  return is_harmless(error) && is_told ? NC_EMULTIDEFINE_OMODE : error;
}

// --- close -----------------------------------------------------------------------------------------------------------------

namespace {

int cancel_pending(File &file, const Queue &queue, const char *kind, int which) {
  if (queue.size() == 0) return NC_NOERR;
  std::printf("PnetCDF warning: %d nonblocking %s requests still pending on process %d. Cancelling ...\n", queue.size(),
              kind, file.ranks().rank());
  cancel(file, which, nullptr, nullptr);
  return NC_EPENDING;
}

/// Returns when no rank writes to the file, or reads it, any more.
void await_all(File &file) {
  if (!file.writable) return agree(file);
  file.ranks().await_notes();  // collective writes and reads, and whatever was done independently
  file.ranks().wait_until_read();
  file.raise_records(file.ranks().records());
}

int close_on_servers(File &file) {
  await_all(file);
  return file.ranks().from_root([&] {
    auto &session = Session::get();
    if (file.writable && !file.is_settled) mark_all(file);
    const auto closed =
        session.client()->close(file.token(), file.num_records, session.closing(), file.ranks().order());
    if (!closed && file.is_settled && is_loss(closed.error()) && session.look_for_servers())
      return session.settle_no_more(file.identity), NC_NOERR;
    if (closed && *closed == NC_NOERR && session.closing() == staging::Closing::kDurable)
      session.settle_no_more(file.identity);
    return file.code_of(closed, "ncmpi_close", NC_EWRITE);
  });
}

int abort_as_root(File &file) {
  auto result = Session::get().client()->abort(file.token());
  if (!result) return file.lost(result.error(), "ncmpi_abort", NC_EWRITE);
  return *result == NC_NOERR && file.is_new ? ncmpi_delete(file.opened_as().path.c_str(), MPI_INFO_NULL) : *result;
}

int abort_on_servers(File &file) {
  agree(file);
  return file.ranks().from_root([&] { return abort_as_root(file); });
}

int first(int earlier, int later) { return earlier != NC_NOERR ? earlier : later; }

int leave_mode(File &file) {
  const int status = file.in_define_mode ? end_definitions(file, {}) : NC_NOERR;
  if (file.independent) leave_independent_mode(file);
  return status;
}

int close_natively(const File &file) {
  return write_natively(file, [&] {
    const auto turn = turn_for(file);
    return ncmpi_close(file.id());
  });
}

int close_staged(File &file) {
  int status = file.is_inherited() ? NC_NOERR : leave_mode(file);
  if (file.is_native()) return first(status, close_natively(file));
  status = first(status, cancel_pending(file, file.requests.gets, "get", NC_GET_REQ_ALL));
  status = first(status, cancel_pending(file, file.requests.puts, "put", NC_PUT_REQ_ALL));
  if (!file.is_inherited()) status = first(status, close_on_servers(file));
  return first(status, file.take_error());
}

/// In data mode natively the same as closing, but that pending requests are forgotten without a word.
int abort_staged(File &file) {
  if (file.is_inherited()) return file.take_error();
  if (file.independent) leave_independent_mode(file);
  const int status = file.in_define_mode ? abort_on_servers(file) : close_on_servers(file);
  return first(status, file.take_error());
}

int abort_natively(const File &file) {
  return write_natively(file, [&] {
    const auto turn = turn_for(file);
    return ncmpi_abort(file.id());
  });
}

}  // namespace

int on_close(File &file) {
  std::optional<Stopwatch> stopwatch(file.spent);
  const bool is_native = file.is_native();
  const auto bytes = file.spent.counts && !is_native ? file.data_bytes() : 0;
  const int status = is_native ? close_natively(file) : close_staged(file);
  stopwatch.reset();
  note_closed(file.spent, !is_native, bytes);
  files().remove(file);
  return status;
}

int on_abort(File &file) {
  const int status = file.is_native() ? abort_natively(file) : abort_staged(file);
  files().remove(file);
  return status;
}

int on_delete(const char *path, MPI_Info info) {
  if (path != nullptr && *path != '\0' && Session::get().connected()) settle({path, absolute_names(path), 0, {}});
  return ncmpi_delete(path, info);
}

}  // namespace interpose
