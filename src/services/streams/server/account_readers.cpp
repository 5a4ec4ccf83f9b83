// SPDX-License-Identifier: BSD-3-Clause
// Of a stream's account: groups of readers, and what each is told.
#include <services/streams/server/account.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace streams {

namespace {

constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

}  // namespace

// --- groups of readers ------------------------------------------------------------------------------------------------

void Account::Group::assign(std::size_t size, std::uint64_t ended) {
  ranks.assign(size, Rank{0, {}, false, ended, 0, ended});
  connected = 0;
  least.clear();
  for (std::size_t i = 0; i < size; ++i) least.add(ended);
}

void Account::Group::set_ended(Rank &rank, std::uint64_t ended) {
  least.remove(std::exchange(rank.ended, ended));
  least.add(ended);
}

void Account::Group::connect(Rank &rank, bool is_connected) {
  connected -= rank.is_connected ? 1 : 0;
  connected += is_connected ? 1 : 0;
  rank.is_connected = is_connected;
}

std::string Account::Group::name() const {
  return subscription.empty() ? fmt::format("readers without a name ({} of {})", connected, ranks.size())
                              : fmt::format("the readers '{}' ({} of {})", subscription, connected, ranks.size());
}

// --- readers ----------------------------------------------------------------------------------------------------------

/// What `held_` and `moved_` have of it follows.
template <class Change> void Account::change(Group &group, const Change &change) {
  const auto before = group.ended();
  change();
  if (!group.holds() || group.ended() == before) return;
  held_.remove(before);
  held_.add(group.ended());
  if (!group.subscription.empty()) moved_.insert(&group);
}

void Account::connect(Group &group, Rank &rank, bool is_connected) {
  const auto before = group.connected;
  group.connect(rank, is_connected);
  if (!group.holds()) views_ += group.connected - before;
}

Account::Group &Account::add_group(Group group, std::size_t size, std::uint64_t ended) {
  auto &added = groups_.emplace_back(std::move(group));
  added.assign(size, ended);
  if (!added.holds()) return added;
  held_.add(added.ended());
  if (!added.subscription.empty()) moved_.insert(&added);
  return added;
}

void Account::name_rank(Group &group, Rank &rank, Key key) {
  if (const auto former = readers_.find(rank.key); former != readers_.end() && former->second.first == &group)
    readers_.erase(former);
  rank.key = key;
  readers_[key] = {&group, static_cast<std::size_t>(&rank - group.ranks.data())};
}

void Account::forget_ranks(const Group &group) {
  for (const auto &rank : group.ranks)
    if (const auto found = readers_.find(rank.key); found != readers_.end() && found->second.first == &group)
      readers_.erase(found);
}

void Account::remove_groups_without_readers() {
  for (auto group = groups_.begin(); group != groups_.end();) {
    if (!group->subscription.empty() || group->connected > 0) {
      ++group;
      continue;
    }
    forget_ranks(*group);
    if (group->holds()) held_.remove(group->ended());
    moved_.erase(&*group);
    group = groups_.erase(group);
  }
}

std::vector<const Account::Group *> Account::take_moved() {
  std::vector<const Group *> moved(moved_.begin(), moved_.end());
  moved_.clear();
  return moved;
}

