// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/account.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace streams {

namespace {

/// Of steps that all who read every step have ended. The less, the sooner a writer's buffers come back, while processors
/// have them in their caches: larger steps are put twice as fast then.
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

void Account::begin_group(std::uint32_t size, std::uint32_t await_readers) {
  writers_.assign(size, {});
  count_writers();
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
  absent_ -= writer.key == 0 ? 1 : 0;
  by_key_[args.writer] = args.rank;
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
  auto *writer = find_writer(key);
  if (writer == nullptr) return;
  open_ -= writer->is_closed ? 0 : 1;
  writer->is_closed = true;
  writer->steps = steps;
  closed_steps_ = std::min(closed_steps_, steps);
}

void Account::abandon_writer(Key key) {
  const auto *writer = find_writer(key);
  if (writer != nullptr && !writer->is_closed)
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
      if (const auto other = known.boxes.find(told.boxes[i]))
        return bad(fmt::format("in step {} of stream '{}' boxes of two ranks overlap: {} and {}", report.step, name_,
                               streams::describe(told.variable.name, told.boxes[i]),
                               streams::describe(told.variable.name, other->box)));
  }
  return {};
}

/// A server tells the same boxes again, in the same order, and more.
void Account::take_part(StepState &state, const StepReport &report) {
  state.servers[report.server] = {report.ended, report.writers, report.bytes, report.attributes};
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
      if (servers_ > 1 && elements_of(box) > 0) known.boxes.add(box);
    }
  }
}

Status Account::take(const StepReport &report) {
  if (report.step < complete_) {  // of a server that was started anew, or comes back to a first one that was
    auto &known = steps_[report.step];
    if (!known.servers.contains(report.server)) {
      take_part(known, report);
      for (auto &[name, variable] : known.variables) variable.boxes.clear();
      known.bytes += report.bytes;
      for (const auto &told : report.variables)
        if (told.variable.is_constant) has_new_constants_ |= constants_[told.variable.name].insert(report.step).second;
      if (report.step < floor_) {
        floor_ = report.step;
        count_late();
      } else if (report.step < needed_) {
        late_bytes_ += report.bytes;
      }
    }
    return {};
  }
  auto &state = steps_[report.step];
  const auto known = state.servers.find(report.server);
  if (known != state.servers.end() && report.ended < known->second.ended) return {};  // overtaken by a later one
  if (auto status = check_against(state, report); !status.ok()) {
    interrupt(status.error().message);
    return status;
  }
  take_part(state, report);
  for (auto next = steps_.find(complete_); next != steps_.end(); next = steps_.find(complete_)) {
    std::uint32_t ended = 0, writers = 0;
    for (const auto &[server, each] : next->second.servers) ended += each.ended, writers = each.writers;
    if (ended < writers) break;
    note_complete(complete_++);
  }
  return {};
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
  std::erase_if(variables_, [](const auto &each) { return !each.second.is_constant; });
  for (auto &[name, known] : state.variables) {
    known.boxes.clear();
    variables_.insert_or_assign(name, known.variable);
    if (known.variable.is_constant) has_new_constants_ |= constants_[name].insert(step).second;
  }
  for (auto &[server, part] : state.servers) {
    state.bytes += part.bytes;
    for (auto &attribute : std::exchange(part.attributes, {})) note_attribute(std::move(attribute));
  }
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
  floor_ = std::min(floor_, needed);
}

const Needed &Account::settle(std::uint64_t keep_bytes, Clock::time_point now) {
  if (views_ == 0 && !held_.empty()) keep_bytes = std::min(keep_bytes, kKeptOfRead);
  if (expects_readers(now)) keep_bytes = std::numeric_limits<std::uint64_t>::max();
  move_to(needed());
  // For late readers, and the newest always, as views have nothing else.
  auto oldest = steps_.lower_bound(floor_);
  for (; oldest != steps_.end() && oldest->first < needed_; ++oldest) {
    if (late_bytes_ <= keep_bytes || oldest->first + 1 == complete_) break;
    late_bytes_ -= oldest->second.bytes;
  }
  floor_ = oldest == steps_.end() ? needed_ : std::min(oldest->first, needed_);
  if (floor_ != settled_.from || has_new_constants_) keep_constants();
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
  has_new_constants_ = false;
  for (auto at = steps_.begin(); at != steps_.end() && at->first < floor_;)
    at = kept.contains(at->first) ? std::next(at) : steps_.erase(at);
}

void Account::lose_server(std::uint32_t server) {
  if (lasting_ == Lasting::kInLog) return;  // it has them again
  std::uint64_t lost = 0;
  for (auto at = steps_.begin(); at != steps_.end();) {
    const bool has_some = at->second.servers.contains(server);
    lost += has_some && at->first < complete_ ? 1 : 0;
    at = has_some ? steps_.erase(at) : std::next(at);
  }
  count_late();
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
  for (const auto &[name, variable] : variables_) logged.variables.push_back(variable);
  logged.attributes = attributes_;
  return logged;
}

void Account::restore(const LoggedStream &logged, Clock::time_point gone_at) {
  complete_ = floor_ = needed_ = logged.complete;  // take() says which steps there are
  readers_expected_until_ = gone_at;
  writers_.clear();
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
  report.why = why_interrupted_;
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
