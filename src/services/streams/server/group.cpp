// SPDX-License-Identifier: BSD-3-Clause
// Servers among themselves.
#include <services/streams/server/server.hpp>

#include <base/log.hpp>
#include <nssi/discovery.hpp>
#include <service/connection.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace streams {

namespace {

constexpr std::chrono::seconds kPatience{30};

using Client = STREAMS::CURRENT::Client;

Client client_of(nssi::Runtime &runtime, nnti::PeerId peer) { return Client(runtime, peer); }

Error not_ready() {
  return {Code::kUnavailable, "the server reads its log, and will be there soon", nessie::Scope::kService};
}

}  // namespace

HelloResult Server::myself() const {
  HelloResult result{PROTOCOL, incarnation_, options_.index, {}, {}};
  for (const auto &each : joined_) result.servers.push_back(each.url);
  return result;
}

nssi::Outcome<HelloResult> Server::hello(Request &, const HelloArgs &args) {
  if (!is_ready_) return not_ready();
  if (args.protocol == PROTOCOL) return myself();
  return Error{Code::kUnsupported,
               fmt::format("this server of streams speaks version {} of its protocol, and not {}: use "
                           "one version of Nessie",
                           PROTOCOL, args.protocol)};
}

/// A server that was started anew comes once more, with another incarnation.
nssi::Outcome<HelloResult> Server::join(Request &request, const JoinArgs &args) {
  if (!is_first()) return Error{Code::kInvalidArgument, "only the first server is joined"};
  if (!is_ready_) return not_ready();
  if (args.protocol != PROTOCOL) return Error{Code::kUnsupported, "servers of one group are of one version"};
  if (args.servers != options_.servers || args.index == 0 || args.index >= options_.servers)
    return Error{Code::kInvalidArgument,
                 fmt::format("server {} of {} cannot join {} servers: start all with the same number", args.index,
                             args.servers, options_.servers)};
  const auto before = std::exchange(joined_[args.index], args).incarnation;
  servers_[args.index] = request.caller();
  auto result = myself();
  for (const auto &stream : std::vector(in_order_)) {
    if (before != 0 && before != args.incarnation) stream->account->lose_server(args.index, args.incarnation);
    result.streams.push_back(stream->shelf.stream());
    stream->noted = stream->told = {};  // with the constants that this server has
    tell(request.caller(), kept_of(*stream));
    stream->changed.notify_all();
    settle(*stream);
  }
  made_.notify_all();
  return result;
}

/// A fiber, until the first server has taken this one in; and again when it was lost.
void Server::join_first() {
  if (std::exchange(is_joining_, true)) return;
  for (auto wait = std::chrono::milliseconds(20); !is_ending_;
       wait = std::min(2 * wait, std::chrono::milliseconds(1000))) {
    auto peer = nssi::connect_to(runtime_, options_.first, Deadline::in(kPatience));
    const auto joined = peer.ok() ? join(*peer) : Status(peer.error());
    if (joined.ok()) {
      is_joining_ = false;
      return tell_all_to(0);
    }
    if (joined.code() == Code::kInvalidArgument || joined.code() == Code::kCancelled) break;
    if (!nessie::service::pause(runtime_, Deadline::in(wait)).ok()) return;
  }
  is_joining_ = false;
}

/// The first server knows what is here before it knows this server: it says by then what need not stay.
Status Server::join(nnti::PeerId first) {
  std::vector<Key> mine;
  for (const auto &[key, stream] : streams_) mine.push_back(key);
  if (auto status = report_all(first); !status.ok()) return status;
  const JoinArgs args{PROTOCOL, options_.index, options_.servers, runtime_.url(), incarnation_};
  auto joined = client_of(runtime_, first).join(args, {.deadline = Deadline::in(kPatience), .idempotent = true});
  if (!joined.ok()) {
    if (joined.code() != Code::kUnavailable)
      nessie::log::warning("cannot join the first server of streams: {}", joined.error().message);
    return joined.error();
  }
  for (const auto key : mine)
    if (std::ranges::find(joined->streams, key) == joined->streams.end()) streams_.erase(key);
  servers_[0] = first;
  joined_[0].url = joined->servers.front();
  is_ready_ = true;
  store_->notify();
  return {};
}

