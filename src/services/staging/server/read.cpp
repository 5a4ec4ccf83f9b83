// SPDX-License-Identifier: BSD-3-Clause
// From pages, or from the file, a slice at a time, so that a piece of any size needs little memory.
//
// Design notes. What a request reads of a variable is *dense* if it, or what all processes of a collective call
// together are likely to read, is most of the pages that it lies in. Then those pages are read from the file, each by
// one native call, whoever of the processes comes first, and all are served from there. What is not dense is read as it
// is asked for, many small pieces with one native call. So is everything when there is no memory for pages.
#include <services/staging/domains.hpp>
#include <services/staging/server/server.hpp>

#include <pnetcdf.h>

#include <algorithm>

namespace staging {

namespace {

constexpr std::size_t kMostPieces = 1024;           // that are taken apart at a time
constexpr std::size_t kPushedFromPage = 48 << 10;   // what is smaller is better copied, and pushed together
constexpr std::int64_t kCheapPageBytes = 64 << 10;  // reading so much takes little longer than reading one element
constexpr std::int64_t kWindow = 4;                 // pages that are asked for before their turn
constexpr int kAheadOfOne = 4;                      // pages that are read before anybody asks for them, for one request
constexpr std::size_t kMostAhead = 16;              // for all

}  // namespace

/// A read that is being carried out. Data for small pieces, which lie one after the other in the client's buffer, are
/// pushed together.
class Server::Reading {
  class Held;

 public:
  Reading(Server &server, Request &request, OpenFile &file, std::uint32_t processes)
      : server_(server), request_(request), file_(file), processes_(processes) {}

  /// The native code of the first that failed; an error: the client is gone.
  Result<int> read(const Asked &asked);
  /// The same to this process's memory, of no more than one slice. `records`: that the file has at least.
  int gather(const Asked &asked, std::int64_t records, std::byte *data);

 private:
  struct Place {
    FileVariable &variable;
    bool is_dense;
    std::int64_t last_page;  ///< that anything of it may lie in
    Interval own;            ///< part of the variable that this server is asked for
  };
  bool is_dense(const CachedVariable &variable, const Part &part) const;
  void read_ahead(Place place, std::int64_t first_page);
  std::int64_t pages_of(const CachedVariable &variable) const;
  /// What this server is asked for.
  Interval own_part(const CachedVariable &variable) const {
    const auto &options = server_.options_;
    return Domains(variable.variable, static_cast<int>(options.servers)).part_of(static_cast<int>(options.index));
  }
  Status read_pieces(Place place, std::span<const Piece> pieces);
  Status read_piece(Place place, const Piece &piece);
  Status read_run(Place place, Interval run);
  Status read_slice(Place place, const Piece &slice, std::size_t size_bytes);
  int fetch(Place place, const Piece &slice, std::byte *data);
  bool fetch_from_pages(Place place, const Piece &slice, std::byte *data);
  std::shared_ptr<Loader::Load> load(Place place, std::int64_t element);
  Held page_of(Place place, Interval &run);
  Held hold(const CachedVariable &variable, Page &page);
  Status push_packed();
  void note(int nc_error) {
    if (nc_error_ == NC_NOERR) nc_error_ = nc_error;
  }

  Server &server_;
  Request &request_;
  OpenFile &file_;
  std::int64_t records_ = 0;       ///< that somebody else knows of
  const std::uint32_t processes_;  ///< that read at the same time, presumably other parts of the same
  std::optional<nessie::service::Buffers::Lease> bounce_;
  std::size_t packed_ = 0;    ///< bytes there
  std::uint64_t offset_ = 0;  ///< in the client's buffer, of what is packed
  int nc_error_ = NC_NOERR;
};

/// A page that is being read from.
class Server::Reading::Held {
 public:
  Held() = default;
  Held(Drainer &drainer, Page &page) : drainer_(&drainer), page_(&page) { drainer.hold(page); }
  ~Held() {
    if (page_ != nullptr) drainer_->let_go(*page_);
  }
  Held(Held &&other) noexcept : drainer_(other.drainer_), page_(std::exchange(other.page_, nullptr)) {}
  explicit operator bool() const { return page_ != nullptr; }
  const std::byte *at(std::int64_t element) const { return page_->at(element); }

