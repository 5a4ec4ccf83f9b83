// SPDX-License-Identifier: BSD-3-Clause
// Who writes which stream, and whether there is room for a step.
#include <services/streams/server/server.hpp>

#include <base/random.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace streams {

namespace {

Error unknown_stream() {
  return {Code::kNotFound, "the server does not know this stream, or this writer of it: it was started anew"};
}

constexpr std::uint64_t kMostAhead = 65536;  ///< steps that a writer has ended, and others have not

Error without_log() {
  return {Code::kUnsupported, "the servers have no log, which a stream that is logged needs: set streams.log"};
}

Status check_ended(const Account &account, std::uint64_t steps) {
  if (steps <= account.complete() + kMostAhead) return {};
  return Error{Code::kInvalidArgument, "a writer has not ended so many steps that are not complete"};
}

Status check_writer(const WriterArgs &args) {
  if (auto status = check_name("stream", args.stream); !status.ok()) return status;
  if (args.size == 0 || args.size > kMostRanks || args.rank >= args.size || args.writer == 0)
    return Error{Code::kInvalidArgument, fmt::format("rank {} is not among {} writers", args.rank, args.size)};
  return {};
}

}  // namespace

// --- streams ----------------------------------------------------------------------------------------------------------

Server::StreamPtr Server::find(Key stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second;
}

Server::StreamPtr Server::make_stream(const std::string &name, Lasting lasting) {
  auto stream = std::make_shared<Stream>(runtime_, nessie::random_u64() | 1);
  stream->made = streams_made_++;
  stream->account = std::make_unique<Account>(stream->shelf.stream(), name, lasting, options_.servers);
  streams_.emplace(stream->shelf.stream(), stream);
  in_order_.push_back(stream);
  by_name_[name] = stream;
  made_.notify_all();
  return stream;
}

/// Readers of the former one go on with it; it goes when they have.
void Server::replace(const StreamPtr &former, const StreamPtr &with) {
  with->account->inherit(*former->account);
  settle(*former);
  forget_replaced();
}

/// They come when they have seen that there is a stream.
void Server::subscribe_sinks(const Stream &stream) {
  for (const auto &sink : options_.sinks)
    if (sink.matches(stream.account->name())) stream.account->subscribe(sink.subscription(), nessie::Clock::now());
}

Result<Server::StreamPtr> Server::stream_to_write(const WriterArgs &args) {
  const auto found = by_name_.find(args.stream);
  const auto former = found == by_name_.end() ? nullptr : found->second;
  if (args.resumes) {
    if (former && former->account->knows_writer(args.writer)) return former;
    return Error{Code::kNotFound, fmt::format("the servers of stream '{}' were started anew, and do not know it: what "
                                              "they had in memory is lost",
                                              args.stream)};
  }
  if (former) {
    auto &account = *former->account;
    if (account.is_open() && account.is_forming()) return former;
    if (account.is_open())
      return Error{Code::kExists,
                   fmt::format("others write stream '{}': wait until they have closed it, or choose another "
                               "name",
                               args.stream)};
    if (args.append) {
      account.begin_group(args.size, args.await_readers);
      former->shelf.begin_group(account.group(), account.begin());
      former->fault.clear();
      tell_others(*former);
      return former;
    }
  }
  auto made = make_stream(args.stream, args.lasting);
  made->account->begin_group(args.size, args.await_readers);
  made->shelf.begin_group(made->account->group(), 0);
  if (former) replace(former, made);
  subscribe_sinks(*made);
  settle(*made);
  return made;
}

/// Of which the first server has told the writer.
Result<Server::StreamPtr> Server::known_stream(const WriterArgs &args) {
  if (is_first()) return Error{Code::kInvalidArgument, "the first server makes streams, and is not told of them"};
  auto stream = find(args.known);
  const bool has_seat = stream && stream->shelf.find_seat(args.writer) != nullptr;
  if (args.resumes && !has_seat && (args.lasting == Lasting::kInMemory || !journal_))
    return Error{Code::kNotFound, "the server was started anew, and what it had in memory is lost"};
  if (!stream) stream = streams_.emplace(args.known, std::make_shared<Stream>(runtime_, args.known)).first->second;
  if (args.group > stream->shelf.group()) stream->fault.clear();
  if (stream->shelf.begin_group(args.group, args.begin)) return stream;
  return Error{Code::kNotFound, fmt::format("others write stream '{}' now", args.stream)};
}

/// Of a writer whose server was started anew. The first step of which some is gone.
std::uint64_t Server::lose_steps(Stream &stream, const WriterArgs &args) {
  const auto first = stream.account->first_lost(args.server);
  stream.account->lose_steps(args.writer, args.ended);
  stream.changed.notify_all();
  settle(stream);
  return first;
}