/// The first server was started anew, or this one was: what is here of all steps.
Status Server::report_all(nnti::PeerId first) {
  for (const auto &[key, stream] : std::map(streams_)) {
    std::vector<std::uint64_t> numbers;
    for (const auto &[number, step] : stream->shelf.steps()) numbers.push_back(number);
    for (const auto number : numbers)
      if (auto status = report_to(first, stream, number); !status.ok()) return status;
  }
  return {};
}

// --- steps ------------------------------------------------------------------------------------------------------------

/// Whether the account is to hear of the step. It needs nothing before all have ended it who put their data here; of
/// the only server these are all.
bool Server::is_due(const Stream &stream, std::uint64_t number) const {
  const auto &step = stream.shelf.steps().at(number);
  return stream.shelf.is_due(number) && (options_.servers > 1 || step.ended.size() >= step.writers);
}

StepReport Server::report_of(Stream &stream, std::uint64_t step) const {
  auto report = stream.shelf.report(step, options_.index);
  report.incarnation = incarnation_;
  return report;
}

/// To the account, wherever it is. What is wrong with it is told to writers at their next call.
void Server::report(const StreamPtr &stream, std::uint64_t step) {
  if (stream->account) {
    if (auto status = stream->account->take(report_of(*stream, step)); !status.ok())
      stream->fault = status.error().message;
    stream->changed.notify_all();
    return settle(*stream);
  }
  if (stream->reporting.insert(step).second)
    runtime_.spawn([this, stream, step] {
      report_to_first(stream, step);
      stream->reporting.erase(step);
    });
}

/// Until it has heard of all that is here of the step: what comes meanwhile is told with the next report.
void Server::report_to_first(const StreamPtr &stream, std::uint64_t step) {
  while (!is_ending_) {
    if (const auto first = servers_.find(0); first != servers_.end()) {
      const auto status = report_to(first->second, stream, step);
      if (status.code() == Code::kCancelled || (status.ok() && !stream->shelf.is_due(step))) return;
      if (status.ok()) continue;
    }
    if (!nessie::service::pause(runtime_, Deadline::in(std::chrono::milliseconds(100))).ok()) return;
  }
}

/// As it is now. Ok, too, if it is gone here, or the stream is there.
Status Server::report_to(nnti::PeerId first, const StreamPtr &stream, std::uint64_t step) {
  if (stream->shelf.find(step) == nullptr) return {};
  auto status = client_of(runtime_, first)
                    .report_step(report_of(*stream, step), {.deadline = Deadline::in(kPatience), .idempotent = true});
  if (status.code() == Code::kInvalidArgument) {
    stream->fault = status.error().message;
    store_->notify();
    return {};
  }
  if (status.code() != Code::kNotFound) return status;
  streams_.erase(stream->shelf.stream());
  stream->shelf.drop_before(~std::uint64_t{0}, {});
  return {};
}

nssi::Outcome<void> Server::report_step(Request &, const StepReport &args) {
  if (!is_ready_) return not_ready();
  const auto stream = find(args.stream);
  if (!stream || !stream->account) return Error{Code::kNotFound, "there is no such stream any more"};
  std::set<std::string> names;
  for (const auto &told : args.variables) {
    if (auto status = check(told.variable); !status.ok()) return status.error();
    if (!names.insert(told.variable.name).second)
      return Error{Code::kInvalidArgument, fmt::format("variable '{}' is reported twice", told.variable.name)};
    for (const auto &box : told.boxes)
      if (auto status = check_inside(told.variable, box); !status.ok()) return status.error();
  }
  for (const auto &attribute : args.attributes)
    if (auto status = check(attribute); !status.ok()) return status.error();
  if (args.server >= options_.servers) return Error{Code::kInvalidArgument, "there is no such server"};
  auto status = stream->account->take(args);
  if (!status.ok()) stream->fault = status.error().message;
  stream->changed.notify_all();
  settle(*stream);
  return status;
}

