// SPDX-License-Identifier: BSD-3-Clause
// What the first server knows of one stream: who writes it, who reads it, which steps are complete and which are still
// needed. Knows no requests, waits for nothing, and is told the time.
#pragma once

#include <base/clock.hpp>
#include <nnti/nnti.hpp>
#include <services/streams/box_index.hpp>

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace streams {

using nessie::Clock;
using nnti::PeerId;

/// Which steps servers have to keep.
struct Needed {
  std::uint64_t from = 0;           ///< all steps from this one on
  std::vector<std::uint64_t> kept;  ///< constants of earlier ones
  bool operator==(const Needed &) const = default;
};

/// Numbers, of which the least is wanted.
class Least {
 public:
  void add(std::uint64_t number) { ++counts_[number]; }
  void remove(std::uint64_t number) {
    const auto found = counts_.find(number);
    if (--found->second == 0) counts_.erase(found);
  }
  void clear() { counts_.clear(); }
  bool empty() const { return counts_.empty(); }
  /// The greatest number there is, if there is none.
  std::uint64_t get() const { return counts_.empty() ? ~std::uint64_t{0} : counts_.begin()->first; }

 private:
  std::map<std::uint64_t, std::size_t> counts_;
};

class Account {
 public:
  struct Writer {
    Key key = 0;
    PeerId peer;
    bool is_connected = false, is_closed = false;
    std::uint64_t steps = 0;    ///< that it had ended when it closed
    std::uint32_t server = 0;   ///< to which its data go
    std::uint64_t lost = 0;     ///< steps before this one of which that server has nothing any more
    Clock::time_point gone_at;  ///< when one that is not connected is held for dead
  };
  /// A rank of a group of readers.
  struct Rank {
    Key key = 0;
    PeerId peer;
    bool is_connected = false;
    std::uint64_t ended = 0;  ///< steps from the stream's first on
    std::uint64_t attributes_told = 0;
    std::uint64_t told = 0;  ///< steps up to the last that it has heard of
  };
  struct Group {
    std::string subscription;
    bool is_sink = false;  ///< of a rule of the servers' own
    Key key = 0;
    ReadingKind reading = ReadingKind::kEveryStep;
    std::uint64_t first = 0;
    std::vector<Rank> ranks;
    std::uint64_t missed = 0;
    Clock::time_point heard;
    std::string lost;  ///< what it is told once: steps that it held are gone
    Least least;
    std::uint32_t connected = 0;  ///< ranks

    void assign(std::size_t size, std::uint64_t ended);
    void set_ended(Rank &rank, std::uint64_t ended);
    void connect(Rank &rank, bool is_connected);
    /// Steps that all its ranks have ended.
    std::uint64_t ended() const { return least.get(); }
    bool holds() const { return reading == ReadingKind::kEveryStep; }
    std::string name() const;
  };
  /// What servers have of a variable in a step.
  struct SharedVariable {
    VariableArgs variable;
    std::map<std::uint32_t, ShareArgs> shares;   ///< by server
    std::map<std::uint32_t, BoxIndex> boxes;     ///< as these, until the step is complete, if there are several servers
    std::map<std::uint32_t, std::size_t> taken;  ///< of each server's boxes, those that are there
    /// A box of another server that has an element in common with that one.
    std::optional<Box> find_other(const Box &box, std::uint32_t server) const;
  };
  struct ServerPart {
    std::uint32_t ended = 0, writers = 0;
    std::uint64_t bytes = 0, incarnation = 0;
    std::vector<AttributeArgs> attributes;  ///< until the step is complete
  };
  struct StepState {
    std::map<std::uint32_t, ServerPart> servers;
    std::map<std::string, SharedVariable, std::less<>> variables;
    std::uint64_t bytes = 0;  ///< of one that is complete
    /// Of the variables that it reports, those that are there are as they are here.
    bool agrees_with(const StepReport &report) const;
    void count_bytes();
    /// All writers' parts are there.
    bool is_whole() const;
    void remove(std::uint32_t server);
    void remove_former(const StepReport &report);
  };

  Account(Key key, std::string name, Lasting lasting, std::uint32_t servers)
      : key_(key), name_(std::move(name)), lasting_(lasting), servers_(servers) {}

  Key key() const { return key_; }
  const std::string &name() const { return name_; }
  Lasting lasting() const { return lasting_; }

  // --- writers ------------------------------------------------------------------------------------------------------
  /// Whether a group writes now, or its ranks are coming.
  bool is_open() const { return !writers_.empty() && !is_over() && why_interrupted_.empty(); }
  /// Some ranks of the group have not come yet.
  bool is_forming() const { return absent_ > 0; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(writers_.size()); }
  /// A rank of the group that is there, or of a new one if there is none. kExists, kInvalidArgument.
  Status seat_writer(const WriterArgs &args, PeerId peer);
  /// Others write from now on: what was not complete is gone.
  void begin_group(std::uint32_t size, std::uint32_t await_readers);
  /// Of those who write now, or have written the step: higher than of all before. 0: there are none.
  std::uint64_t group() const { return group_of(complete_); }
  std::uint64_t group_of(std::uint64_t step) const;
  /// The first step of those who write now.
  std::uint64_t begin() const { return writer_groups_.empty() ? 0 : writer_groups_.rbegin()->first; }
  /// It was here before.
  Status reseat_writer(const WriterArgs &args, PeerId peer);
  void close_writer(Key writer, std::uint64_t steps);
  void abandon_writer(Key writer);
  /// By their peers: those that are not back by then are dead.
  using Gone = std::unordered_map<std::uint64_t, Clock::time_point>;
  void lose_writers(const Gone &gone);
  void give_up_writers(Clock::time_point now);
  void interrupt(std::string why);
  /// No more steps come, whoever writes; readers see those that are complete, and then why.
  void end(std::string why);
  /// Some writers are gone, but all of these had ended a step, of which those are known: the others may end it still.
  bool are_left_alone(const std::set<Key> &ended) const;
  bool is_over() const { return !writers_.empty() && open_ == 0; }
  /// Of a stream that is over, how many steps all its writers have ended.
  std::uint64_t closed_steps() const { return closed_steps_; }
  const std::string &why_interrupted() const { return why_interrupted_; }
  bool has_readers_awaited() const;
  std::uint32_t await_readers() const { return await_readers_; }
  bool knows_writer(Key writer) const { return by_key_.contains(writer); }
  /// Its server was started anew, and has nothing of the steps that it had ended.
  void lose_steps(Key writer, std::uint64_t ended);
  /// The first step of which some went with that server.
  std::uint64_t first_lost(std::uint32_t server) const;

  // --- steps --------------------------------------------------------------------------------------------------------
  /// What a server has of a step; of writers who are gone it does not count. An error: boxes of two servers overlap, or
  /// variables differ; the stream is interrupted then.
  Status take(const StepReport &report);
  /// Steps that are complete, counted from the stream's first.
  std::uint64_t complete() const { return complete_; }
  /// Of those that servers have, but for steps of which only constants are left.
  std::uint64_t oldest() const { return std::min(floor_, complete_); }
  /// Which steps servers have to keep, if those whom nobody has asked for may have `keep_bytes`; forgets the others.
  const Needed &settle(std::uint64_t keep_bytes, Clock::time_point now);
  /// A server has reported all that it has, as that incarnation: what others before it had is lost.
  void lose_server(std::uint32_t server, std::uint64_t incarnation);

  // --- readers ------------------------------------------------------------------------------------------------------
  /// A sink's subscription, of one rank, which is not there yet; nothing, if there is one of that name.
  void subscribe(const std::string &subscription, Clock::time_point now);
  Status seat_reader(const ReaderArgs &args, PeerId peer, Clock::time_point now);
  Group *find_group(Key reader);
  Rank *find_rank(Key reader);
  /// What to say to a reader that has ended so many steps; nothing: it has to wait.
  std::optional<NextResult> next(Key reader, std::uint64_t ended, Clock::time_point now);
  void close_reader(Key reader, std::uint64_t ended, bool unsubscribes);
  void lose_readers(const Gone &gone);
  /// Groups without a name that were silent since before `then` hold no more.
  void let_go_of_silent(Clock::time_point then);
  /// Subscriptions go on with the stream that has the name now.
  void inherit(const Account &former);
  bool has_groups() const { return !groups_.empty(); }
  const std::list<Group> &groups() const { return groups_; }
  /// Subscriptions that have come, or whose ranks have all ended more, since this was asked last.
  std::vector<const Group *> take_moved();
  /// Who holds the oldest step, for people; empty: nobody.
  std::string holder() const;

  StreamReport report() const;

  // --- what outlives the server -------------------------------------------------------------------------------------
  LoggedStream to_log(std::uint64_t made) const;
  /// Of those who write now. Null: it is none of them.
  std::optional<LoggedSeat> seat_to_log(Key writer) const;
  /// Its writers are held for dead when they are not back by `gone_at`; all steps stay until then, as nobody knows
  /// which readers there were.
  void restore(const LoggedStream &logged, Clock::time_point gone_at);
  bool expects_readers(Clock::time_point now) const { return now < readers_expected_until_; }
  void restore(const LoggedReaders &logged, Clock::time_point now);

 private:
  Writer *find_writer(Key writer);
  void count_writers();
  Status check_against(const StepState &state, const StepReport &report) const;
  void take_part(StepState &state, const StepReport &report);
  void take_late(StepReport report);
  std::size_t lost_parts() const;
  void advance();
  void tell_lost(const std::string &what, std::uint64_t first, std::uint64_t last);
  void forget_step(std::uint64_t step, const std::set<std::string> &constants = {});
  std::uint64_t next_seen(std::uint64_t step) const;
  std::uint64_t beginning(const ReaderArgs &args) const;
  NextResult describe(std::uint64_t step, Rank &rank) const;
  void add_shares(std::uint64_t number, std::uint64_t step, std::map<std::string, StepVariable> &variables) const;
  void note_complete(std::uint64_t step);
  void note_attribute(AttributeArgs attribute);
  std::uint64_t constant_at(std::string_view variable, std::uint64_t step) const;
  std::uint64_t needed() const { return std::min(complete_, held_.get()); }
  void move_to(std::uint64_t needed);
  void count_late();
  void keep_constants();
  Group *find_group_of(const ReaderArgs &args);
  Group &add_group(Group group, std::size_t size, std::uint64_t ended);
  void name_rank(Group &group, Rank &rank, Key key);
  void forget_ranks(const Group &group);
  void remove_groups_without_readers();
  template <class Change> void change(Group &group, const Change &change);
  void connect(Group &group, Rank &rank, bool is_connected);

  const Key key_;
  const std::string name_;
  const Lasting lasting_;
  const std::uint32_t servers_;
  std::vector<Writer> writers_;  ///< by rank; key 0: not there yet
  std::unordered_map<Key, std::uint32_t> by_key_;
  std::size_t absent_ = 0, open_ = 0;                     ///< writers that are not there yet; that have not closed
  std::uint64_t closed_steps_ = 0;                        ///< the least of those that have
  std::uint64_t lost_before_ = 0;                         ///< from this step on no writer's part is lost
  std::map<std::uint64_t, std::uint64_t> writer_groups_;  ///< by their first steps
  std::uint32_t await_readers_ = 0;
  std::string why_interrupted_, why_ended_;
  std::map<std::uint64_t, StepState> steps_;
  /// Steps from floor_ on are there; those before needed_, of late_bytes_, only for late readers.
  std::uint64_t complete_ = 0, floor_ = 0, needed_ = 0, late_bytes_ = 0;
  std::set<std::uint64_t> lost_;                      ///< steps from floor_ on that some server has lost
  std::map<std::uint32_t, std::uint64_t> lost_from_;  ///< by server
  Needed settled_;
  Clock::time_point readers_expected_until_{};
  std::map<std::string, std::set<std::uint64_t>, std::less<>> constants_;  ///< the steps in which they were put
  bool has_other_constants_ = false;
  std::vector<AttributeArgs> attributes_;
  std::map<std::pair<std::string, std::string>, std::size_t> attribute_at_;
  std::uint64_t attributes_changed_ = 0;
  std::map<std::string, VariableArgs, std::less<>> variables_;  ///< as of the last complete step
  std::list<Group> groups_;
  std::unordered_map<Key, std::pair<Group *, std::size_t>> readers_;
  Least held_;               ///< what each group that holds has ended
  std::uint32_t views_ = 0;  ///< ranks of views that are connected
  std::set<Group *> moved_;
};

}  // namespace streams
