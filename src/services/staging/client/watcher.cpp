// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Each server is asked to tell of changes by one request, which it answers late. A file is its home
// server's; of the others only the stage is looked at. A box is read from the owners of its elements, a part at a time;
// when an owner has closed the file, from there: if no server writes to it, it must be as the last one has left it.
#include <services/staging/client/watcher.hpp>

#include <services/launch/client/client.hpp>
#include <services/staging/client/file_reader.hpp>
#include <services/staging/domains.hpp>
#include <services/staging/piece_list.hpp>

#include <fmt/format.h>
#include <staging_rpc.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

using Stub = STAGING::CURRENT::Client;

constexpr std::size_t kSliceBytes = 1 << 20;
constexpr std::size_t kWindow = 4;  // requests of a read that are on their way
constexpr std::chrono::milliseconds kPatience{60'000}, kGrace{30'000};
constexpr std::size_t kMostClosed = 512, kMostReaders = 16;
constexpr int kAttempts = 2;  // a file that is closed may be opened, changed and closed again meanwhile

std::uint32_t patience_of(Deadline deadline) {
  constexpr int kLongest = 600'000;
  const int left = deadline.poll_timeout_ms();
  return static_cast<std::uint32_t>(left < 0 ? kLongest : std::min(left, kLongest));
}

Error overwritten(const std::string &path) {
  return {Code::kNotFound, path + ": some of it was written over since it was complete"};
}
Error not_told() { return {Code::kNotFound, "nothing was told of such a file"}; }

}  // namespace

struct Watcher::Impl {
  struct Server {
    std::string url;
    nssi::PeerId peer;
    Stub stub;
    WatchArgs seen = {};
    std::optional<nssi::Future<WatchResult>> news = {};
    bool has_ended = false;
  };
  /// As one of the servers has it.
  struct Place {
    FileStage stage = FileStage::kOpen;
    std::int64_t changed_ns = 0;
  };
  struct Known {
    std::string path;
    FileIdentity identity;
    int home = 0;
    std::uint32_t headers = 0, header_of = 0;  ///< which is the last, and which is here
    std::shared_ptr<const ClassicHeader> header;
    std::map<int, Place> places;
  };
  /// A part of what is read, and where it goes.
  struct Slice {
    int server = 0;
    Piece piece;
    std::span<std::byte> data;
    nssi::Future<MarkedReadResult> answer;
  };

  Result<Known> known(FileToken file) {
    const std::lock_guard lock(mutex);
    const auto found = files.find(file);
    if (found == files.end()) return not_told();
    return found->second;
  }
  Status greet(Deadline deadline);
  void ask_for_news(Server &server);
  Status take_news(int index, const WatchResult &news, News &result);
  bool note(int index, const WatchedFile &file);
  Status lose(const Server &server, const Error &why);
  Result<std::shared_ptr<const ClassicHeader>> ask_for_header(FileToken token, const Known &file, Deadline deadline);
  Result<std::shared_ptr<const FileReader>> reader(FileToken token, const Known &file, Deadline deadline);
  Result<std::int64_t> last_change(FileToken token, const Known &file, Deadline deadline);
  void ask_for(Slice &slice, FileToken token, const Mark &mark, Deadline deadline);
  Status finish(Slice &slice, FileToken token, const Known &file, const Mark &mark, Deadline deadline);
  Status read_in_file(const Slice &slice, FileToken token, const Known &file, Deadline deadline);
  void forget_reader(FileToken token) {
    std::erase_if(readers, [=](const auto &one) { return one.first == token; });
  }
  bool has_ended(int server) {
    const std::lock_guard lock(mutex);
    return servers[static_cast<std::size_t>(server)].has_ended;
  }
  int count() const { return static_cast<int>(servers.size()); }

  std::unique_ptr<nssi::Runtime> runtime;
  std::vector<Server> servers;
  Status lost;  ///< a server died
  std::mutex mutex;
  std::map<FileToken, Known> files;
  std::deque<FileToken> closed;  ///< the oldest first
  std::deque<std::pair<FileToken, std::shared_ptr<const FileReader>>> readers;
};

Watcher::Watcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Watcher::~Watcher() = default;
int Watcher::servers() const { return impl_->count(); }

