// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/account.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace streams {

namespace {

constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

Error bad(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

}  // namespace

// --- groups of readers ------------------------------------------------------------------------------------------------

std::uint64_t Account::Group::ended() const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const auto &rank : ranks) least = std::min(least, rank.ended);
  return least;
}

std::uint32_t Account::Group::connected() const {
  return static_cast<std::uint32_t>(std::ranges::count(ranks, true, &Rank::is_connected));
}

std::string Account::Group::name() const {
  return subscription.empty() ? fmt::format("readers without a name ({} of {})", connected(), ranks.size())
                              : fmt::format("the readers '{}' ({} of {})", subscription, connected(), ranks.size());
}

// --- writers ----------------------------------------------------------------------------------------------------------

bool Account::is_forming() const { return std::ranges::find(writers_, Key{0}, &Writer::key) != writers_.end(); }

std::uint64_t Account::closed_steps() const {
  const auto least = std::ranges::min_element(writers_, {}, &Writer::steps);
  return least == writers_.end() ? 0 : least->steps;
}

bool Account::is_over() const {
  return !writers_.empty() && std::ranges::all_of(writers_, [](const Writer &w) { return w.is_closed; });
}

bool Account::knows_writer(Key writer) const {
  return std::ranges::find(writers_, writer, &Writer::key) != writers_.end();
}

void Account::begin_group(std::uint32_t size, std::uint32_t await_readers) {
  writers_.assign(size, {});
  await_readers_ = await_readers;
  why_interrupted_.clear();
  steps_.erase(steps_.lower_bound(complete_), steps_.end());
}

Status Account::seat_writer(const WriterArgs &args, PeerId peer) {
  if (args.size != size())
    return bad(fmt::format("stream '{}' is written by {} ranks, and not by {}: all ranks have to say the same size",
                           name_, size(), args.size));
  if (args.lasting != lasting_)
    return bad(fmt::format("the ranks that write stream '{}' differ in its durability", name_));
  auto &writer = writers_[args.rank];
  if (writer.key != 0 && writer.key != args.writer)
    return Error{Code::kExists,
                 fmt::format("rank {} of those who write stream '{}' is there already", args.rank, name_)};
  if (await_readers_ != args.await_readers)
    return bad(fmt::format("the ranks that write stream '{}' wait for different numbers of readers", name_));
  writer.key = args.writer;
  writer.peer = peer;
  writer.is_connected = true;
  return {};
}

Status Account::reseat_writer(const WriterArgs &args, PeerId peer) {
  if (args.rank >= size() || writers_[args.rank].key != args.writer)
    return Error{Code::kPeerLost,
                 fmt::format("rank {} of those who write stream '{}' was away for too long, or others write it now",
                             args.rank, name_)};
  if (!why_interrupted_.empty()) return Error{Code::kPeerLost, why_interrupted_};
  writers_[args.rank].peer = peer;
  writers_[args.rank].is_connected = true;
  return {};
}

void Account::close_writer(Key key, std::uint64_t steps) {
  const auto writer = std::ranges::find(writers_, key, &Writer::key);
  if (writer == writers_.end()) return;
  writer->is_closed = true;
  writer->steps = steps;
}

void Account::abandon_writer(Key key) {
  const auto writer = std::ranges::find(writers_, key, &Writer::key);
  if (writer != writers_.end() && !writer->is_closed)
    interrupt(fmt::format("rank {} of the {} that write stream '{}' has left without closing it",
                          writer - writers_.begin(), writers_.size(), name_));
}

void Account::lose_writers(PeerId peer, Clock::time_point gone_at) {
  for (auto &writer : writers_)
    if (writer.is_connected && writer.peer == peer) {
      writer.is_connected = false;
      writer.gone_at = gone_at;
    }
}

void Account::give_up_writers(Clock::time_point now) {
  if (!why_interrupted_.empty()) return;
  for (std::size_t rank = 0; rank < writers_.size(); ++rank) {
    const auto &writer = writers_[rank];
    if (writer.key != 0 && !writer.is_connected && !writer.is_closed && writer.gone_at <= now)
      return interrupt(fmt::format("rank {} of the {} that write stream '{}' has died", rank, writers_.size(), name_));
  }
}

