// SPDX-License-Identifier: BSD-3-Clause
// Write and read: data are pulled and pushed a slice at a time, so that a piece of any size needs little memory.
#include <services/staging/server/moving.hpp>

#include <base/log.hpp>

#include <fmt/format.h>
#include <pnetcdf.h>
#include <xdr/codec.hpp>

#include <algorithm>

namespace staging {

using nessie::Code;
using nessie::Error;

namespace {

constexpr std::chrono::milliseconds kBounceMoment{50};

Error bad_piece(const std::string &why) { return {Code::kInvalidArgument, "a transfer cannot be carried out: " + why}; }

/// The bytes of all pieces; an error if one does not lie in its variable or the caller's buffer holds less.
Status check(OpenFile &file, const TransferArgs &args, std::uint64_t data_bytes) {
  std::int64_t sum = 0;
  for (const auto &piece : args.pieces) {
    const auto *variable = file.find(piece.varid);
    if (variable == nullptr) return bad_piece(fmt::format("there is no variable {}", piece.varid));
    const auto &shape = variable->cached->variable;
    auto bytes = checked_elements(shape, piece);
    if (!bytes || __builtin_mul_overflow(*bytes, shape.element_bytes, &*bytes) ||
        __builtin_add_overflow(sum, *bytes, &sum))
      return bad_piece(fmt::format("a piece does not lie within variable {}", shape.name));
  }
  if (static_cast<std::uint64_t>(sum) > data_bytes)
    return bad_piece(fmt::format("its pieces take {} bytes, its buffer {}", sum, data_bytes));
  return {};
}

/// The records that a file has when these have been written.
std::int64_t records_after(OpenFile &file, const std::vector<Piece> &pieces) {
  std::int64_t records = 0;
  for (const auto &piece : pieces)
    if (file.find(piece.varid)->cached->variable.is_record && piece.elements() > 0)
      records = std::max(records, piece.start[0] + (piece.count[0] - 1) * piece.step(0) + 1);
  return records;
}

}  // namespace

void Server::watch_moves() {
  while (!moves_.empty() && !stopped_) {
    runtime_.sleep_until(nessie::Deadline::in(options_.client_timeout / 4));
    const auto late = std::find_if(moves_.begin(), moves_.end(), [this](const Move *move) {
      return move->late() && (finishing_ || !is_stopped(move->client()));
    });
    if (late == moves_.end()) continue;
    const auto client = (*late)->client();
    nessie::log::warning("a process of the program moved no data for {} ms and is given up",
                         options_.client_timeout.count());
    runtime_.disconnect(client);
    lost(client);
  }
  watching_moves_ = false;
}

bool Server::is_stuck(nssi::PeerId client) const {
  return std::ranges::any_of(moves_, [=](const Move *move) { return move->has_spare && move->client() == client; });
}

/// Suspends the fiber for a moment, or until a buffer is free. A client that is stopped, or slow, keeps the one that it
/// has, and gets no other meanwhile; the rest get another one in its place.
void Server::await_bounce() {
  if (bounce_free_.wait(nessie::Deadline::in(kBounceMoment)).ok()) return;
  for (auto *move : moves_) {
    if (!move->slow() || is_stuck(move->client())) continue;
    move->has_spare = true;
    give_back(std::make_unique_for_overwrite<std::byte[]>(kBounceBytes));
  }
}

void Server::give_back(std::unique_ptr<std::byte[]> bounce) {
  if (spares_to_take_back_ > 0) {
    --spares_to_take_back_;
    return;
  }
  bounces_.push_back(std::move(bounce));
  bounce_free_.notify_all();
}

void Server::take_spare_back() {
  ++spares_to_take_back_;
  if (!bounces_.empty()) {
    auto spare = std::move(bounces_.back());
    bounces_.pop_back();
    give_back(std::move(spare));
  }
  bounce_free_.notify_all();
}

/// A write that is in hand: counted when it is over, whatever its end.
class Server::Counted {
 public:
  Counted(OpenFile &file, std::uint64_t call) : file_(file), call_(call) {}
  ~Counted() {
    file_.writes.add(call_);
    file_.wrote.notify_all();
  }
  Counted(const Counted &) = delete;