/// What has to stay, if that has changed. In a fiber.
void Server::settle(Stream &stream, bool is_short) {
  if (!stream.account) return;
  for (const auto *group : stream.account->take_moved()) {
    stream.noted_readers.insert(group->subscription);
    (void)note_readers(stream, *group);
  }
  const auto &settled = stream.account->settle(is_short ? 0 : options_.keep_bytes, nessie::Clock::now());
  const auto &why = stream.account->why_interrupted();
  if (settled == stream.noted && why == stream.noted_why) return;
  const auto needed = settled;
  const auto noted = note(stream);
  if (!noted.ok()) return;  // asked for again
  stream.noted = needed;
  stream.noted_why = why;
  if (*noted == 0) return drop_unneeded(stream, needed);
  // A server that comes after this one has to know which steps there were before any of them is released; but if the
  // disk is full there may be room again only then.
  runtime_.spawn([this, stream = find(stream.shelf.stream()), needed, until = *noted] {
    if (!stream || !journal_) return;
    const auto written = journal_->await_written(until);
    if (written.ok() || is_full(written)) drop_unneeded(*stream, needed);
  });
}

void Server::drop_unneeded(Stream &stream, const Needed &needed) {
  if (needed.from < stream.told.from) return;
  stream.told = needed;
  stream.shelf.drop_before(needed.from, needed.kept);
  tell_others(stream);
}

/// Of streams whose names others have: when their readers have gone.
void Server::forget_replaced() {
  for (const auto &stream : std::vector(in_order_))
    if (by_name_[stream->account->name()] != stream && !stream->account->has_groups()) forget(stream);
}

void Server::forget(const StreamPtr &stream) {
  tell_others(*stream, true);
  if (journal_) journal_->forget(stream->shelf.stream());
  stream->shelf.drop_before(~std::uint64_t{0}, {});
  std::erase(in_order_, stream);
  streams_.erase(stream->shelf.stream());
}

// --- what nobody needs ------------------------------------------------------------------------------------------------

/// Here, or at the first server, who has steps that late readers might want. Does not wait.
void Server::ask_for_room() {
  const bool has_none = !store_->can_spill();
  if (is_first()) return drop_unread(has_none);
  nssi::CallOptions options;
  options.idempotent = options.one_way = true;
  if (const auto first = servers_.find(0); first != servers_.end())
    (void)client_of(runtime_, first->second).make_room_async(has_none, options);
}

nssi::Outcome<void> Server::make_room(Request &, bool has_none) {
  if (is_first() && is_ready_) drop_unread(has_none);
  return Status();
}

/// Of streams that nobody writes or reads not even the newest step stays, when the log has no room either.
void Server::drop_unread(bool has_none) {
  const auto now = nessie::Clock::now();
  for (const auto &stream : std::vector(in_order_)) {
    settle(*stream, true);
    const auto &account = *stream->account;
    if (!has_none || stream->is_file || account.is_open() || account.has_groups() || account.expects_readers(now))
      continue;
    if (by_name_[account.name()] == stream) by_name_.erase(account.name());
    forget(stream);
  }
}

KeptArgs Server::kept_of(const Stream &stream) const {
  KeptArgs args;
  args.stream = stream.shelf.stream();
  args.needed = stream.told.from;
  args.kept = stream.told.kept;
  args.complete = stream.account->complete();
  args.holder = stream.account->holder();
  args.group = stream.shelf.group();
  return args;
}

void Server::tell(nnti::PeerId peer, const KeptArgs &args) {
  nssi::CallOptions options;
  options.idempotent = options.one_way = true;
  (void)client_of(runtime_, peer).keep_async(args, options);
}

void Server::tell_others(const Stream &stream, bool is_gone) {
  if (options_.servers == 1) return;
  auto args = kept_of(stream);
  args.is_gone = is_gone;
  for (const auto &[index, peer] : servers_) tell(peer, args);
}

nssi::Outcome<void> Server::keep(Request &, const KeptArgs &args) {
  const auto stream = find(args.stream);
  if (!stream || stream->account) return Status();
  stream->holder = args.holder;
  stream->shelf.drop_before(args.needed, args.kept);
  if (args.group > stream->shelf.group()) stream->fault.clear();
  stream->shelf.begin_group(args.group, args.complete);
  if (args.is_gone) streams_.erase(args.stream);
  store_->notify();
  return Status();
}

}  // namespace streams