void Account::interrupt(std::string why) {
  if (why_interrupted_.empty()) why_interrupted_ = std::move(why);
}

bool Account::has_readers_awaited() const {
  const auto there =
      std::ranges::count_if(groups_, [](const Group &g) { return g.holds() && g.connected() == g.ranks.size(); });
  return there >= static_cast<std::ptrdiff_t>(await_readers_);
}

// --- steps ------------------------------------------------------------------------------------------------------------

/// Each server sees to its own.
Status Account::check_against(const StepState &state, const StepReport &report) const {
  for (const auto &[server, other] : state.reports) {
    if (server == report.server) continue;
    for (const auto &ours : report.variables)
      for (const auto &theirs : other.variables) {
        if (ours.variable.name != theirs.variable.name) continue;
        if (!agree(ours.variable, theirs.variable))
          return bad(fmt::format("in step {} of stream '{}' ranks describe variable '{}' differently", report.step,
                                 name_, ours.variable.name));
        for (const auto &a : ours.boxes)
          for (const auto &b : theirs.boxes)
            if (overlap(a, b))
              return bad(fmt::format("in step {} of stream '{}' boxes of two ranks overlap: {} and {}", report.step,
                                     name_, streams::describe(ours.variable.name, a),
                                     streams::describe(ours.variable.name, b)));
      }
  }
  return {};
}

Status Account::take(const StepReport &report) {
  if (report.step < complete_) {  // of a server that was started anew, or comes back to a first one that was
    auto &known = steps_[report.step];
    floor_ = std::min(floor_, report.step);
    if (known.reports.emplace(report.server, report).second) known.bytes += report.bytes;
    for (const auto &told : report.variables)
      if (told.variable.is_constant) constants_[told.variable.name].insert(report.step);
    return {};
  }
  auto &state = steps_[report.step];
  if (auto status = check_against(state, report); !status.ok()) {
    interrupt(status.error().message);
    return status;
  }
  state.reports[report.server] = report;
  for (auto next = steps_.find(complete_); next != steps_.end(); next = steps_.find(complete_)) {
    std::uint32_t ended = 0, writers = 0;
    for (const auto &[server, each] : next->second.reports) ended += each.ended, writers = each.writers;
    if (ended < writers) break;
    note_complete(complete_++);
  }
  return {};
}

void Account::note_complete(std::uint64_t step) {
  auto &state = steps_.at(step);
  std::erase_if(variables_, [](const VariableArgs &variable) { return !variable.is_constant; });
  std::set<std::string> names;
  for (const auto &[server, report] : state.reports) {
    state.bytes += report.bytes;
    for (const auto &told : report.variables) {
      if (names.insert(told.variable.name).second) {
        std::erase_if(variables_, [&](const VariableArgs &known) { return known.name == told.variable.name; });
        variables_.push_back(told.variable);
      }
      if (told.variable.is_constant) constants_[told.variable.name].insert(step);
    }
    for (const auto &attribute : report.attributes) {
      const auto known = std::ranges::find_if(attributes_, [&](const AttributeArgs &a) {
        return a.variable == attribute.variable && a.name == attribute.name;
      });
      if (known != attributes_.end() && *known == attribute) continue;
      if (known != attributes_.end())
        *known = attribute;
      else
        attributes_.push_back(attribute);
      ++attributes_changed_;
    }
  }
}

std::uint64_t Account::needed() const {
  auto least = complete_;
  for (const auto &group : groups_)
    if (group.holds()) least = std::min(least, group.ended());
  return least;
}