// --- connecting -------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Watcher>> Watcher::connect(const nessie::Config &config, Deadline deadline) {
  nssi::RuntimeOptions options;
  options.endpoint.listen = false;
  options.endpoint.config = config;
  options.endpoint.config.set("nssi.reconnect", "0");  // who has died is said to have
  auto runtime = nssi::Runtime::open(std::move(options));
  if (!runtime.ok()) return runtime.error();
  const auto urls = launch::servers_in(config.get_or("servers", ""), **runtime, deadline);
  if (!urls.ok()) return urls.error();
  auto impl = std::make_unique<Impl>();
  impl->runtime = *std::move(runtime);
  for (const auto &url : *urls) {
    auto peer = impl->runtime->connect(url, deadline);
    if (!peer.ok()) return peer.error();
    impl->servers.push_back({url, *peer, Stub(*impl->runtime, *peer)});
  }
  if (auto status = impl->greet(deadline); !status.ok()) return status.error();
  return std::unique_ptr<Watcher>(new Watcher(std::move(impl)));
}

Status Watcher::Impl::greet(Deadline deadline) {
  const HelloArgs hello{Op::kVersion, {}, 0, {}};
  for (int index = 0; index < count(); ++index) {
    auto &server = servers[static_cast<std::size_t>(index)];
    const auto answer = server.stub.hello(hello, {.deadline = deadline});
    if (!answer.ok()) return answer.error();
    if (static_cast<int>(answer->index) != index || static_cast<int>(answer->servers) != count())
      return Error{Code::kInvalidArgument,
                   fmt::format("of {} servers the one at place {} says that it is server {} of {}: name all of a run, "
                               "in their order",
                               count(), index, answer->index, answer->servers)};
  }
  return {};
}

// --- news -------------------------------------------------------------------------------------------------------------

Result<News> Watcher::next(Deadline deadline) {
  if (!impl_->lost.ok()) return impl_->lost.error();
  for (;;) {
    std::vector<nssi::Call *> calls(impl_->servers.size(), nullptr);
    for (std::size_t i = 0; i < impl_->servers.size(); ++i) {
      auto &server = impl_->servers[i];
      if (server.has_ended) continue;
      impl_->ask_for_news(server);
      calls[i] = &server.news->call();
    }
    News news;
    news.is_over = std::ranges::all_of(calls, [](const auto *call) { return call == nullptr; });
    if (news.is_over) return news;
    const auto first = nssi::wait_any(std::span<nssi::Call *const>(calls), deadline);
    if (!first.ok() && first.code() == Code::kTimedOut) return news;
    if (!first.ok()) return first.error();
    auto &server = impl_->servers[*first];
    const auto answer = std::exchange(server.news, std::nullopt)->wait();
    if (!answer.ok()) return impl_->lose(server, answer.error()).error();
    if (auto status = impl_->take_news(static_cast<int>(*first), *answer, news); !status.ok()) return status.error();
    if (!server.has_ended) impl_->ask_for_news(server);  // so that its last words find who hears them
    if (!news.is_empty()) return news;
  }
}

void Watcher::Impl::ask_for_news(Server &server) {
  if (server.news) return;
  auto args = server.seen;
  args.patience_ms = static_cast<std::uint32_t>(kPatience.count());
  server.news = server.stub.watch_async(args, {.deadline = Deadline::in(kPatience + kGrace)});
}

Status Watcher::Impl::lose(const Server &server, const Error &why) {
  const bool is_lost = why.code == Code::kPeerLost || why.code == Code::kTimedOut;
  if (!is_lost) return why;
  return lost = Error{Code::kPeerLost,
                      fmt::format("the staging server {} has died, and nobody knows what was complete of its files: {}",
                                  server.url, why.message),
                      nessie::Scope::kPeer};
}

Status Watcher::Impl::take_news(int index, const WatchResult &news, News &result) {
  const std::lock_guard lock(mutex);
  auto &server = servers[static_cast<std::size_t>(index)];
  const bool is_another = server.seen.incarnation != 0 && server.seen.incarnation != news.incarnation;
  if (is_another) return lose(server, {Code::kPeerLost, "another one has taken its place"});
  server.seen.incarnation = news.incarnation;
  server.seen.seen = news.seen;
  server.has_ended = news.is_ending;
  result.native = news.native;
  for (const auto &file : news.files)
    if (note(index, file)) result.files.push_back(file);
  return {};
}

