// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/account.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace streams {

namespace {

/// Of steps that all who read every step have ended. The less, the sooner a writer's buffers come back, while
/// processors have them in their caches: larger steps are put twice as fast then.
constexpr std::uint64_t kKeptOfRead = 4 << 20;

Error bad(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

}  // namespace

// --- writers ----------------------------------------------------------------------------------------------------------

Account::Writer *Account::find_writer(Key writer) {
  const auto found = by_key_.find(writer);
  return found == by_key_.end() ? nullptr : &writers_[found->second];
}

void Account::count_writers() {
  by_key_.clear();
  absent_ = open_ = 0;
  closed_steps_ = ~std::uint64_t{0};
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const auto &writer = writers_[rank];
    if (writer.key != 0) by_key_[writer.key] = rank;
    absent_ += writer.key == 0 ? 1 : 0;
    open_ += writer.is_closed ? 0 : 1;
    if (writer.is_closed) closed_steps_ = std::min(closed_steps_, writer.steps);
  }
}

std::uint64_t Account::group_of(std::uint64_t step) const {
  const auto behind = writer_groups_.upper_bound(step);
  return behind == writer_groups_.begin() ? 0 : std::prev(behind)->second;
}

void Account::begin_group(std::uint32_t size, std::uint32_t await_readers) {
  writers_.assign(size, {});
  lost_before_ = 0;
  count_writers();
  writer_groups_[complete_] = group() + 1;
  await_readers_ = await_readers;
  why_interrupted_.clear();
  why_ended_.clear();
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
  absent_ -= writer.key == 0 ? 1 : 0;
  by_key_[args.writer] = args.rank;
  writer.key = args.writer;
  writer.peer = peer;
  writer.server = args.server;
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
  writers_[args.rank].server = args.server;
  writers_[args.rank].is_connected = true;
  return {};
}

void Account::close_writer(Key key, std::uint64_t steps) {
  auto *writer = find_writer(key);
  if (writer == nullptr) return;
  open_ -= writer->is_closed ? 0 : 1;
  writer->is_closed = true;
  writer->steps = steps;
  closed_steps_ = std::min(closed_steps_, steps);
}

void Account::abandon_writer(Key key) {
  auto *writer = find_writer(key);
  if (writer == nullptr || writer->is_closed) return;
  writer->is_connected = false;
  interrupt(fmt::format("rank {} of the {} that write stream '{}' has left without closing it",
                        writer - writers_.data(), writers_.size(), name_));
}