Needed Account::settle(std::uint64_t keep_bytes, Clock::time_point now) {
  if (std::ranges::any_of(groups_, &Group::holds)) keep_bytes = 0;
  if (expects_readers(now)) keep_bytes = std::numeric_limits<std::uint64_t>::max();
  auto from = needed();
  // For late readers, and the newest always, as views have nothing else.
  std::uint64_t bytes = 0;
  for (auto at = steps_.lower_bound(from); at != steps_.begin();) {
    --at;
    bytes += at->second.bytes;
    if (bytes > keep_bytes && at->first + 1 != complete_) break;
    from = at->first;
  }
  floor_ = from;
  Needed result{from, {}};
  std::set<std::uint64_t> kept;
  for (auto &[name, steps] : constants_) {
    const auto behind = steps.lower_bound(from);
    if (behind == steps.begin()) continue;
    kept.insert(*std::prev(behind));
    steps.erase(steps.begin(), std::prev(behind));
  }
  result.kept.assign(kept.begin(), kept.end());
  for (auto at = steps_.begin(); at != steps_.end() && at->first < from;)
    at = kept.contains(at->first) ? std::next(at) : steps_.erase(at);
  return result;
}

void Account::lose_server(std::uint32_t server) {
  if (lasting_ == Lasting::kInLog) return;  // it has them again
  std::uint64_t lost = 0;
  for (auto at = steps_.begin(); at != steps_.end();) {
    const bool has_some = at->second.reports.contains(server);
    lost += has_some && at->first < complete_ ? 1 : 0;
    at = has_some ? steps_.erase(at) : std::next(at);
  }
  if (lost == 0) return;
  for (auto &group : groups_)
    if (group.holds())
      group.lost = fmt::format("server {} was lost, and with it {} steps that it had in memory", server, lost);
}

// --- what outlives the server -----------------------------------------------------------------------------------------

LoggedStream Account::to_log(std::uint64_t made) const {
  LoggedStream logged;
  logged.stream = key_;
  logged.name = name_;
  logged.made = made;
  logged.complete = complete_;
  for (const auto &writer : writers_) logged.writers.push_back({writer.key, writer.is_closed, writer.steps});
  logged.await_readers = await_readers_;
  logged.why_interrupted = why_interrupted_;
  logged.variables = variables_;
  logged.attributes = attributes_;
  return logged;
}

void Account::restore(const LoggedStream &logged, Clock::time_point gone_at) {
  complete_ = floor_ = logged.complete;  // take() says which steps there are
  readers_expected_until_ = gone_at;
  writers_.clear();
  for (const auto &writer : logged.writers) {
    writers_.emplace_back();
    writers_.back().key = writer.key;
    writers_.back().is_closed = writer.is_closed;
    writers_.back().steps = writer.steps;
    writers_.back().gone_at = gone_at;
  }
  await_readers_ = logged.await_readers;
  why_interrupted_ = logged.why_interrupted;
  variables_ = logged.variables;
  attributes_ = logged.attributes;
  attributes_changed_ = attributes_.size();
}

void Account::restore(const LoggedReaders &logged, Clock::time_point now) {
  if (logged.is_gone) return;
  Group group{logged.subscription, 0, ReadingKind::kEveryStep, logged.ended, {}, 0, now, {}};
  group.ranks.assign(std::max(logged.size, 1u), Rank{0, {}, false, logged.ended, 0, logged.ended});
  groups_.push_back(std::move(group));
}

// --- readers ----------------------------------------------------------------------------------------------------------

Account::Group *Account::find_group_of(const ReaderArgs &args) {
  for (auto &group : groups_) {
    if (!args.subscription.empty() && group.subscription == args.subscription) return &group;
    if (args.subscription.empty() && group.subscription.empty() && args.group != 0 && group.key == args.group)
      return &group;
  }
  return nullptr;
}

std::uint64_t Account::beginning(const ReaderArgs &args) const {
  const auto first_there = oldest();
  switch (args.from) {
    case Beginning::kFromLatest: return complete_ > 0 ? std::max(first_there, complete_ - 1) : 0;
    case Beginning::kFromNext: return complete_;
    case Beginning::kFromNumber: return std::max(args.first, std::min(first_there, complete_));
    case Beginning::kFromOldest: break;
  }
  return first_there;
}

