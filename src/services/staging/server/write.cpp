// SPDX-License-Identifier: BSD-3-Clause
// Data are pulled a slice at a time, so that a piece of any size needs little memory.
#include <services/staging/server/server.hpp>

#include <services/staging/server/pieces_check.hpp>

#include <base/crc32c.hpp>
#include <base/log.hpp>

#include <fmt/format.h>
#include <pnetcdf.h>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::size_t kSmallBytes = 48 << 10;  // up to here a pull of its own costs more than copying once more

constexpr std::uint32_t kMostListBytes = 16 << 20;

Error list_outside() {
  return {Code::kInvalidArgument, "a transfer cannot be carried out: the list of its pieces is not in its buffer"};
}

Error not_as_sent(const std::string &path) {
  return {Code::kBadMessage,
          fmt::format("{}: data of a write have another checksum here than where they come from: memory, or a network, "
                      "is faulty",
                      path)};
}

/// The bytes of the buffer that are data.
std::uint64_t data_bytes(const nssi::Request &request, const TransferArgs &args) {
  return args.listed_bytes == 0 ? request.data_bytes() : args.listed_at;
}

}  // namespace

/// A write that is in hand: counted when it is over, whatever its end.
class Server::Counted {
 public:
  Counted(OpenFile &file, std::uint64_t call) : file_(file), call_(call) {}
  ~Counted() { count(); }
  Counted(const Counted &) = delete;
  /// Now, and not again.
  void count() {
    if (std::exchange(is_counted_, true)) return;
    file_.writes.add(call_);
    file_.wrote.notify_all();
  }

 private:
  OpenFile &file_;
  const std::uint64_t call_;
  bool is_counted_ = false;
};

/// A write that is being carried out.
class Server::Running {
 public:
  explicit Running(OpenFile &file) : file_(file) { ++file_.writing; }
  ~Running() { --file_.writing; }
  Running(const Running &) = delete;

 private:
  OpenFile &file_;
};

// Design notes. A write takes these steps in this order:
// - its place in the line, before it waits for anything: what was sent before finds it there, or goes before it;
// - the writes that its sender knows of, which may stand behind it in the line, and therefore may pass it;
// - the inboxes, in which there may be what was sent before: at the last moment, as what comes later is sent later;
// - the gate. Who wants the file alone goes first, and may have ended it: so it is looked at again, and the pieces are
//   checked with the variables as they are now;
// - its turn, and what other handles have in pages, which would otherwise be drained over it;
// - the number of records, when the data are here: a header must not count what a killed process has not sent.

Result<NcResult> Server::write(Request &request, const TransferArgs &args) {
  const bool has_waited = is_recovering_;
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find_to_write(args.file);
  if (!file) return unknown(args.file);
  if (const auto *client = returning(request.caller());
      file->is_kept() && client != nullptr && args.number != 0 && client->done.has(args.number))
    return NcResult{};  // it was carried out before this server was started again
  Counted counted(*file, args.call);
  const bool is_ordered = file->takes_turns || args.in_order;
  const auto is_held_up = [&] { return !file->writes.has(args.after) || file->gate.is_wanted_alone(); };
  std::optional<Line::Place> place;
  if (is_ordered || args.sent_ns != 0) place.emplace(*file->line, request.caller(), args.sent_ns, is_held_up);
  if (has_waited) take_turns();  // until all that have waited have their places
  (void)await_writes(*file, args.after);
  if (is_ordered && !file->is_direct) look_at_inboxes();
  drainer_.note_activity();
  const Running running(*file);
  std::optional<FileGate::Shared> shared(std::in_place, file->gate);
  if (file->ended) return NcResult{NC_EBADID};
  const auto asked = look_at(request, *file, args);
  if (!asked.ok()) return asked.error();
  if (!args.ends_call && statistics_.writes == 0) statistics_.first_write_s = seconds_now();
  if (!args.ends_call) count(request.caller(), &ReportResult::writes);
  file->raise_num_records(args.num_records);
  if (is_ordered) place->await_turn();
  if (file->takes_turns) drain_others(*file);
  const auto failed_before = file->failed_pages;
  const auto *view = request.view_data();
  if (file->marked) marks_.note_written(*file->marked, asked->checked.parts, args.call);
  if (auto brought = bring_in(request, *file, *asked, args); !brought.ok()) return brought.error();
  if (file->is_kept() && !file->is_direct) counted.count();
  const int error = file->is_direct ? write_through(*file, args, failed_before) : NC_NOERR;
  if (file->is_kept() && file->is_direct && error == NC_NOERR) {
    keep_done(request.caller(), *file, args);
    counted.count();
  }
  note_write(*file);
  if (error == NC_NOERR) {
    const bool had_arrived = view != nullptr && !file->is_direct;
    for (const auto &part : asked->checked.parts) file->acknowledge(*file->find(part.varid), part.bytes, had_arrived);
    note_records(*file, asked->checked.records);
  }
  if (view != nullptr) view->release_pages();
  place.reset();
  shared.reset();
  if (file->is_kept())
    if (auto kept = await_kept(*file); !kept.ok()) return kept.error();
  const int earlier = file->take_error();
  return NcResult{earlier != NC_NOERR ? earlier : error};
}