 private:
  Drainer *drainer_ = nullptr;
  Page *page_ = nullptr;
};

Result<NcResult> Server::read(Request &request, const TransferArgs &args) {
  if (auto status = await_recovered(); !status.ok()) return status.error();
  const auto file = find(args.file);
  if (!file) return unknown(args.file);
  runtime_.hasten_bulk();
  (void)await_writes(*file, args.after);
  await_what_was_sent(*file);
  const FileGate::Shared shared(file->gate);
  if (!find(args.file)) return NcResult{NC_EBADID};
  const auto asked = look_at(request, *file, args);
  if (!asked.ok()) return asked.error();
  count(request.caller(), &ReportResult::reads);
  file->raise_num_records(args.num_records);
  std::optional<Line::Place> place;
  if (file->takes_turns) {
    place.emplace(*file->line, request.caller());
    place->await_turn();
    drain_others(*file);
  }
  look_behind(*file);
  auto read = Reading(*this, request, *file, args.call != 0 ? file->processes : 1).read(*asked);
  if (!read.ok()) return read.error();
  return NcResult{*read};
}

Result<int> Server::Reading::read(const Asked &asked) {
  auto pieces = asked.pieces();
  Piece piece;
  bool more = pieces.next(piece);
  for (const auto &part : asked.checked.parts) {
    auto &variable = *file_.find(part.varid);
    const auto last = std::max<std::int64_t>(0, part.bounds.end - 1) / variable.cached->page_elements;
    const auto own = own_part(*variable.cached);
    const Place place{variable, is_dense(*variable.cached, part), last, own};
    read_ahead(place, part.bounds.begin / variable.cached->page_elements);
    std::vector<Piece> some;
    while (more && piece.varid == part.varid) {
      for (; more && piece.varid == part.varid && some.size() < kMostPieces; more = pieces.next(piece))
        some.push_back(piece);
      if (auto status = read_pieces(place, some); !status.ok()) return status.error();
      some.clear();
    }
  }
  if (auto status = push_packed(); !status.ok()) return status.error();
  return nc_error_;
}

int Server::Reading::gather(const Asked &asked, std::int64_t records, std::byte *data) {
  records_ = records;
  auto part = asked.checked.parts.begin();
  auto pieces = asked.pieces();
  for (Piece piece; pieces.next(piece);) {
    while (part->varid != piece.varid) ++part;
    auto &variable = *file_.find(piece.varid);
    const auto last = std::max<std::int64_t>(0, part->bounds.end - 1) / variable.cached->page_elements;
    const Place place{variable, is_dense(*variable.cached, *part), last, own_part(*variable.cached)};
    const auto elements = piece.elements();
    if (elements > 0) note(fetch(place, piece, data));
    data += elements * variable.cached->variable.element_bytes;
  }
  return nc_error_;
}

bool Server::Reading::is_dense(const CachedVariable &variable, const Part &part) const {
  const auto page_bytes = variable.page_elements * variable.variable.element_bytes;
  if (page_bytes <= kCheapPageBytes) return true;
  const auto first = part.bounds.begin / variable.page_elements,
             end = (part.bounds.end - 1) / variable.page_elements + 1;
  const auto spanned = static_cast<double>(end - first) * static_cast<double>(page_bytes);
  return static_cast<double>(part.bytes) * processes_ * 2 >= spanned;
}

Status Server::Reading::read_pieces(Place place, std::span<const Piece> pieces) {
  const auto &cached = *place.variable.cached;
  while (!pieces.empty()) {
    const bool has_pages = place.is_dense || cached.dirty_bytes > 0 || !cached.clean.empty();
    const auto count = has_pages ? 1 : batch_of(file_, pieces);
    if (count > 1) {
      if (auto status = push_packed(); !status.ok()) return status;
      auto error = server_.read_batch(request_, file_, pieces.first(count), offset_);
      if (!error.ok()) return error.error();
      note(*error);
    } else if (auto status = read_piece(place, pieces.front()); !status.ok()) {
      return status;
    }
    pieces = pieces.subspan(count);
  }
  return {};
}

Status Server::Reading::read_piece(Place place, const Piece &piece) {
  const auto &shape = place.variable.cached->variable;
  for (SliceCursor slices(piece, shape.element_bytes, kBounceBytes); !slices.done(); slices.next()) {
    const auto size = static_cast<std::size_t>(slices.elements() * shape.element_bytes);
    const auto run = size >= kPushedFromPage ? RunCursor(shape, slices.slice()).run() : Interval{};
    const bool is_run = run.size() == slices.elements() && place.is_dense;
    auto status = is_run ? read_run(place, run) : read_slice(place, slices.slice(), size);
    if (!status.ok()) return status;
  }
  return {};
}

/// What lies in a page goes from there to the client, without being copied, unless too many of them wait for clients.
Status Server::Reading::read_run(Place place, Interval run) {
  if (auto status = push_packed(); !status.ok()) return status;
  const auto &shape = place.variable.cached->variable;
  while (run.size() > 0) {
    Interval part = run;
    const auto held = page_of(place, part);
    if (!held) break;
    const auto size = static_cast<std::size_t>(part.size() * shape.element_bytes);
    if (auto status = server_.push(request_, {held.at(part.begin), size}, offset_); !status.ok()) return status;
    offset_ += size;
    run.begin = part.end;
  }
  for (const auto &box : boxes_of(shape, run)) {
    const auto size = static_cast<std::size_t>(box.elements() * shape.element_bytes);
    if (auto status = read_slice(place, {shape.varid, box.start, box.count, {}}, size); !status.ok()) return status;
  }
  return {};
}

Status Server::Reading::read_slice(Place place, const Piece &slice, std::size_t size_bytes) {
  if (packed_ + size_bytes > kBounceBytes)
    if (auto status = push_packed(); !status.ok()) return status;
  if (!bounce_) {
    auto bounce = server_.bounces_.take(request_.caller());
    if (!bounce.ok()) return bounce.error();
    bounce_.emplace(*std::move(bounce));
  }
  const int error = fetch(place, slice, bounce_->data() + packed_);
  if (error == NC_NOERR) return packed_ += size_bytes, Status();
  note(error);
  auto status = push_packed();
  offset_ += size_bytes;
  return status;
}

Status Server::Reading::push_packed() {
  auto status = packed_ == 0 ? Status() : server_.push(request_, {bounce_->data(), packed_}, offset_);
  offset_ += packed_;
  packed_ = 0;
  bounce_.reset();
  return status;
}

/// Reads a slice as it is after all writes: from pages, or, when what is dirty of it has been drained, from the file.
int Server::Reading::fetch(Place place, const Piece &slice, std::byte *data) {
  auto &cached = *place.variable.cached;
  if (fetch_from_pages(place, slice, data)) return NC_NOERR;
  server_.drainer_.flush(cached, bounds(cached.variable, slice));
  const auto records = std::max(file_.num_records, records_);
  server_.statistics_.bytes_read += static_cast<std::uint64_t>(slice.elements() * cached.variable.element_bytes);
  return server_.on_io([&] { return file_.native->read(cached.variable, slice, records, data); });
}

/// False: it cannot be had so.
bool Server::Reading::fetch_from_pages(Place place, const Piece &slice, std::byte *data) {
  auto &cached = *place.variable.cached;
  bool was_flushed = false;
  for (Gather gather(cached, slice, data);;) switch (gather.advance(server_.drainer_.cache())) {
      case Gather::State::kDone: return true;
      case Gather::State::kDirty:
        if (std::exchange(was_flushed, true)) return false;
        server_.drainer_.flush(cached, bounds(cached.variable, slice));
        break;
      case Gather::State::kMissing: {
        const auto loaded = place.is_dense ? load(place, gather.position()) : nullptr;
        if (!loaded || loaded->wait() != NC_NOERR || !gather.copy_from(*loaded->page)) return false;
      }
    }
}

/// The page of the beginning of `run`, which becomes what is there; none: it cannot be had so.
Server::Reading::Held Server::Reading::page_of(Place place, Interval &run) {
  auto &cached = *place.variable.cached;
  auto &drainer = server_.drainer_;
  run.end = std::min(run.end, (run.begin / cached.page_elements + 1) * cached.page_elements);
  auto found = drainer.cache().find(cached, run.begin);
  const auto is_there = [&] { return found.page != nullptr && found.page->covers(run); };
  if (!is_there() && (found.is_split || (found.page != nullptr && !found.page->is_clean()))) {
    drainer.flush(cached, run);
    found = drainer.cache().find(cached, run.begin);
  }
  if (is_there()) return hold(cached, *found.page);
  const auto loaded = load(place, run.begin);
  if (!loaded || loaded->wait() != NC_NOERR || !loaded->page->covers(run)) return {};
  return hold(cached, *loaded->page);
}

Server::Reading::Held Server::Reading::hold(const CachedVariable &variable, Page &page) {
  if (!server_.drainer_.may_hold(variable)) return {};
  return {server_.drainer_, page};
}

/// Has the page of an element read from the file, and those that are next.
std::shared_ptr<Loader::Load> Server::Reading::load(Place place, std::int64_t element) {
  auto &cached = *place.variable.cached;
  const auto index = element / cached.page_elements;
  auto load = server_.loader_.load(file_, cached, index, false);
  auto next = next_page(cached, index, place.own);
  for (int i = 0; load && i < kWindow && next <= place.last_page; ++i, next = next_page(cached, next, place.own))
    if (!cached.clean.contains(next)) (void)server_.loader_.load(file_, cached, next, false);
  return load;
}

std::int64_t Server::Reading::pages_of(const CachedVariable &variable) const {
  const auto &shape = variable.variable;
  const auto elements = shape.extent_elements() * (shape.is_record ? file_.num_records : 1);
  return (elements + variable.page_elements - 1) / variable.page_elements;
}

/// Whoever marches through a file finds there already what he comes to next, be it of this variable or the next one.
void Server::Reading::read_ahead(Place place, std::int64_t first_page) {
  if (!place.is_dense || !file_.keeps_clean) return;
  const auto varid = place.variable.cached->variable.varid;
  const bool is_end = next_page(*place.variable.cached, place.last_page, place.own) >= pages_of(*place.variable.cached);
  const bool marches = file_.march.note(varid, first_page, place.last_page, is_end);
  if (!marches && processes_ == 1) return;
  auto page = next_page(*place.variable.cached, place.last_page, place.own);
  int left = kAheadOfOne;
  for (auto at = static_cast<std::size_t>(varid); at < file_.variables().size() && left > 0; ++at) {
    auto &cached = *file_.variables()[at].cached;
    const auto own = own_part(cached);
    for (; own.size() > 0 && page < pages_of(cached) && left > 0; page = next_page(cached, page, own), --left)
      if (!cached.clean.contains(page) && server_.loader_.ahead() < kMostAhead)
        (void)server_.loader_.load(file_, cached, page, true);
    page = 0;
    if (at + 1 < file_.variables().size()) {
      const auto &next = *file_.variables()[at + 1].cached;
      page = own_part(next).begin / next.page_elements;
    }
  }
}

int Server::gather(Request &request, OpenFile &file, const Asked &asked, std::int64_t records, std::byte *data) {
  return Reading(*this, request, file, 1).gather(asked, records, data);
}

Status Server::push(Request &request, std::span<const std::byte> bytes, std::uint64_t offset) {
  const nessie::service::Moves::Move move(moves_, request.caller());
  if (auto status = request.put_data(bytes, offset); !status.ok()) return status;
  count(request.caller(), &ReportResult::bytes_pushed, bytes.size());
  return {};
}

/// What is known of a file's contents holds only as long as nobody writes to it past this server.
void Server::look_behind(OpenFile &file) {
  if (!file.keeps_clean) return;
  const auto changes = file.native->changes_by_others();
  const bool is_known = !file.may_be_written_past();
  if (is_known && changes == file.changes_seen) return;
  file.changes_seen = changes;
  file.forget_clean();
  if (!is_known) file.keep_clean(false);
}

}  // namespace staging