Status Account::seat_reader(const ReaderArgs &args, PeerId peer, Clock::time_point now) {
  auto *group = find_group_of(args);
  if (group == nullptr) {
    groups_.push_back({args.subscription, args.group, args.reading, beginning(args), {}, 0, now, {}});
    group = &groups_.back();
    group->ranks.assign(args.size, Rank{0, {}, false, group->first, 0, group->first});
    if (args.known != 0)
      for (auto &rank : group->ranks) rank.ended = std::max(rank.ended, args.first);
  }
  if (group->connected() == 0 && group->ranks.size() != args.size) {
    const auto ended = group->ended();  // with another number of ranks than before
    group->ranks.assign(args.size, Rank{0, {}, false, ended, 0, ended});
  }
  if (group->reading != args.reading || group->ranks.size() != args.size)
    return bad(
        fmt::format("{} of stream '{}' say that they are {}, and whether they see every step: all have to say the "
                    "same",
                    group->name(), name_, group->ranks.size()));
  auto &rank = group->ranks[args.rank];
  if (rank.is_connected && rank.key != args.reader)
    return Error{Code::kExists,
                 fmt::format("rank {} of {} of stream '{}' is there already", args.rank, group->name(), name_)};
  const bool is_another = rank.key != args.reader;
  rank.key = args.reader;
  rank.peer = peer;
  rank.is_connected = true;
  rank.attributes_told = 0;
  if (is_another && args.known == 0 && group->connected() == 1) {
    const auto ended = group->ended();  // all go on after what all of them had ended
    for (auto &each : group->ranks) each.ended = ended;
  }
  group->heard = now;
  return {};
}

Account::Group *Account::find_group(Key reader) {
  for (auto &group : groups_)
    if (std::ranges::find(group.ranks, reader, &Rank::key) != group.ranks.end()) return &group;
  return nullptr;
}

Account::Rank *Account::find_rank(Key reader) {
  auto *group = find_group(reader);
  return group == nullptr ? nullptr : &*std::ranges::find(group->ranks, reader, &Rank::key);
}

std::optional<NextResult> Account::next(Key reader, std::uint64_t ended, Clock::time_point now) {
  auto &group = *find_group(reader);
  auto &rank = *find_rank(reader);
  group.heard = now;
  NextResult result;
  if (!group.lost.empty() && group.holds()) {
    result.state = NextState::kStepsLost;
    result.why = std::exchange(group.lost, {});
    for (auto &each : group.ranks) each.ended = std::max(each.ended, std::min(oldest(), complete_));
    return result;
  }
  rank.ended = std::max(rank.ended, ended);
  auto step = rank.ended;
  if (!group.holds() && step < complete_) step = complete_ - 1;
  while (step < complete_ && !steps_.contains(step)) ++step;
  if (step < complete_) {
    result = describe(step, rank);
    result.missed = step - rank.ended;
    if (rank.told <= step) group.missed += step - std::max(rank.told, rank.ended);
    rank.told = step + 1;
    return result;
  }
  // A server that is away, as it was killed, may have some of the last steps still.
  if (is_over() && complete_ >= closed_steps()) {
    result.state = NextState::kStreamEnded;
    return result;
  }
  if (!why_interrupted_.empty()) {
    result.state = NextState::kWritersLost;
    result.why = fmt::format("{}; {} steps were complete", why_interrupted_, complete_);
    return result;
  }
  return std::nullopt;
}

/// The step whose value of a constant holds at `step`; kNoStep: there is none.
std::uint64_t Account::constant_at(std::string_view variable, std::uint64_t step) const {
  const auto found = constants_.find(variable);
  if (found == constants_.end()) return kNoStep;
  const auto behind = found->second.upper_bound(step);
  return behind == found->second.begin() ? kNoStep : *std::prev(behind);
}