Account::Group *Account::find_group_of(const ReaderArgs &args) {
  if (args.subscription.empty() && args.group == 0) return nullptr;
  const auto found = std::ranges::find_if(groups_, [&](const Group &group) {
    if (!args.subscription.empty()) return group.subscription == args.subscription;
    return group.subscription.empty() && group.key == args.group;
  });
  return found == groups_.end() ? nullptr : &*found;
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

void Account::subscribe(const std::string &subscription, Clock::time_point now) {
  if (std::ranges::find(groups_, subscription, &Group::subscription) != groups_.end()) return;
  Group made;
  made.subscription = subscription;
  made.is_sink = true;
  made.first = oldest();
  made.heard = now;
  const auto first = made.first;
  add_group(std::move(made), 1, first);
}

Status Account::seat_reader(const ReaderArgs &args, PeerId peer, Clock::time_point now) {
  auto *group = find_group_of(args);
  if (group == nullptr) {
    Group made;
    made.subscription = args.subscription;
    made.key = args.group;
    made.reading = args.reading;
    made.first = beginning(args);
    made.heard = now;
    const auto first = args.known != 0 ? std::max(made.first, args.first) : made.first;
    group = &add_group(std::move(made), args.size, first);
  }
  if (group->connected == 0 && group->ranks.size() != args.size) {  // with another number of ranks than before
    forget_ranks(*group);
    group->assign(args.size, group->ended());
  }
  if (group->reading != args.reading || group->ranks.size() != args.size)
    return Error{Code::kInvalidArgument,
                 fmt::format("{} of stream '{}' say that they are {}, and whether they see every "
                             "step: all have to say the same",
                             group->name(), name_, group->ranks.size())};
  auto &rank = group->ranks[args.rank];
  if (rank.is_connected && rank.key != args.reader)
    return Error{Code::kExists,
                 fmt::format("rank {} of {} of stream '{}' is there already", args.rank, group->name(), name_)};
  const bool is_another = rank.key != args.reader;
  name_rank(*group, rank, args.reader);
  rank.peer = peer;
  connect(*group, rank, true);
  rank.attributes_told = 0;
  if (is_another && args.known == 0 && group->connected == 1) {
    const auto ended = group->ended();  // all go on after what all of them had ended
    for (auto &each : group->ranks) group->set_ended(each, ended);
  }
  group->heard = now;
  return {};
}

Account::Group *Account::find_group(Key reader) {
  const auto found = readers_.find(reader);
  return found == readers_.end() ? nullptr : found->second.first;
}

Account::Rank *Account::find_rank(Key reader) {
  const auto found = readers_.find(reader);
  return found == readers_.end() ? nullptr : &found->second.first->ranks[found->second.second];
}

std::optional<NextResult> Account::next(Key reader, std::uint64_t ended, Clock::time_point now) {
  auto &group = *find_group(reader);
  auto &rank = *find_rank(reader);
  group.heard = now;
  NextResult result;
  if (!group.lost.empty() && group.holds()) {
    result.state = NextState::kStepsLost;
    result.why = std::exchange(group.lost, {});
    change(group, [&] {
      for (auto &each : group.ranks) group.set_ended(each, std::max(each.ended, oldest()));
    });
    return result;
  }
  change(group, [&] { group.set_ended(rank, std::max(rank.ended, ended)); });
  auto step = rank.ended;
  if (!group.holds() && step < complete_) step = complete_ - 1;
  if (step < complete_) step = next_seen(step);
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
    result.why = why_ended_;
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

/// Of the variables of step `number` those that a reader of `step` sees: constants of an earlier one, if they hold.
void Account::add_shares(std::uint64_t number, std::uint64_t step,
                         std::map<std::string, StepVariable> &variables) const {
  const auto found = steps_.find(number);
  if (found == steps_.end()) return;
  for (const auto &[name, known] : found->second.variables) {
    if (number != step && constant_at(name, step) != number) continue;
    StepVariable variable;
    variable.variable = known.variable;
    variable.put_in = number;
    for (const auto &[server, share] : known.shares)
      if (share.elements > 0) variable.shares.push_back(share);
    variables.insert_or_assign(name, std::move(variable));
  }
}

NextResult Account::describe(std::uint64_t step, Rank &rank) const {
  NextResult result;
  result.state = NextState::kStepIsThere;
  result.step = step;
  std::map<std::string, StepVariable> variables;
  std::set<std::uint64_t> earlier;
  for (const auto &[name, numbers] : constants_)
    if (const auto number = constant_at(name, step); number < step) earlier.insert(number);
  for (const auto number : earlier) add_shares(number, step, variables);
  add_shares(step, step, variables);
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
  change(*group, [&] { group->set_ended(rank, std::max(rank.ended, ended)); });
  connect(*group, rank, false);
  if (unsubscribes) {
    group->subscription.clear();
    moved_.erase(group);
  }
  if (group->connected == 0 && group->subscription.empty()) remove_groups_without_readers();
}

void Account::lose_readers(const Gone &gone) {
  for (auto &group : groups_)
    for (auto &rank : group.ranks)
      if (rank.is_connected && gone.contains(rank.peer.value)) connect(group, rank, false);
  remove_groups_without_readers();
}

void Account::let_go_of_silent(Clock::time_point then) {
  for (auto &group : groups_) {
    if (!group.holds() || !group.subscription.empty() || group.heard > then || group.ended() >= complete_) continue;
    group.lost = fmt::format("{} of stream '{}' were silent for too long: steps {} to {} are not held any more",
                             group.name(), name_, group.ended(), complete_ - 1);
    change(group, [&] {
      for (auto &rank : group.ranks) group.set_ended(rank, complete_);
    });
  }
}

void Account::inherit(const Account &former) {
  for (const auto &group : former.groups_) {
    if (group.subscription.empty() || !group.holds()) continue;
    Group heir;
    heir.subscription = group.subscription;
    heir.is_sink = group.is_sink;
    heir.reading = group.reading;
    heir.heard = group.heard;
    add_group(std::move(heir), group.ranks.size(), 0);
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

}  // namespace streams
