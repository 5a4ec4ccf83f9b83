// SPDX-License-Identifier: BSD-3-Clause
// What a server that is started anew makes of its log.
#include <services/streams/server/server.hpp>

#include <base/log.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace streams {

namespace {

/// Of a write: its chunks, as they are in the log, or in the record itself.
std::vector<std::shared_ptr<Chunk>> chunks_of(Store &store, const LoggedWrite &write,
                                              const std::shared_ptr<Tally> &tally) {
  std::vector<std::shared_ptr<Chunk>> chunks;
  for (const auto &logged : write.chunks) {
    if (logged.parts.empty()) {
      auto copy = std::make_shared<const std::vector<std::byte>>(logged.data);
      const std::span<const std::byte> bytes(*copy);
      chunks.push_back(store.keep({bytes, std::move(copy)}, tally));
      continue;
    }
    std::vector<LoggedPiece> pieces;
    std::uint64_t bytes = 0;
    for (const auto &part : logged.parts) {
      pieces.push_back({{part.begin, part.end}, part.bytes});
      bytes += part.bytes;
    }
    chunks.push_back(store.find_logged(bytes, std::move(pieces), tally));
  }
  return chunks;
}

/// A log is not believed what it says: somebody else may have written there.
bool is_there(const LoggedWrite &write, const LoggedBlock &block, const std::vector<std::shared_ptr<Chunk>> &chunks) {
  if (block.variable >= write.variables.size() || block.chunk >= chunks.size()) return false;
  const auto &variable = write.variables[block.variable];
  if (!check(variable).ok() || !check_inside(variable, block.box).ok()) return false;
  const auto has = chunks[block.chunk]->size_bytes(), needs = bytes_of(variable, block.box);
  return block.offset <= has && needs <= has - block.offset;
}

}  // namespace

/// A fiber, at the start.
void Server::recover() {
  is_reading_ = true;
  if (!options_.log_path.empty()) read_log();
  is_reading_ = false;
  if (!is_first()) return join_first();
  is_ready_ = true;
}

void Server::read_log() {
  auto journal = Journal::open(runtime_, budget_, options_.log_path);
  if (!journal.ok())
    return nessie::log::warning("without a log, for steps that memory has no room for: {}", journal.error().message);
  journal_ = *std::move(journal);
  store_->use_log(&journal_->log(), options_.log_bytes);
  auto found = journal_->recover();
  if (found.ok())
    if (auto status = restore(*std::move(found)); !status.ok()) found = status.error();
  is_log_read_ = found.ok();
  if (!found.ok()) nessie::log::error("the log {} cannot be read: {}", options_.log_path, found.error().message);
}

Status Server::restore(Recovered found) {
  for (const auto &damage : found.damage) nessie::log::error("a step is lost: {}", damage);
  std::vector<const LoggedStream *> in_order;
  for (const auto &[key, stream] : found.streams) in_order.push_back(&stream);
  std::ranges::sort(in_order, {}, &LoggedStream::made);
  const auto now = nessie::Clock::now();
  for (const auto *logged : in_order) {
    auto stream = std::make_shared<Stream>(runtime_, logged->stream);
    stream->made = logged->made;
    streams_made_ = std::max(streams_made_, logged->made + 1);
    stream->account = std::make_unique<Account>(logged->stream, logged->name, Lasting::kInLog, options_.servers);
    stream->account->restore(*logged, now + options_.reader_timeout);
    streams_.emplace(logged->stream, stream);
    in_order_.push_back(stream);
    by_name_[logged->name] = stream;
  }
  for (auto &write : found.writes) {
    auto stream = find(write.what.stream);
    const auto tally = stream ? stream->shelf.tally() : std::make_shared<Tally>();
    const auto chunks = chunks_of(*store_, write.what, tally);
    auto record = store_->find_logged(0, {{write.at, 0}}, tally);
    if (is_first() && (!stream || stream->account->group_of(write.what.step) != write.what.group)) continue;
    if (!stream)
      stream = streams_.emplace(write.what.stream, std::make_shared<Stream>(runtime_, write.what.stream)).first->second;
    const auto is_whole =
        std::ranges::all_of(write.what.blocks, [&](const auto &block) { return is_there(write.what, block, chunks); });
    if (!is_whole && stream->account && write.what.step >= stream->account->oldest())
      nessie::log::error("some of step {} of stream '{}' is lost: it is not in the log, or damaged there",
                         write.what.step, stream->account->name());
    stream->shelf.begin_group(write.what.group, ~std::uint64_t{0});
    auto &seat = stream->shelf.make_seat(write.what.writer, write.what.rank, write.what.writers, Lasting::kInLog);
    stream->shelf.set_ended(seat, std::max(seat.ended, write.what.step + 1));
    std::vector<std::pair<VariableArgs, Block>> blocks;
    for (auto &block : write.what.blocks)
      if (is_there(write.what, block, chunks) && (is_whole || write.what.variables[block.variable].is_constant))
        blocks.emplace_back(write.what.variables[block.variable],
                            Block{block.box, chunks[block.chunk], block.offset, seat.rank});
    auto &step =
        stream->shelf.restore(write.what.step, seat, std::move(blocks), write.what.attributes, std::move(record));
    if (!is_whole) step.ended.erase(seat.key);  // of such a step nobody sees more than constants
  }
  for (const auto &[which, readers] : found.readers)
    if (const auto stream = find(which.first); stream && stream->account) restore(*stream, readers);
  for (const auto &stream : in_order_) {
    stream->shelf.begin_group(stream->account->group(), ~std::uint64_t{0});
    std::vector<std::uint64_t> numbers;
    for (const auto &[number, step] : stream->shelf.steps()) numbers.push_back(number);
    for (const auto number : numbers)
      if (auto status = stream->account->take(report_of(*stream, number)); !status.ok()) return status;
    subscribe_sinks(*stream);
    settle(*stream);
  }
  if (!in_order_.empty()) begin_looking_after();
  return {};
}