NextResult Account::describe(std::uint64_t step, Rank &rank) const {
  NextResult result;
  result.state = NextState::kStepIsThere;
  result.step = step;
  std::map<std::string, StepVariable> variables;
  const auto add = [&](std::uint64_t number, bool constants_only) {
    const auto found = steps_.find(number);
    if (found == steps_.end()) return;
    for (const auto &[server, report] : found->second.reports)
      for (const auto &told : report.variables) {
        if (constants_only && constant_at(told.variable.name, step) != number) continue;
        auto &variable = variables[told.variable.name];
        variable.variable = told.variable;
        variable.put_in = number;
        ShareArgs share{server, {}, 0};
        for (const auto &box : told.boxes) {
          share.around = share.elements == 0 ? box : around(share.around, box);
          share.elements += static_cast<std::uint64_t>(elements_of(box));
        }
        if (share.elements > 0) variable.shares.push_back(std::move(share));
      }
  };
  std::set<std::uint64_t> earlier;
  for (const auto &[name, numbers] : constants_)
    if (const auto number = constant_at(name, step); number < step) earlier.insert(number);
  for (const auto number : earlier) add(number, true);
  add(step, false);
  for (auto &[name, variable] : variables) result.variables.push_back(std::move(variable));
  result.has_attributes = rank.attributes_told != attributes_changed_;
  if (result.has_attributes) result.attributes = attributes_;
  rank.attributes_told = attributes_changed_;
  return result;
}

void Account::close_reader(Key reader, std::uint64_t ended, bool unsubscribes) {
  auto *group = find_group(reader);
  if (group == nullptr) return;
  auto &rank = *find_rank(reader);
  rank.ended = std::max(rank.ended, ended);
  rank.is_connected = false;
  if (unsubscribes) group->subscription.clear();
  if (group->connected() == 0 && group->subscription.empty())
    std::erase_if(groups_, [&](const Group &each) { return &each == group; });
}

void Account::lose_readers(PeerId peer) {
  for (auto &group : groups_)
    for (auto &rank : group.ranks)
      if (rank.is_connected && rank.peer == peer) rank.is_connected = false;
  std::erase_if(groups_, [](const Group &group) { return group.subscription.empty() && group.connected() == 0; });
}

void Account::let_go_of_silent(Clock::time_point then) {
  for (auto &group : groups_) {
    if (!group.holds() || !group.subscription.empty() || group.heard > then || group.ended() >= complete_) continue;
    group.lost = fmt::format("{} of stream '{}' were silent for too long: steps {} to {} are not held any more",
                             group.name(), name_, group.ended(), complete_ - 1);
    for (auto &rank : group.ranks) rank.ended = complete_;
  }
}

void Account::inherit(const Account &former) {
  for (const auto &group : former.groups_) {
    if (group.subscription.empty() || !group.holds()) continue;
    groups_.push_back(
        {group.subscription, 0, group.reading, 0, std::vector<Rank>(group.ranks.size()), 0, group.heard, {}});
  }
}

std::string Account::holder() const {
  const Group *slowest = nullptr;
  for (const auto &group : groups_)
    if (group.holds() && group.ended() < complete_ && (slowest == nullptr || group.ended() < slowest->ended()))
      slowest = &group;
  if (slowest == nullptr) return {};
  return fmt::format("{} of stream '{}' have not ended step {}", slowest->name(), name_, slowest->ended());
}

StreamReport Account::report() const {
  StreamReport report;
  report.name = name_;
  report.state = is_over() ? StreamState::kStreamOver
                           : (why_interrupted_.empty() ? StreamState::kStreamOpen : StreamState::kStreamInterrupted);
  report.why = why_interrupted_;
  report.writers = size();
  report.connected = static_cast<std::uint32_t>(
      std::ranges::count_if(writers_, [](const Writer &w) { return w.is_connected && !w.is_closed; }));
  report.lasting = lasting_;
  report.steps = complete_;
  report.oldest = oldest();
  report.variables = variables_;
  report.attributes = attributes_;
  for (const auto &group : groups_)
    report.readers.push_back({group.subscription, group.reading, static_cast<std::uint32_t>(group.ranks.size()),
                              group.connected(), group.ended(), complete_ - std::min(complete_, group.ended()),
                              group.missed});
  return report;
}

}  // namespace streams
