// SPDX-License-Identifier: BSD-3-Clause
// Who reads which stream, and the next step of each.
#include <services/streams/server/server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace streams {

namespace {

Error unknown_reader() {
  return {Code::kNotFound,
          "the server does not know this reader: it was started anew, or the reader was silent for long"};
}

Status check_reader(const ReaderArgs &args) {
  if (auto status = check_name("stream", args.stream); !status.ok()) return status;
  if (args.size == 0 || args.size > kMostRanks || args.rank >= args.size || args.reader == 0)
    return Error{Code::kInvalidArgument, fmt::format("rank {} is not among {} readers", args.rank, args.size)};
  if (args.size > 1 && args.subscription.empty() && args.group == 0)
    return Error{Code::kInvalidArgument,
                 "several ranks of readers have to say which group they are: by the name of a "
                 "subscription, or a number"};
  if (!args.subscription.empty()) return check_name("subscription", args.subscription);
  return {};
}

}  // namespace

/// The oldest of that name which the subscription has not read to its end; otherwise the newest.
Server::StreamPtr Server::stream_to_read(const ReaderArgs &args) const {
  if (!args.subscription.empty())
    for (const auto &stream : in_order_) {
      if (stream->account->name() != args.stream || !stream->account->is_over()) continue;
      for (const auto &group : stream->account->groups())
        if (group.subscription == args.subscription && group.ended() < stream->account->complete()) return stream;
    }
  const auto found = by_name_.find(args.stream);
  return found == by_name_.end() ? nullptr : found->second;
}

nssi::Outcome<ReaderResult> Server::open_reader(Request &request, const ReaderArgs &args) {
  if (!is_first()) return Error{Code::kInvalidArgument, "only the first server has readers"};
  if (auto status = check_reader(args); !status.ok()) return status.error();
  const auto deadline = request.deadline().earlier(Deadline::in(std::chrono::milliseconds(args.patience_ms)));
  auto stream = args.known != 0 ? find(args.known) : stream_to_read(args);
  if (args.known != 0 && (!stream || !stream->account))
    return Error{Code::kNotFound,
                 fmt::format("the servers of stream '{}' were started anew, and what they had of it in "
                             "memory is lost",
                             args.stream)};
  while (!stream) {
    if (auto status = request.check(); !status.ok()) return status.error();
    if (deadline.passed() || is_ending_)
      return Error{Code::kTimedOut, fmt::format("there is no stream '{}' yet", args.stream)};
    (void)made_.wait(deadline);
    stream = stream_to_read(args);
  }
  if (auto status = stream->account->seat_reader(args, request.caller(), nessie::Clock::now()); !status.ok())
    return status.error();
  if (auto status = note_subscription(request, *stream, args.reader); !status.ok()) return status.error();
  note_place(request.caller());
  begin_looking_after();
  stream->readers_came.notify_all();
  return ReaderResult{stream->shelf.stream(), static_cast<std::uint32_t>(options_.reader_timeout.count())};
}

nssi::Outcome<NextResult> Server::next(Request &request, const NextArgs &args) {
  const auto stream = find(args.stream);
  const auto deadline = request.deadline().earlier(Deadline::in(std::chrono::milliseconds(args.patience_ms)));
  for (bool is_settled = false;;) {
    if (!stream || !stream->account || stream->account->find_rank(args.reader) == nullptr) return unknown_reader();
    auto result = stream->account->next(args.reader, args.ended, nessie::Clock::now());
    if (!std::exchange(is_settled, true)) settle(*stream), files_changed_.notify_all();
    if (result && result->state == NextState::kWritersLost && may_come(*stream)) result.reset();
    if (result) {
      if (result->state == NextState::kStepIsThere) {
        add_small_blocks(*stream, *result);
        result->source = source_of(*stream, result->step, args.headers);
      }
      return *std::move(result);
    }
    if (auto status = request.check(); !status.ok()) return status.error();
    if (deadline.passed() || is_ending_) {
      NextResult none;
      none.state = NextState::kNoStepYet;
      return none;
    }
    if (auto status = stream->changed.wait(deadline); status.code() == Code::kCancelled) return status.error();
  }
}

/// Whether the next step may be complete still, though some of its writers are gone: what readers are told then is
/// final.
bool Server::may_come(const Stream &stream) const {
  const auto &steps = stream.shelf.steps();
  const auto next = steps.find(stream.account->complete());
  return next != steps.end() && stream.account->are_left_alone(next->second.ended);
}

