// SPDX-License-Identifier: BSD-3-Clause
// Servers among themselves.
#include <services/streams/server/server.hpp>

#include <base/log.hpp>
#include <nssi/discovery.hpp>
#include <service/connection.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace streams {

namespace {

constexpr std::chrono::seconds kPatience{30};

using Client = STREAMS::CURRENT::Client;

Client client_of(nssi::Runtime &runtime, nnti::PeerId peer) { return Client(runtime, peer); }

}  // namespace

HelloResult Server::myself() const {
  HelloResult result{PROTOCOL, incarnation_, options_.index, {}};
  for (const auto &each : joined_) result.servers.push_back(each.url);
  return result;
}

nssi::Outcome<HelloResult> Server::hello(Request &, const HelloArgs &args) {
  if (!is_ready_)
    return Error{Code::kUnavailable, "the server reads its log, and will be there soon", nessie::Scope::kService};
  if (args.protocol == PROTOCOL) return myself();
  return Error{Code::kUnsupported,
               fmt::format("this server of streams speaks version {} of its protocol, and not {}: use "
                           "one version of Nessie",
                           PROTOCOL, args.protocol)};
}

/// A server that was started anew comes once more, with another incarnation.
nssi::Outcome<HelloResult> Server::join(Request &request, const JoinArgs &args) {
  if (!is_first()) return Error{Code::kInvalidArgument, "only the first server is joined"};
  if (args.protocol != PROTOCOL) return Error{Code::kUnsupported, "servers of one group are of one version"};
  if (args.servers != options_.servers || args.index == 0 || args.index >= options_.servers)
    return Error{Code::kInvalidArgument,
                 fmt::format("server {} of {} cannot join {} servers: start all with the same number", args.index,
                             args.servers, options_.servers)};
  auto &known = joined_[args.index];
  if (!known.url.empty() && known.incarnation != args.incarnation) {
    for (const auto &stream : in_order_) {
      stream->account->lose_server(args.index);
      stream->changed.notify_all();
    }
  }
  known = args;
  servers_[args.index] = request.caller();
  made_.notify_all();
  return myself();
}

/// A fiber, until the first server has taken this one in; and again when it was lost.
void Server::join_first() {
  JoinArgs args{PROTOCOL, options_.index, options_.servers, runtime_.url(), incarnation_};
  for (auto wait = std::chrono::milliseconds(20); !is_ending_;
       wait = std::min(2 * wait, std::chrono::milliseconds(1000))) {
    auto peer = nssi::connect_to(runtime_, options_.first, Deadline::in(kPatience));
    if (peer.ok()) {
      auto joined = client_of(runtime_, *peer).join(args, {.deadline = Deadline::in(kPatience), .idempotent = true});
      if (joined.ok()) {
        servers_[0] = *peer;
        joined_[0].url = joined->servers.front();
        report_all();
        return tell_all_to(0);
      }
      nessie::log::warning("cannot join the first server of streams: {}", joined.error().message);
      if (joined.code() == Code::kInvalidArgument) return;
    } else if (peer.code() == Code::kCancelled) {
      return;
    }
    if (!nessie::service::pause(runtime_, Deadline::in(wait)).ok()) return;
  }
}

/// The first server was started anew, or this one was: what is here of all steps.
void Server::report_all() {
  for (const auto &[key, stream] : std::map(streams_)) {
    std::vector<std::uint64_t> numbers;
    for (const auto &[number, step] : stream->shelf.steps())
      if (step.reported > 0 || stream->shelf.is_due(number)) numbers.push_back(number);
    for (const auto number : numbers) report(stream, number);
  }
}

// --- steps ------------------------------------------------------------------------------------------------------------

/// Whether the account is to hear of the step. It needs nothing before all have ended it who put their data here; of
/// the only server these are all.
bool Server::is_due(const Stream &stream, std::uint64_t number) const {
  const auto &step = stream.shelf.steps().at(number);
  return stream.shelf.is_due(number) && (options_.servers > 1 || step.ended.size() >= step.writers);
}