/// Of a write that is complete. In direct mode the header has them, as natively.
void Server::note_records(OpenFile &file, std::int64_t records) {
  if (records <= file.num_records) return;
  file.raise_num_records(records);
  if (file.is_direct) (void)tell_records(file, true);
}

/// Takes over what a request says of its pieces, and checks it: in its buffer it is the caller's to change.
Result<Server::Asked> Server::look_at(Request &request, OpenFile &file, const TransferArgs &args) {
  Asked asked;
  if (args.listed_bytes == 0) {
    asked.list = args.pieces;
  } else {
    const auto end = args.listed_at + args.listed_bytes;
    if (args.listed_bytes > kMostListBytes || end < args.listed_at || end > request.data_bytes()) return list_outside();
    asked.list.resize(args.listed_bytes);
    const auto *view = request.view_data();
    if (view != nullptr)
      std::ranges::copy(view->bytes().subspan(args.listed_at, args.listed_bytes), asked.list.begin());
    else if (auto status = pull(request, asked.list, args.listed_at); !status.ok())
      return status.error();
  }
  auto checked = check_pieces(asked.list, data_bytes(request, args), file.shapes());
  if (!checked.ok()) return checked.error();
  asked.checked = std::move(*checked);
  return asked;
}

/// What a client has sent and lends in place is this server's to keep: the program may take it for written.
void Server::note_arrival(Request &request) {
  if (request.view_data() == nullptr) return;
  const auto args = xdr::decode<TransferArgs>(request.args());
  if (!args.ok()) return;
  const auto file = find_to_write(args->file);
  if (!file || file->is_direct) return;
  const auto asked = look_at(request, *file, *args);
  if (!asked.ok()) return;
  for (const auto &part : asked->checked.parts) file->arrived(*file->find(part.varid), part);
  file->line->note_arrival(request.caller(), args->sent_ns);
}

void Server::Arriving::note(std::span<const std::byte> data) {
  offset += data.size();
  if (args.is_checked) checksum = nessie::crc32c(data, checksum);
}

/// The same, and returns sum_of() the data. `is_wanted`: otherwise it need not be right.
std::uint32_t Server::Arriving::note_sum(std::span<const std::byte> data, bool is_wanted) {
  const auto sum = is_wanted || args.is_checked ? sum_of(data) : 0;
  offset += data.size();
  if (args.is_checked) checksum = ~nessie::join_crc32c(~checksum, sum, data.size());
  return sum;
}

/// Puts what is written into pages, and into the journal of a file that is kept. What arrives with another checksum
/// than it was sent with is fetched once more.
Status Server::bring_in(Request &request, OpenFile &file, const Asked &asked, const TransferArgs &args) {
  constexpr int kMostAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    Arriving arriving{request, args};
    auto status = bring_once(arriving, file, asked);
    if (status.ok() && !arriving.is_right()) status = not_as_sent(file.path);
    if (status.ok() || status.code() != Code::kBadMessage || attempt == kMostAttempts) return status;
    nessie::log::warning("{}; they are fetched once more", status.error().message);
  }
}

Status Server::bring_once(Arriving &arriving, OpenFile &file, const Asked &asked) {
  const auto *view = arriving.request.view_data();
  if (file.is_kept() && !file.is_direct) return keep_in(arriving, file, asked);
  if (view == nullptr) return pull_in(arriving, file, asked);
  take_in(arriving, file, asked, view->bytes());
  return {};
}

/// Puts pieces into pages whose data are here, one after the other.
void Server::put_pieces(OpenFile &file, std::span<const std::byte> list, std::span<const std::byte> data) {
  const auto *from = data.data();
  Piece piece;
  for (PieceReader pieces(list); pieces.next(piece);) {
    auto &cached = *file.find(piece.varid)->cached;
    drainer_.put(cached, piece, from);
    from += piece.elements() * cached.variable.element_bytes;
  }
}

/// Puts pieces into pages from where they lie in the client's memory.
void Server::take_in(Arriving &arriving, OpenFile &file, const Asked &asked, std::span<const std::byte> data) {
  const auto before = seconds_now();
  auto pieces = asked.pieces();
  Piece piece;
  const std::byte *from = data.data();
  while (pieces.next(piece)) {
    auto &cached = *file.find(piece.varid)->cached;
    const auto size = static_cast<std::size_t>(piece.elements() * cached.variable.element_bytes);
    drainer_.put(cached, piece, from);
    arriving.note({from, size});  // who waits for room has touched nothing of the client's memory yet
    from += size;
  }
  count(arriving.request.caller(), &ReportResult::bytes_pulled, asked.checked.bytes);
  statistics_.last_pull_s = seconds_now();
  statistics_.busy_pull_s += statistics_.last_pull_s - before;
}