/// True: for the user.
bool Watcher::Impl::note(int index, const WatchedFile &file) {
  auto &known = files[file.file];
  known.path = file.path;
  known.identity = file.identity;
  known.places[index] = {file.stage, file.changed_ns};
  if (file.stage != FileStage::kClosed) forget_reader(file.file);
  if (!file.is_home) return false;
  known.home = index;
  known.headers = file.headers;
  std::erase(closed, file.file);
  if (file.stage == FileStage::kClosed) closed.push_back(file.file);
  for (; closed.size() > kMostClosed; closed.pop_front()) files.erase(closed.front());
  return true;
}

// --- headers ----------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const ClassicHeader>> Watcher::header(FileToken token, Deadline deadline) {
  const auto file = impl_->known(token);
  if (!file.ok()) return file.error();
  if (file->header && file->header_of == file->headers) return file->header;
  auto header = impl_->ask_for_header(token, *file, deadline);
  if (!header.ok()) return header;
  const std::lock_guard lock(impl_->mutex);
  const auto known = impl_->files.find(token);
  if (known != impl_->files.end()) known->second.header = *header, known->second.header_of = file->headers;
  return header;
}

Result<std::shared_ptr<const ClassicHeader>> Watcher::Impl::ask_for_header(FileToken token, const Known &file,
                                                                           Deadline deadline) {
  if (!has_ended(file.home)) {
    auto &home = servers[static_cast<std::size_t>(file.home)];
    const auto answer = home.stub.header(token, {.deadline = deadline});
    if (!answer.ok()) return answer.error();
    if (answer->is_here && answer->nc_error != 0)
      return Error{Code::kIo, fmt::format("{}: PnetCDF's error {} in reading its header", file.path, answer->nc_error)};
    if (answer->is_here) {
      auto header = parse_classic_header(answer->header);
      if (!header.ok()) return header.error();
      return std::make_shared<const ClassicHeader>(*std::move(header));
    }
  }
  const auto closed = reader(token, file, deadline);
  if (!closed.ok()) return closed.error();
  return std::shared_ptr<const ClassicHeader>(*closed, &(*closed)->header());
}

// --- data -------------------------------------------------------------------------------------------------------------

namespace {

/// kOutOfRange, kInvalidArgument, as read().
Result<Piece> piece_of(const ClassicHeader &header, const Mark &mark, int varid, const nessie::service::Box &box,
                       std::size_t size_bytes) {
  if (varid < 0 || static_cast<std::size_t>(varid) >= header.variables.size())
    return Error{Code::kOutOfRange, fmt::format("there is no variable {}", varid)};
  const auto &variable = header.variables[static_cast<std::size_t>(varid)];
  if (box.start.size() != variable.dims() || box.count.size() != variable.dims())
    return Error{Code::kInvalidArgument, fmt::format("{} has {} dimensions, what is asked for has another number",
                                                     variable.name, variable.dims())};
  Piece piece{varid, box.start, box.count, {}};
  const auto elements = checked_elements(variable, piece);
  if (!elements || (variable.is_record && piece.start[0] + piece.count[0] > mark.records))
    return Error{Code::kOutOfRange, fmt::format("{} has no such box by that mark", variable.name)};
  if (static_cast<std::uint64_t>(*elements) * static_cast<std::uint64_t>(variable.element_bytes) != size_bytes)
    return Error{Code::kInvalidArgument, fmt::format("a box of {} with {} elements does not take {} bytes",
                                                     variable.name, *elements, size_bytes)};
  return piece;
}

}  // namespace

Status Watcher::read(FileToken token, const Mark &mark, int varid, const nessie::service::Box &box,
                     std::span<std::byte> data, Deadline deadline) {
  const auto header = this->header(token, deadline);
  if (!header.ok()) return header.error();
  const auto file = impl_->known(token);
  if (!file.ok()) return file.error();
  if (static_cast<int>(mark.after.size()) != impl_->count())
    return Error{Code::kInvalidArgument, "the mark is of a file of other servers"};
  const auto piece = piece_of(**header, mark, varid, box, data.size());
  if (!piece.ok()) return piece.error();
  const auto &variable = (*header)->variables[static_cast<std::size_t>(varid)];
  std::deque<Impl::Slice> under_way;
  const auto finish_first = [&] {
    auto status = impl_->finish(under_way.front(), token, *file, mark, deadline);
    under_way.pop_front();
    return status;
  };
  for (const auto &part : Domains(variable, impl_->count()).split(*piece)) {
    auto rest = data.subspan(part.offset_bytes, part.size_bytes);
    for (SliceCursor slices(part.piece, variable.element_bytes, kSliceBytes); !slices.done(); slices.next()) {
      const auto size = static_cast<std::size_t>(slices.elements() * variable.element_bytes);
      if (under_way.size() == kWindow)
        if (auto status = finish_first(); !status.ok()) return status;
      impl_->ask_for(under_way.emplace_back(Impl::Slice{part.server, slices.slice(), rest.first(size), {}}), token,
                     mark, deadline);
      rest = rest.subspan(size);
    }
  }
  while (!under_way.empty())
    if (auto status = finish_first(); !status.ok()) return status;
  return {};
}