/// Of a rule that there is no more nothing is held.
void Server::restore(Stream &stream, LoggedReaders readers) {
  const auto is_its = [&](const SinkRule &rule) { return rule.subscription() == readers.subscription; };
  if (readers.is_sink && std::ranges::none_of(options_.sinks, is_its)) {
    readers.is_gone = true;
    (void)journal_->note(readers);
  }
  stream.account->restore(readers, nessie::Clock::now());
  if (!readers.is_gone) stream.noted_readers.insert(readers.subscription);
}

/// The stream as it is now, for a server that comes after this one. Where it ends in the log; 0: it is not noted there.
Result<Lsn> Server::note(Stream &stream) {
  if (!journal_ || stream.account->lasting() != Lasting::kInLog) return Lsn{0};
  const auto at = journal_->note(stream.account->to_log(stream.made));
  if (!at.ok()) return at.error();
  stream.noted_group = stream.account->group();
  return at->end;
}

/// Of a group that the log has, only this one.
Result<Lsn> Server::note_writer(Stream &stream, Key writer) {
  if (!journal_ || stream.noted_group != stream.account->group()) return note(stream);
  const auto seat = stream.account->seat_to_log(writer);
  if (!seat) return Lsn{0};
  const auto at = journal_->note(*seat);
  if (!at.ok()) return at.error();
  return at->end;
}

/// What `note` puts into the log; waits for room there.
Status Server::note_synced(Request &request, const std::function<Result<Lsn>()> &note) {
  Lsn until = 0;
  return await_log(request, [&]() -> Status {
    if (until == 0) {
      const auto at = note();
      if (!at.ok()) return at.error();
      until = *at;
    }
    return until == 0 ? Status() : journal_->sync(until);
  });
}

/// As note().
Result<Lsn> Server::note_readers(const Stream &stream, const Account::Group &group, bool is_gone) {
  if (!journal_ || stream.account->lasting() != Lasting::kInLog) return Lsn{0};
  const auto at = journal_->note(LoggedReaders{stream.shelf.stream(), group.subscription,
                                               static_cast<std::uint32_t>(group.ranks.size()), group.ended(), is_gone,
                                               group.is_sink});
  if (!at.ok()) return at.error();
  return at->end;
}

/// A subscription that is new holds from now on, also when this server is killed.
Status Server::note_subscription(Request &request, Stream &stream, Key reader) {
  const auto name = stream.account->find_group(reader)->subscription;
  if (name.empty() || !stream.noted_readers.insert(name).second) return {};
  const auto status = note_synced(request, [&]() -> Result<Lsn> {
    const auto *group = stream.account->find_group(reader);
    return group != nullptr ? note_readers(stream, *group) : Lsn{0};
  });
  if (!status.ok()) stream.noted_readers.erase(name);
  return status;
}

}  // namespace streams