/// Puts pieces into pages that have to be pulled first: small ones many at a time, large ones to where they belong.
Status Server::pull_in(Arriving &arriving, OpenFile &file, const Asked &asked) {
  std::vector<Piece> group;
  std::size_t group_bytes = 0;
  const auto pull_rest = [&] {
    auto status = group.empty() ? Status() : pull_group(arriving, file, group, group_bytes);
    group.clear();
    group_bytes = 0;
    return status;
  };
  auto pieces = asked.pieces();
  Piece piece;
  while (pieces.next(piece)) {
    auto &cached = *file.find(piece.varid)->cached;
    const auto size = static_cast<std::size_t>(piece.elements() * cached.variable.element_bytes);
    if (group_bytes + size > kBounceBytes)
      if (auto status = pull_rest(); !status.ok()) return status;
    if (size <= kSmallBytes) {
      group.push_back(piece);
      group_bytes += size;
      continue;
    }
    if (auto status = pull_rest(); !status.ok()) return status;
    if (auto status = pull_piece(arriving, cached, piece); !status.ok()) return status;
  }
  if (auto status = pull_rest(); !status.ok()) return status;
  return {};
}

Status Server::pull_group(Arriving &arriving, OpenFile &file, std::span<const Piece> group, std::size_t size_bytes) {
  const auto bounce = bounces_.take(arriving.request.caller());
  if (!bounce.ok()) return bounce.error();
  if (auto status = pull(arriving, {bounce->data(), size_bytes}); !status.ok()) return status;
  const std::byte *from = bounce->data();
  for (const auto &piece : group) {
    auto &cached = *file.find(piece.varid)->cached;
    drainer_.put(cached, piece, from);
    from += piece.elements() * cached.variable.element_bytes;
  }
  return {};
}

/// Lets the others go first: what several processes write together completes pages sooner if they go on side by side.
void Server::take_turns() {
  nssi::Event others(runtime_);
  runtime_.post([&] { others.set(); });
  (void)others.wait();
}

Status Server::pull_piece(Arriving &arriving, CachedVariable &variable, const Piece &piece) {
  const auto element_bytes = variable.variable.element_bytes;
  for (SliceCursor slices(piece, element_bytes, kBounceBytes); !slices.done(); slices.next()) {
    take_turns();
    const auto run = RunCursor(variable.variable, slices.slice()).run();
    if (run.size() == slices.elements()) {
      if (auto status = pull_run(arriving, variable, run); !status.ok()) return status;
      continue;
    }
    const auto size = static_cast<std::size_t>(slices.elements() * element_bytes);
    const auto bounce = bounces_.take(arriving.request.caller());
    if (!bounce.ok()) return bounce.error();
    if (auto status = pull(arriving, {bounce->data(), size}); !status.ok()) return status;
    drainer_.put(variable, slices.slice(), bounce->data());
  }
  return {};
}

/// A run of elements, or what is left of it, by way of a buffer.
Status Server::pull_boxes(Arriving &arriving, CachedVariable &variable, Interval run) {
  const auto &shape = variable.variable;
  const auto size = static_cast<std::size_t>(run.size() * shape.element_bytes);
  const auto bounce = bounces_.take(arriving.request.caller());
  if (!bounce.ok()) return bounce.error();
  if (auto status = pull(arriving, {bounce->data(), size}); !status.ok()) return status;
  const std::byte *from = bounce->data();
  for (const auto &box : boxes_of(shape, run)) {
    drainer_.put(variable, {shape.varid, box.start, box.count, {}}, from);
    from += box.elements() * shape.element_bytes;
  }
  return {};
}

/// A run of elements goes right into pages, but where too many of them wait for clients, or something is already.
Status Server::pull_run(Arriving &arriving, CachedVariable &variable, Interval run) {
  while (run.size() > 0) {
    auto *found = drainer_.page_to_fill(variable, run.begin);
    if (found == nullptr) return pull_boxes(arriving, variable, run);
    const Interval part{run.begin, std::min(run.end, found->range().end)};
    auto status = found->is_free(part) ? pull_part(arriving, *found, part) : pull_boxes(arriving, variable, part);
    if (!status.ok()) return status;
    run.begin = part.end;
  }
  return {};
}

Status Server::pull_part(Arriving &arriving, Page &found, Interval part) {
  Filling page(drainer_, found, part);
  if (auto status = pull(arriving.request, page.data(), arriving.offset); !status.ok()) return status;
  page.wrote(arriving.note_sum(page.data(), options_.drain.checks));
  return {};
}

Status Server::pull(Arriving &arriving, std::span<std::byte> bytes) {
  auto status = pull(arriving.request, bytes, arriving.offset);
  if (status.ok()) arriving.note(bytes);
  return status;
}

Status Server::pull(Request &request, std::span<std::byte> bytes, std::uint64_t offset) {
  const auto before = seconds_now();
  {
    const nessie::service::Moves::Move move(moves_, request.caller());
    if (auto status = request.get_data(bytes, offset); !status.ok()) return status;
  }
  statistics_.last_pull_s = seconds_now();
  statistics_.busy_pull_s += statistics_.last_pull_s - before;
  count(request.caller(), &ReportResult::bytes_pulled, bytes.size());
  return {};
}

}  // namespace staging
