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

}  // namespace

/// A fiber, at the start.
void Server::recover() {
  is_reading_ = true;
  if (!options_.log_path.empty()) read_log();
  is_reading_ = false;
  is_ready_ = true;
  if (!is_first()) join_first();
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
    if (!stream && is_first()) {
      journal_->log().release(write.at);
      continue;
    }
    if (!stream)
      stream = streams_.emplace(write.what.stream, std::make_shared<Stream>(runtime_, write.what.stream)).first->second;
    auto &seat = stream->shelf.make_seat(write.what.writer, write.what.rank, write.what.writers, Lasting::kInLog);
    stream->shelf.set_ended(seat, std::max(seat.ended, write.what.step + 1));
    const auto chunks = chunks_of(*store_, write.what, stream->shelf.tally());
    auto record = store_->find_logged(0, {{write.at, 0}}, stream->shelf.tally());
    std::vector<std::pair<VariableArgs, Block>> blocks;
    for (auto &block : write.what.blocks)
      if (block.variable < write.what.variables.size() && block.chunk < chunks.size())
        blocks.emplace_back(write.what.variables[block.variable],
                            Block{block.box, chunks[block.chunk], block.offset, seat.rank});
    stream->shelf.restore(write.what.step, seat, std::move(blocks), write.what.attributes, std::move(record));
  }
  for (const auto &[which, readers] : found.readers)
    if (const auto stream = find(which.first); stream && stream->account) {
      stream->account->restore(readers, now);
      stream->noted_readers.insert(which.second);
    }
  for (const auto &stream : in_order_) {
    std::vector<std::uint64_t> numbers;
    for (const auto &[number, step] : stream->shelf.steps()) numbers.push_back(number);
    for (const auto number : numbers)
      if (auto status = stream->account->take(stream->shelf.report(number, options_.index)); !status.ok())
        return status;
    subscribe_sinks(*stream);
    settle(*stream);
  }
  if (!in_order_.empty()) begin_looking_after();
  return {};
}

/// The stream as it is now, for a server that comes after this one.
Status Server::note(const Stream &stream, bool is_synced) {
  if (!journal_ || stream.account->lasting() != Lasting::kInLog) return {};
  const auto at = journal_->note(stream.account->to_log(stream.made));
  if (!at.ok()) return at.error();
  return is_synced ? journal_->sync(*at) : Status();
}

Status Server::note_readers(const Stream &stream, const Account::Group &group, bool is_gone, bool is_synced) {
  if (!journal_ || stream.account->lasting() != Lasting::kInLog) return {};
  const auto at = journal_->note(LoggedReaders{stream.shelf.stream(), group.subscription,
                                               static_cast<std::uint32_t>(group.ranks.size()), group.ended(), is_gone});
  if (!at.ok()) return at.error();
  return is_synced ? journal_->sync(*at) : Status();
}

/// A subscription that is new holds from now on, also when this server is killed.
Status Server::note_subscription(Stream &stream, Key reader) {
  const auto *group = stream.account->find_group(reader);
  if (group->subscription.empty() || !stream.noted_readers.insert(group->subscription).second) return {};
  return note_readers(stream, *group, false, true);
}

}  // namespace streams