void Account::lose_writers(const Gone &gone) {
  for (auto &writer : writers_) {
    const auto found = writer.is_connected ? gone.find(writer.peer.value) : gone.end();
    if (found == gone.end()) continue;
    writer.is_connected = false;
    writer.gone_at = found->second;
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

void Account::end(std::string why) {
  if (writers_.empty()) begin_group(1, 0);
  for (auto &writer : writers_) writer.is_closed = true, writer.steps = complete_;
  count_writers();
  why_ended_ = std::move(why);
}

bool Account::are_left_alone(const std::set<Key> &ended) const {
  bool is_any_gone = false;
  for (const auto &writer : writers_) {
    is_any_gone = is_any_gone || !writer.is_connected;
    if ((!writer.is_connected || writer.is_closed) && !ended.contains(writer.key)) return false;
  }
  return is_any_gone;
}

void Account::lose_steps(Key key, std::uint64_t ended) {
  auto *writer = find_writer(key);
  if (writer == nullptr) return;
  writer->lost = std::max(writer->lost, ended);
  lost_before_ = std::max(lost_before_, ended);
  advance();
}

std::uint64_t Account::first_lost(std::uint32_t server) const {
  const auto found = lost_from_.find(server);
  return found == lost_from_.end() ? complete_ : found->second;
}

bool Account::has_readers_awaited() const {
  if (await_readers_ == 0) return true;
  const auto there =
      std::ranges::count_if(groups_, [](const Group &g) { return g.holds() && g.connected == g.ranks.size(); });
  return there >= static_cast<std::ptrdiff_t>(await_readers_);
}

// --- steps ------------------------------------------------------------------------------------------------------------

/// Each server sees to its own.
Status Account::check_against(const StepState &state, const StepReport &report) const {
  for (const auto &told : report.variables) {
    const auto found = state.variables.find(told.variable.name);
    if (found == state.variables.end()) continue;
    const auto &known = found->second;
    const auto taken = known.taken.find(report.server);
    if (!agree(told.variable, known.variable))
      return bad(fmt::format("in step {} of stream '{}' ranks describe variable '{}' differently", report.step, name_,
                             told.variable.name));
    for (auto i = taken == known.taken.end() ? 0 : taken->second; i < told.boxes.size(); ++i)
      if (const auto other = known.find_other(told.boxes[i], report.server))
        return bad(fmt::format("in step {} of stream '{}' boxes of two ranks overlap: {} and {}", report.step, name_,
                               streams::describe(told.variable.name, told.boxes[i]),
                               streams::describe(told.variable.name, *other)));
  }
  return {};
}

std::optional<Box> Account::SharedVariable::find_other(const Box &box, std::uint32_t server) const {
  for (const auto &[each, index] : boxes) {
    if (each == server) continue;
    if (auto found = index.find(box)) return std::move(found->box);
  }
  return std::nullopt;
}

/// A server tells the same boxes again, in the same order, and more; one that was started anew, whatever it has.
void Account::take_part(StepState &state, const StepReport &report) {
  state.servers[report.server] = {report.ended, report.writers, report.bytes, report.incarnation, report.attributes};
  for (const auto &told : report.variables) {
    auto &known = state.variables[told.variable.name];
    known.variable = told.variable;
    auto &share = known.shares[report.server];
    auto &taken = known.taken[report.server];
    share.server = report.server;
    for (; taken < told.boxes.size(); ++taken) {
      const auto &box = told.boxes[taken];
      share.around = share.elements == 0 ? box : around(share.around, box);
      share.elements += static_cast<std::uint64_t>(elements_of(box));
      if (servers_ > 1 && elements_of(box) > 0) known.boxes[report.server].add(box);
    }
  }
}

Status Account::take(const StepReport &report) {
  if (report.group != group_of(report.step)) return {};
  if (report.step < complete_) return take_late(report), Status();
  auto &state = steps_[report.step];
  state.remove_former(report);
  const auto known = state.servers.find(report.server);
  if (known != state.servers.end() && report.ended < known->second.ended) return {};  // overtaken by a later one
  if (auto status = check_against(state, report); !status.ok()) {
    interrupt(status.error().message);
    return status;
  }
  take_part(state, report);
  advance();
  return {};
}

/// Of a server that was started anew, or comes back to a first one that was.
void Account::take_late(StepReport report) {
  const auto step = report.step;
  if (lost_.contains(step)) return;
  if (step < floor_) std::erase_if(report.variables, [](const auto &told) { return !told.variable.is_constant; });
  if (step < floor_ && report.variables.empty()) return;
  auto &known = steps_[step];
  const auto before = known.bytes;
  known.remove_former(report);
  if (!known.agrees_with(report)) return;
  take_part(known, report);
  for (auto &[name, variable] : known.variables) variable.boxes.clear();
  for (const auto &told : report.variables)
    if (told.variable.is_constant) has_other_constants_ |= constants_[told.variable.name].insert(step).second;
  known.count_bytes();
  if (step >= floor_ && step < needed_) late_bytes_ += known.bytes - before;
}

bool Account::StepState::agrees_with(const StepReport &report) const {
  return std::ranges::all_of(report.variables, [&](const ReportedVariable &told) {
    const auto found = variables.find(told.variable.name);
    return found == variables.end() || agree(told.variable, found->second.variable);
  });
}

void Account::StepState::count_bytes() {
  bytes = 0;
  for (const auto &[server, part] : servers) bytes += part.bytes;
}

bool Account::StepState::is_whole() const {
  std::uint64_t ended = 0, writers = 0;
  for (const auto &[server, part] : servers) ended += part.ended, writers = part.writers;
  return ended >= writers;
}

void Account::StepState::remove(std::uint32_t server) {
  servers.erase(server);
  for (auto at = variables.begin(); at != variables.end();) {
    auto &known = at->second;
    known.shares.erase(server);
    known.boxes.erase(server);
    known.taken.erase(server);
    at = known.shares.empty() ? variables.erase(at) : std::next(at);
  }
}

/// What another incarnation of that server has reported.
void Account::StepState::remove_former(const StepReport &report) {
  const auto known = servers.find(report.server);
  if (known != servers.end() && known->second.incarnation != report.incarnation) remove(report.server);
}

/// Writers whose parts of the next step are lost.
std::size_t Account::lost_parts() const {
  if (complete_ >= lost_before_) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(writers_, [&](const Writer &each) { return each.lost > complete_; }));
}

/// Steps that all have ended are complete; those of which a server has lost some, too, but nobody sees them.
void Account::advance() {
  for (;; ++complete_) {
    const auto lost = lost_parts();
    auto ended = lost;
    if (const auto next = steps_.find(complete_); next != steps_.end())
      for (const auto &[server, part] : next->second.servers) ended += part.ended;
    if (writers_.empty() || ended < writers_.size()) return;
    if (lost == 0) {
      note_complete(complete_);
      continue;
    }
    tell_lost("a server was started anew", complete_, complete_);
    forget_step(complete_);
  }
}

void Account::tell_lost(const std::string &what, std::uint64_t first, std::uint64_t last) {
  for (auto &group : groups_) {
    if (!group.holds() || group.ended() > last) continue;
    if (!group.lost.empty()) group.lost += "; ";
    group.lost += first == last
                      ? fmt::format("{}, and step {} that it had in memory is lost", what, first)
                      : fmt::format("{}, and steps {} to {} that it had in memory are lost", what, first, last);
  }
}

/// Some of it is gone, and with that some of those constants: others hold still.
void Account::forget_step(std::uint64_t step, const std::set<std::string> &constants) {
  lost_.insert(step);
  has_other_constants_ = true;
  for (const auto &name : constants)
    if (const auto known = constants_.find(name); known != constants_.end()) known->second.erase(step);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  auto &variables = found->second.variables;
  std::erase_if(variables,
                [&](const auto &each) { return !each.second.variable.is_constant || constants.contains(each.first); });
  for (auto &[name, known] : variables) {
    known.boxes.clear();
    constants_[name].insert(step);
  }
  if (variables.empty()) steps_.erase(found);
}

/// The first step from that one on of which all is there.
std::uint64_t Account::next_seen(std::uint64_t step) const {
  for (auto at = steps_.lower_bound(step); at != steps_.end() && at->first < complete_; ++at)
    if (!lost_.contains(at->first) && at->second.is_whole()) return at->first;
  return complete_;
}

void Account::note_attribute(AttributeArgs attribute) {
  const auto [at, is_new] = attribute_at_.try_emplace({attribute.variable, attribute.name}, attributes_.size());
  if (!is_new && attributes_[at->second] == attribute) return;
  if (is_new)
    attributes_.push_back(std::move(attribute));
  else
    attributes_[at->second] = std::move(attribute);
  ++attributes_changed_;
}

void Account::note_complete(std::uint64_t step) {
  auto &state = steps_.at(step);
  state.count_bytes();
  std::erase_if(variables_, [](const auto &each) { return !each.second.is_constant; });
  for (auto &[name, known] : state.variables) {
    known.boxes.clear();
    variables_.insert_or_assign(name, known.variable);
    if (known.variable.is_constant) has_other_constants_ |= constants_[name].insert(step).second;
  }
  for (auto &[server, part] : state.servers)
    for (auto &attribute : std::exchange(part.attributes, {})) note_attribute(std::move(attribute));
}

// --- what has to stay -------------------------------------------------------------------------------------------------

void Account::count_late() {
  late_bytes_ = 0;
  for (auto at = steps_.lower_bound(floor_); at != steps_.end() && at->first < needed_; ++at)
    late_bytes_ += at->second.bytes;
}

void Account::move_to(std::uint64_t needed) {
  for (auto at = steps_.lower_bound(std::max(floor_, needed_)); at != steps_.end() && at->first < needed; ++at)
    late_bytes_ += at->second.bytes;
  for (auto at = steps_.lower_bound(std::max(floor_, needed)); at != steps_.end() && at->first < needed_; ++at)
    late_bytes_ -= at->second.bytes;
  needed_ = needed;
}

const Needed &Account::settle(std::uint64_t keep_bytes, Clock::time_point now) {
  if (views_ == 0 && !held_.empty()) keep_bytes = std::min(keep_bytes, kKeptOfRead);
  if (expects_readers(now)) keep_bytes = std::numeric_limits<std::uint64_t>::max();
  move_to(std::max(needed(), floor_));
  // For late readers, and the newest always, as views have nothing else.
  auto oldest = steps_.lower_bound(floor_);
  for (; oldest != steps_.end() && oldest->first < needed_; ++oldest) {
    if (late_bytes_ <= keep_bytes || oldest->first + 1 == complete_) break;
    late_bytes_ -= oldest->second.bytes;
  }
  floor_ = oldest == steps_.end() ? needed_ : std::min(oldest->first, needed_);
  lost_.erase(lost_.begin(), lost_.lower_bound(floor_));
  while (writer_groups_.size() > 1 && std::next(writer_groups_.begin())->first <= floor_)
    writer_groups_.erase(writer_groups_.begin());
  if (floor_ != settled_.from || has_other_constants_) keep_constants();
  return settled_;
}

/// Of the steps before floor_, those with constants that still hold; the others are forgotten.
void Account::keep_constants() {
  std::set<std::uint64_t> kept;
  for (auto &[name, steps] : constants_) {
    const auto behind = steps.lower_bound(floor_);
    if (behind == steps.begin()) continue;
    kept.insert(*std::prev(behind));
    steps.erase(steps.begin(), std::prev(behind));
  }
  settled_ = {floor_, {kept.begin(), kept.end()}};
  has_other_constants_ = false;
  for (auto at = steps_.begin(); at != steps_.end() && at->first < floor_;)
    at = kept.contains(at->first) ? std::next(at) : steps_.erase(at);
}

void Account::lose_server(std::uint32_t server, std::uint64_t incarnation) {
  std::vector<std::uint64_t> lost;
  for (auto &[step, state] : steps_) {
    const auto had = state.servers.find(server);
    if (had == state.servers.end() || had->second.incarnation == incarnation) continue;
    if (step < complete_)
      lost.push_back(step);
    else
      state.remove(server);
  }
  lost_from_[server] = lost.empty() ? complete_ : lost.front();
  if (!lost.empty()) tell_lost(fmt::format("server {} was started anew", server), lost.front(), lost.back());
  for (const auto step : lost) {
    auto &state = steps_.at(step);
    std::set<std::string> constants;
    for (const auto &[name, known] : state.variables)
      if (known.variable.is_constant && known.shares.contains(server)) constants.insert(name);
    state.remove(server);
    forget_step(step, constants);
  }
  for (auto &writer : writers_)  // who has closed does not come back to say what he had ended
    if (writer.is_closed && writer.server == server && lasting_ == Lasting::kInMemory) {
      writer.lost = writer.steps;
      lost_before_ = std::max(lost_before_, writer.lost);
    }
  count_late();
  advance();
}

// --- what outlives the server -----------------------------------------------------------------------------------------

LoggedStream Account::to_log(std::uint64_t made) const {
  LoggedStream logged;
  logged.stream = key_;
  logged.name = name_;
  logged.made = made;
  logged.complete = complete_;
  logged.needed = floor_;
  for (const auto &[begin, group] : writer_groups_) logged.groups.push_back({group, begin});
  for (const auto &writer : writers_) logged.writers.push_back({writer.key, writer.is_closed, writer.steps});
  logged.await_readers = await_readers_;
  logged.why_interrupted = why_interrupted_;
  for (const auto &[name, variable] : variables_) logged.variables.push_back(variable);
  logged.attributes = attributes_;
  return logged;
}

std::optional<LoggedSeat> Account::seat_to_log(Key writer) const {
  const auto found = by_key_.find(writer);
  if (found == by_key_.end()) return std::nullopt;
  const auto &it = writers_[found->second];
  return LoggedSeat{key_, group(), found->second, {it.key, it.is_closed, it.steps}};
}

void Account::restore(const LoggedStream &logged, Clock::time_point gone_at) {
  complete_ = logged.complete;
  floor_ = needed_ = std::min(logged.needed, complete_);
  for (const auto &each : logged.groups) writer_groups_[each.begin] = each.group;
  readers_expected_until_ = gone_at;
  writers_.clear();
  lost_before_ = 0;
  for (const auto &writer : logged.writers) {
    writers_.emplace_back();
    writers_.back().key = writer.key;
    writers_.back().is_closed = writer.is_closed;
    writers_.back().steps = writer.steps;
    writers_.back().gone_at = gone_at;
  }
  count_writers();
  await_readers_ = logged.await_readers;
  why_interrupted_ = logged.why_interrupted;
  for (const auto &variable : logged.variables) variables_[variable.name] = variable;
  for (const auto &attribute : logged.attributes) note_attribute(attribute);
}

void Account::restore(const LoggedReaders &logged, Clock::time_point now) {
  if (logged.is_gone) return;
  Group group;
  group.subscription = logged.subscription;
  group.is_sink = logged.is_sink;
  group.first = logged.ended;
  group.heard = now;
  moved_.erase(&add_group(std::move(group), std::max(logged.size, 1u), logged.ended));  // it is in the log
}

// --- who looks on -----------------------------------------------------------------------------------------------------

StreamReport Account::report() const {
  StreamReport report;
  report.stream = key_;
  report.name = name_;
  report.state = is_over() ? StreamState::kStreamOver
                           : (why_interrupted_.empty() ? StreamState::kStreamOpen : StreamState::kStreamInterrupted);
  report.why = is_over() ? why_ended_ : why_interrupted_;
  report.writers = size();
  report.connected = static_cast<std::uint32_t>(
      std::ranges::count_if(writers_, [](const Writer &w) { return w.is_connected && !w.is_closed; }));
  report.lasting = lasting_;
  report.steps = complete_;
  report.oldest = oldest();
  for (const auto &[name, variable] : variables_) report.variables.push_back(variable);
  report.attributes = attributes_;
  for (const auto &group : groups_)
    report.readers.push_back({group.subscription, group.reading, static_cast<std::uint32_t>(group.ranks.size()),
                              group.connected, group.ended(), complete_ - std::min(complete_, group.ended()),
                              group.missed});
  return report;
}

}  // namespace streams