nssi::Outcome<WriterResult> Server::open_writer(Request &request, const WriterArgs &args) {
  if (auto status = check_writer(args); !status.ok()) return status.error();
  StreamPtr stream;
  if (args.known != 0) {
    auto known = known_stream(args);
    if (!known.ok()) return known.error();
    stream = *known;
  } else {
    if (!is_first()) return Error{Code::kInvalidArgument, "only the first server makes streams"};
    if (args.lasting == Lasting::kInLog && !journal_) return without_log();
    auto made = stream_to_write(args);
    if (!made.ok()) return made.error();
    stream = *made;
    auto &account = *stream->account;
    const auto seated =
        args.resumes ? account.reseat_writer(args, request.caller()) : account.seat_writer(args, request.caller());
    if (!seated.ok()) return seated.error();
    note_place(request.caller());
    const auto note_it = [&]() -> Result<Lsn> { return args.resumes ? Lsn{0} : note_writer(*stream, args.writer); };
    if (auto status = note_synced(request, note_it); !status.ok()) return status.error();
  }
  WriterResult result;
  if (args.has_lost && stream->account) {
    if (auto status = check_ended(*stream->account, args.ended); !status.ok()) return status.error();
    result.lost = lose_steps(*stream, args);
  }
  result.stream = stream->shelf.stream();
  result.group = stream->shelf.group();
  result.next = args.known != 0 || args.resumes ? args.ended : stream->account->complete();
  if (args.append && stream->account) {
    const auto report = stream->account->report();
    result.variables = report.variables;
  }
  if (args.server == options_.index && stream->shelf.find_seat(args.writer) == nullptr) {
    const auto ended = std::max(result.next, stream->account ? stream->account->complete() : 0);
    stream->shelf.set_ended(stream->shelf.make_seat(args.writer, args.rank, args.size, args.lasting), ended);
  }
  if (const auto *seat = stream->shelf.find_seat(args.writer))
    result.kept.assign(seat->buffers->kept.begin(), seat->buffers->kept.end());
  return result;
}

nssi::Outcome<void> Server::close_writer(Request &request, const CloseArgs &args) {
  const auto stream = find(args.stream);
  if (!stream) return unknown_stream();
  if (stream->account)
    if (auto status = check_ended(*stream->account, args.steps); !status.ok()) return status;
  stream->shelf.remove_seat(args.member);
  if (stream->account) {
    if (args.is_abandoned)
      stream->account->abandon_writer(args.member);
    else
      stream->account->close_writer(args.member, args.steps);
    const auto note_it = [&] { return note_writer(*stream, args.member); };
    if (auto status = note_synced(request, note_it); !status.ok()) return status;
    if (stream->account->is_over() || args.is_abandoned) stream->changed.notify_all();
    settle(*stream);
  }
  store_->notify();
  return Status();
}

// --- room -------------------------------------------------------------------------------------------------------------

/// Nobody holds up a step that others have begun: it could never be complete, and nothing before it go.
bool Server::may_begin(const Stream &stream, const Seat &seat, std::uint64_t bytes) const {
  return store_->has_spare_room(bytes) || stream.shelf.is_awaited(seat);
}

/// The room is kept until the step is ended.
bool Server::reserve(Stream &stream, Seat &seat, std::uint64_t bytes) {
  if (seat.room) return true;
  if (!may_begin(stream, seat, bytes)) return false;
  stream.shelf.give_room(seat, {*store_, std::max<std::uint64_t>(bytes, 1)});
  return true;
}

std::vector<std::uint64_t> Server::take_released(Seat &seat) { return std::exchange(seat.buffers->released, {}); }

Error Server::no_room(const Stream &stream) const {
  const auto holder = stream.account ? stream.account->holder() : stream.holder;
  const auto trouble = store_->log_trouble();
  const auto log = !trouble.empty() ? fmt::format(", and can put no more into its log ({})", trouble)
                                    : std::string(options_.log_path.empty() ? "" : ", and its log is full");
  return {Code::kBusy, fmt::format("the server holds {} MiB of {} MiB of steps{}, and has no room for another one: {}",
                                   store_->used_bytes() >> 20, store_->limit_bytes() >> 20, log,
                                   holder.empty() ? "raise streams.memory, or write smaller steps" : holder)};
}

nssi::Outcome<RoomResult> Server::await_room(Request &request, const RoomArgs &args) {
  const auto stream = find(args.stream);
  const auto deadline = request.deadline().earlier(Deadline::in(std::chrono::milliseconds(args.patience_ms)));
  if (!stream) return unknown_stream();
  RoomResult result;
  if (stream->account)
    while (!stream->account->has_readers_awaited()) {
      if (auto status = request.check(); !status.ok()) return status.error();
      if (deadline.passed()) {
        result.state = RoomState::kNoReaders;
        return result;
      }
      (void)stream->readers_came.wait(deadline);
    }
  auto *seat = stream->shelf.find_seat(args.writer);
  if (seat == nullptr) return stream->account ? nssi::Outcome<RoomResult>(result) : unknown_stream();
  const auto bytes = std::min(args.bytes, store_->limit_bytes());
  const auto may_go_on = [&] {
    if (!stream->fault.empty()) return true;
    seat = stream->shelf.find_seat(args.writer);
    return seat == nullptr || reserve(*stream, *seat, bytes);
  };
  if (!may_go_on()) ask_for_room();
  const auto waited = store_->await_room(request, std::max<std::uint64_t>(bytes, 1), deadline, may_go_on);
  if (waited.code() == Code::kTimedOut) return no_room(*stream);
  if (!waited.ok()) return waited.error();
  if (!stream->fault.empty()) return Error{Code::kInvalidArgument, stream->fault};
  if (seat == nullptr) return unknown_stream();
  result.released = take_released(*seat);
  return result;
}

}  // namespace streams