/// What is small, and here, goes along.
void Server::add_small_blocks(const Stream &stream, NextResult &result) {
  std::uint64_t room = MOST_INLINE;
  for (auto &variable : result.variables) {
    const bool is_here =
        std::ranges::all_of(variable.shares, [&](const auto &s) { return s.server == options_.index; });
    const auto *kept = is_here ? stream.shelf.find(variable.put_in, variable.variable.name) : nullptr;
    if (kept == nullptr) continue;
    const auto bytes = static_cast<std::uint64_t>(kept->elements) * size_of(variable.variable.type);
    const auto &blocks = kept->blocks.all();
    if (bytes > room || blocks.size() > 16) continue;
    if (!std::ranges::all_of(blocks, [](const Block &block) { return block.chunk->is_in_memory(); })) continue;
    room -= bytes;
    variable.is_inline = true;
    for (const auto &block : blocks) {
      const auto held = store_->bytes_of(*block.chunk, block.offset, bytes_of(kept->variable, block.box));
      auto &sent = variable.blocks.emplace_back();
      sent.box = block.box;
      sent.data.assign(held->bytes.begin(), held->bytes.end());
    }
  }
}

nssi::Outcome<void> Server::close_reader(Request &, const CloseArgs &args) {
  const auto stream = find(args.stream);
  if (!stream || !stream->account) return unknown_reader();
  if (const auto *group = stream->account->find_group(args.member); group != nullptr && args.unsubscribes) {
    (void)note_readers(*stream, *group, true);
    stream->noted_readers.erase(group->subscription);
  }
  stream->account->close_reader(args.member, args.steps, args.unsubscribes);
  settle(*stream);
  forget_replaced();
  stream->changed.notify_all();
  files_changed_.notify_all();
  // What it has ended outlives a server that is killed, as it may not be there to say it once more.
  if (journal_ && stream->account->lasting() == Lasting::kInLog) return journal_->sync(journal_->log().end());
  return Status();
}

nssi::Outcome<void> Server::alive(Request &, const Key &key, const Key &reader) {
  const auto stream = find(key);
  auto *group = stream && stream->account ? stream->account->find_group(reader) : nullptr;
  if (group == nullptr) return unknown_reader();
  group->heard = nessie::Clock::now();
  if (!group->lost.empty()) return Error{Code::kNotFound, group->lost};
  return Status();
}

// --- those that are gone ----------------------------------------------------------------------------------------------

void Server::peer_lost(nnti::PeerId peer) {
  lose_server(peer);
  if (!is_first()) return;
  // Within a node the kernel says that a process is gone; over a network it may only be out of reach.
  const auto now = nessie::Clock::now();
  const auto gone_at = local_.erase(peer.value) > 0 ? now : now + options_.reader_timeout;
  gone_[peer.value] = gone_at;
  if (gone_.size() == 1) runtime_.spawn([this] { take_leave(); });
}

/// If it was one.
void Server::lose_server(nnti::PeerId peer) {
  std::erase_if(holders_, [&](const auto &each) {
    const bool is_lost = each.second.peer == peer;
    if (is_lost) lose_holder(each.first);
    return is_lost;
  });
  std::vector<std::uint32_t> lost;
  for (const auto &[index, at] : servers_)
    if (at == peer) lost.push_back(index);
  for (const auto index : lost) {
    servers_.erase(index);
    if (is_ending_) continue;
    runtime_.spawn([this, index] { index == 0 ? join_first() : tell_all_to(index); });
  }
}

/// A fiber: of all who were lost since the one before, as programs of many ranks end at once.
void Server::take_leave() {
  const auto gone = std::exchange(gone_, {});
  const auto now = nessie::Clock::now();
  for (const auto &stream : std::vector(in_order_)) {
    stream->account->lose_writers(gone);
    stream->account->give_up_writers(now);
    stream->account->lose_readers(gone);
    settle(*stream);
    stream->changed.notify_all();
  }
  forget_replaced();
  files_changed_.notify_all();
  store_->notify();
  begin_looking_after();
}

void Server::note_place(nnti::PeerId peer) {
  if (runtime_.can_give_descriptors(peer)) local_.insert(peer.value);
}

void Server::begin_looking_after() {
  if (!std::exchange(is_looking_after_, true)) runtime_.spawn([this] { look_after(); });
}

/// A fiber, while there is anybody who could be silent.
void Server::look_after() {
  const auto period = std::clamp<std::chrono::milliseconds>(options_.reader_timeout / 8, std::chrono::milliseconds(20),
                                                            std::chrono::milliseconds(1000));
  while (!is_ending_) {
    runtime_.sleep_until(Deadline::in(period));
    const auto now = nessie::Clock::now();
    bool is_needed = false;
    for (const auto &stream : std::vector(in_order_)) {
      auto &account = *stream->account;
      account.give_up_writers(now);
      account.let_go_of_silent(now - options_.reader_timeout);
      settle(*stream);
      stream->changed.notify_all();
      is_needed = is_needed || account.has_groups() || account.is_open() || account.expects_readers(now);
    }
    forget_replaced();
    files_changed_.notify_all();
    store_->notify();
    if (!is_needed) break;
  }
  is_looking_after_ = false;
}

}  // namespace streams