/// To the account, wherever it is. What is wrong with it is told to writers at their next call.
void Server::report(const StreamPtr &stream, std::uint64_t step) {
  if (stream->account) {
    const auto taken = stream->account->take(stream->shelf.report(step, options_.index));
    if (!taken.ok()) stream->fault = taken.error().message;
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
  for (std::optional<StepReport> report; !is_ending_;) {
    if (!report && stream->shelf.find(step) != nullptr) report = stream->shelf.report(step, options_.index);
    if (!report) return;
    if (const auto first = servers_.find(0); first != servers_.end()) {
      auto status = client_of(runtime_, first->second)
                        .report_step(*report, {.deadline = Deadline::in(kPatience), .idempotent = true});
      if (status.code() == Code::kInvalidArgument) {
        stream->fault = status.error().message;
        return store_->notify();
      }
      if (status.code() == Code::kCancelled) return;
      if (status.ok()) {
        report.reset();
        if (!stream->shelf.is_due(step)) return;
        continue;
      }
    }
    if (!nessie::service::pause(runtime_, Deadline::in(std::chrono::milliseconds(100))).ok()) return;
  }
}

nssi::Outcome<void> Server::report_step(Request &, const StepReport &args) {
  const auto stream = find(args.stream);
  if (!stream || !stream->account) return Error{Code::kNotFound, "there is no such stream any more"};
  for (const auto &told : args.variables) {
    if (auto status = check(told.variable); !status.ok()) return status.error();
    for (const auto &box : told.boxes)
      if (auto status = check_inside(told.variable, box); !status.ok()) return status.error();
  }
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
  const auto &needed = stream.account->settle(is_short ? 0 : options_.keep_bytes, nessie::Clock::now());
  if (needed == stream.told) return;
  stream.told = needed;
  (void)note(stream);  // before anything is released that tells how many steps there were
  stream.shelf.drop_before(needed.from, needed.kept);
  tell_others(stream, false, false);
}

/// Of streams whose names others have: when their readers have gone.
void Server::forget_replaced() {
  for (const auto &stream : std::vector(in_order_))
    if (by_name_[stream->account->name()] != stream && !stream->account->has_groups()) forget(stream);
}

void Server::forget(const StreamPtr &stream) {
  tell_others(*stream, false, true);
  if (journal_) journal_->forget(stream->shelf.stream());
  stream->shelf.drop_before(~std::uint64_t{0}, {});
  std::erase(in_order_, stream);
  streams_.erase(stream->shelf.stream());
}

void Server::settle_all() {
  for (const auto &stream : std::vector(in_order_)) settle(*stream, true);
}

void Server::tell_others(const Stream &stream, bool drops_incomplete, bool is_gone) {
  if (options_.servers == 1) return;
  KeptArgs args;
  args.stream = stream.shelf.stream();
  args.needed = stream.told.from;
  args.kept = stream.told.kept;
  args.complete = stream.account->complete();
  args.holder = stream.account->holder();
  args.drops_incomplete = drops_incomplete;
  args.is_gone = is_gone;
  nssi::CallOptions options;
  options.idempotent = options.one_way = true;
  for (const auto &[index, peer] : servers_) (void)client_of(runtime_, peer).keep_async(args, options);
}

nssi::Outcome<void> Server::keep(Request &, const KeptArgs &args) {
  const auto stream = find(args.stream);
  if (!stream || stream->account) return Status();
  stream->holder = args.holder;
  stream->shelf.drop_before(args.needed, args.kept);
  if (args.drops_incomplete) {
    stream->shelf.drop_writers(args.complete);
    stream->fault.clear();
  }
  if (args.is_gone) streams_.erase(args.stream);
  store_->notify();
  return Status();
}

}  // namespace streams