 private:
  OpenFile &file_;
  const std::uint64_t call_;
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
  const auto file = find_to_write(args.file);
  if (!file) return NcResult{NC_EBADID};
  const Counted counted(*file, args.call);
  const bool is_ordered = file->takes_turns || args.in_order != 0;
  const auto is_held_up = [&] { return !file->writes.has(args.after) || file->gate.is_wanted_alone(); };
  std::optional<Line::Place> place;
  if (is_ordered || args.sent_ns != 0) place.emplace(*file->line, request.caller(), args.sent_ns, is_held_up);
  (void)await_writes(*file, args.after);
  if (is_ordered && options_.mode == Mode::kCaching) look_at_inboxes();
  const Running running(*file);
  const FileGate::Shared shared(file->gate);
  if (file->ended) return NcResult{NC_EBADID};
  if (auto status = check(*file, args, request.data_bytes()); !status.ok()) return status.error();
  if (statistics_.writes++ == 0) statistics_.first_write_s = seconds_now();
  file->raise_num_records(args.num_records);
  if (is_ordered) place->await_turn();
  if (file->takes_turns) drain_others(*file);
  auto first_error = write_pieces(request, *file, args.pieces);
  note_write(*file);
  if (!first_error.ok()) return first_error.error();
  note_records(*file, records_after(*file, args.pieces));
  if (const auto *view = request.view_data()) view->release_pages();
  const int earlier = file->take_error();
  return NcResult{earlier != NC_NOERR ? earlier : *first_error};
}

/// Of a write that is complete. In direct mode the header has them, as natively.
void Server::note_records(OpenFile &file, std::int64_t records) {
  if (records <= file.num_records) return;
  file.raise_num_records(records);
  if (options_.mode == Mode::kDirect) (void)tell_records(file, &NativeFile::publish_records);
}

/// The first native code that is none of success.
Result<int> Server::write_pieces(Request &request, OpenFile &file, std::span<const Piece> pieces) {
  std::uint64_t offset = 0;
  int first_error = NC_NOERR;
  while (!pieces.empty()) {
    const auto count = options_.mode == Mode::kDirect ? batch_of(file, pieces) : 1;
    auto error = count > 1 ? write_batch(request, file, pieces.first(count), offset)
                           : write_piece(request, file, pieces.front(), offset);
    if (!error.ok()) return error.error();
    if (first_error == NC_NOERR) first_error = *error;
    pieces = pieces.subspan(count);
  }
  return first_error;
}

Result<int> Server::write_piece(Request &request, OpenFile &file, const Piece &piece, std::uint64_t &offset) {
  auto &variable = *file.find(piece.varid);
  const auto element_bytes = variable.cached->variable.element_bytes;
  const auto begin = offset;
  if (const auto *view = request.view_data(); view != nullptr && options_.mode == Mode::kCaching) {
    take_in(file, variable, piece, view->bytes(), offset);
    return NC_NOERR;
  }
  int nc_error = NC_NOERR;
  for (SliceCursor slices(piece, element_bytes, kBounceBytes); !slices.done(); slices.next()) {
    const Bounce bounce(*this, request.caller());
    const auto size = static_cast<std::size_t>(slices.elements() * element_bytes);
    if (auto status = write_slice(request, file, variable, slices.slice(), {bounce.data(), size}, offset, nc_error);
        !status.ok())
      return status.error();
    offset += size;
  }
  if (nc_error == NC_NOERR) file.acknowledge(variable, offset - begin);
  return nc_error;
}

/// What a client has sent and lends in place is this server's to keep: the program may take it for written.
void Server::note_arrival(Request &request) {
  if (request.view_data() == nullptr || options_.mode != Mode::kCaching) return;
  const auto args = xdr::decode<TransferArgs>(request.args());
  if (!args.ok()) return;
  const auto file = find_to_write(args->file);
  if (!file || !check(*file, *args, request.data_bytes()).ok()) return;
  for (const auto &piece : args->pieces) file->arrived(*file->find(piece.varid), piece);
  file->line->note_arrival(request.caller(), args->sent_ns);
}

/// Puts a piece into pages from where it lies in the client's memory. `offset` moves on to the next one.
void Server::take_in(OpenFile &file, FileVariable &variable, const Piece &piece, std::span<const std::byte> data,
                     std::uint64_t &offset) {
  const auto before = seconds_now();
  const auto size = static_cast<std::uint64_t>(piece.elements()) *
                    static_cast<std::uint64_t>(variable.cached->variable.element_bytes);
  drainer_.put(*variable.cached, piece, data.data() + offset);
  file.acknowledge_arrived(variable, size);
  offset += size;
  statistics_.bytes_pulled += size;
  statistics_.last_pull_s = seconds_now();
  statistics_.busy_pull_s += statistics_.last_pull_s - before;
}

Status Server::pull(Request &request, std::span<std::byte> bytes, std::uint64_t offset) {
  const auto before = seconds_now();
  {
    const Move move(*this, request.caller());
    if (auto status = request.get_data(bytes, offset); !status.ok()) return status;
  }
  statistics_.last_pull_s = seconds_now();
  statistics_.busy_pull_s += statistics_.last_pull_s - before;
  statistics_.bytes_pulled += bytes.size();
  return {};
}

Status Server::push(Request &request, std::span<const std::byte> bytes, std::uint64_t offset) {
  const Move move(*this, request.caller());
  if (auto status = request.put_data(bytes, offset); !status.ok()) return status;
  statistics_.bytes_pushed += bytes.size();
  return {};
}

/// Past the pages.
void Server::note_written(FileVariable &variable, std::uint64_t bytes) {
  statistics_.bytes_drained += bytes;
  statistics_.last_drain_s = seconds_now();
  variable.in_file += bytes;
}

Status Server::write_slice(Request &request, OpenFile &file, FileVariable &variable, const Piece &slice,
                           std::span<std::byte> bytes, std::uint64_t offset, int &nc_error) {
  if (auto status = pull(request, bytes, offset); !status.ok()) return status;
  if (options_.mode == Mode::kCaching) {
    drainer_.put(*variable.cached, slice, bytes.data());
    return {};
  }
  const int error = on_io([&] { return file.native->write(slice, bytes.data()); });
  if (error == NC_NOERR) note_written(variable, bytes.size());
  if (nc_error == NC_NOERR) nc_error = error;
  return {};
}

Result<NcResult> Server::read(Request &request, const TransferArgs &args) {
  const auto file = find(args.file);
  if (!file) return NcResult{NC_EBADID};
  runtime_.hasten_bulk();
  (void)await_writes(*file, args.after);
  await_what_was_sent(*file);
  const FileGate::Shared shared(file->gate);
  if (!find(args.file)) return NcResult{NC_EBADID};
  if (auto status = check(*file, args, request.data_bytes()); !status.ok()) return status.error();
  ++statistics_.reads;
  file->raise_num_records(args.num_records);
  std::optional<Line::Place> place;
  if (file->takes_turns) {
    place.emplace(*file->line, request.caller());
    place->await_turn();
    drain_others(*file);
  }
  std::uint64_t offset = 0;
  int first_error = NC_NOERR;
  for (std::span<const Piece> left = args.pieces; !left.empty();) {
    const bool is_clean = file->find(left.front().varid)->cached->dirty_bytes == 0;
    const auto count = is_clean ? batch_of(*file, left) : 1;
    auto error = count > 1 ? read_batch(request, *file, left.first(count), offset)
                           : read_piece(request, *file, left.front(), offset);
    if (!error.ok()) return error.error();
    if (first_error == NC_NOERR) first_error = *error;
    left = left.subspan(count);
  }
  return NcResult{first_error};
}

Result<int> Server::read_piece(Request &request, OpenFile &file, const Piece &piece, std::uint64_t &offset) {
  auto &variable = *file.find(piece.varid);
  const auto element_bytes = variable.cached->variable.element_bytes;
  int nc_error = NC_NOERR;
  for (SliceCursor slices(piece, element_bytes, kBounceBytes); !slices.done(); slices.next()) {
    const Bounce bounce(*this, request.caller());
    const auto size = static_cast<std::size_t>(slices.elements() * element_bytes);
    const int error = fetch(file, variable, slices.slice(), bounce.data());
    if (nc_error == NC_NOERR) nc_error = error;
    if (error == NC_NOERR)
      if (auto status = push(request, {bounce.data(), size}, offset); !status.ok()) return status.error();
    offset += size;
  }
  return nc_error;
}

/// Reads a slice as it is after all writes: from the pages, or, when what is dirty of it has been drained, from the
/// file.
int Server::fetch(OpenFile &file, FileVariable &variable, const Piece &slice, std::byte *data) {
  if (drainer_.cache().gather(*variable.cached, slice, data)) return NC_NOERR;
  drainer_.flush(*variable.cached, bounds(variable.cached->variable, slice));
  const auto records = file.num_records;
  return on_io([&] { return file.native->read(variable.cached->variable, slice, records, data); });
}

}  // namespace staging