void Watcher::Impl::ask_for(Slice &slice, FileToken token, const Mark &mark, Deadline deadline) {
  if (has_ended(slice.server)) return;
  const auto &after = mark.after[static_cast<std::size_t>(slice.server)];
  const MarkedReadArgs args{token,        mark.definition,       after,
                            mark.records, patience_of(deadline), PieceList(slice.piece).bytes()};
  slice.answer = servers[static_cast<std::size_t>(slice.server)].stub.read_marked_async(args, {.deadline = deadline});
}

Status Watcher::Impl::finish(Slice &slice, FileToken token, const Known &file, const Mark &mark, Deadline deadline) {
  for (int attempt = 1;; ++attempt) {
    if (!has_ended(slice.server)) {
      const auto answer = slice.answer.wait(deadline);
      if (!answer.ok()) return answer.error();
      if (answer->state == MarkedState::kMarkedGone) return overwritten(file.path);
      if (answer->nc_error != 0)
        return Error{Code::kIo, fmt::format("{}: PnetCDF's error {} in reading it", file.path, answer->nc_error)};
      if (answer->state == MarkedState::kMarkedHere && answer->data.size() != slice.data.size())
        return Error{Code::kBadMessage, "a staging server has answered a read with another number of bytes"};
      if (answer->state == MarkedState::kMarkedHere)
        return std::ranges::copy(answer->data, slice.data.begin()), Status();
    }
    auto status = read_in_file(slice, token, file, deadline);
    if (status.code() != Code::kNotFound || attempt == kAttempts) return status;
    ask_for(slice, token, mark, deadline);
  }
}

Status Watcher::Impl::read_in_file(const Slice &slice, FileToken token, const Known &file, Deadline deadline) {
  const auto closed = reader(token, file, deadline);
  auto status = closed.ok() ? (*closed)->read(slice.piece, slice.data) : Status(closed.error());
  if (status.ok()) return status;
  const std::lock_guard lock(mutex);
  forget_reader(token);
  return status;
}

Result<std::shared_ptr<const FileReader>> Watcher::Impl::reader(FileToken token, const Known &file, Deadline deadline) {
  {
    const std::lock_guard lock(mutex);
    const auto known = std::ranges::find(readers, token, &decltype(readers)::value_type::first);
    if (known != readers.end()) return known->second;
  }
  const auto changed_ns = last_change(token, file, deadline);
  if (!changed_ns.ok()) return changed_ns.error();
  auto opened = FileReader::open(file.path, file.identity, *changed_ns);
  if (!opened.ok()) return opened.error();
  auto reader = std::make_shared<const FileReader>(*std::move(opened));
  const std::lock_guard lock(mutex);
  if (*changed_ns == 0) return reader;
  readers.emplace_back(token, reader);
  if (readers.size() > kMostReaders) readers.pop_front();
  return reader;
}

/// As the last of the servers has left the file; 0: one has it open yet. What next() has told may be old.
Result<std::int64_t> Watcher::Impl::last_change(FileToken token, const Known &file, Deadline deadline) {
  std::int64_t changed_ns = 0;
  bool is_open = false;
  for (int index = 0; index < count(); ++index) {
    if (!has_ended(index)) {
      const MarkedReadArgs args{token, 1, {}, 0, patience_of(deadline), {}};
      const auto answer = servers[static_cast<std::size_t>(index)].stub.read_marked(args, {.deadline = deadline});
      if (!answer.ok()) return answer.error();
      is_open = is_open || answer->state == MarkedState::kMarkedHere;
      changed_ns = std::max(changed_ns, answer->changed_ns);
      continue;
    }
    const auto place = file.places.find(index);
    if (place == file.places.end()) continue;
    if (place->second.stage != FileStage::kClosed)
      return Error{Code::kPeerLost, file.path + " was open when its servers ended"};
    changed_ns = std::max(changed_ns, place->second.changed_ns);
  }
  return is_open ? 0 : changed_ns;
}

}  // namespace staging
