// SPDX-License-Identifier: BSD-3-Clause
// Who is announced under which name, for how long, and what has changed since when. Knows no clock and no network:
// times are told to it.
#pragma once

#include <base/clock.hpp>
#include <services/discovery/directory/instance.hpp>

#include <nssi/nssi.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace directory {

using nessie::Clock;
using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nssi::PeerId;

struct RegistryLimits {
  std::size_t entries = 16384, entries_per_caller = 256;
  std::chrono::milliseconds shortest_lease{100}, longest_lease{3'600'000};
  /// Names without instances whose last change is remembered, so that who watches them is told once, not more often.
  std::size_t vanished_names = 4096;
};

class Registry {
 public:
  using Time = Clock::time_point;

  /// `changed` is called with each name whose instances are others than before, after the change.
  Registry(RegistryLimits limits, std::function<void(const std::string &)> changed)
      : limits_(limits), changed_(std::move(changed)) {}

  /// Makes an entry, or renews the one with that key, which becomes `caller`'s; its lease is what was asked for, within
  /// the limits. kInvalidArgument as check(). kNoMemory: the caller, or all together, have as many as they may.
  Result<grant> announce(PeerId caller, const announcement &announcement, Time now);
  /// False: there is none.
  bool withdraw(const secret &key);
  /// The caller is gone for good, and with it what it has announced and nobody else has renewed.
  void lose(PeerId caller);
  /// Drops what was not renewed in time.
  void expire(Time now);
  /// When to call expire() next; never, if there is nothing.
  Deadline next_expiry() const;

  /// In the order of names; of one name, the oldest first.
  std::vector<instance> list(const query &query) const;
  /// How many changes there were.
  std::uint64_t generation() const { return generation_; }
  /// True if something that `query` asks for has changed since; also, now and then, if not.
  bool has_changed(const query &query, std::uint64_t since) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    instance what;
    PeerId caller;
    std::uint64_t number = 0;  ///< in the order in which they were announced first
    std::multimap<Time, secret>::iterator expiry;
  };
  struct Name {
    std::uint64_t changed_at = 0;
    std::map<std::uint64_t, const Entry *> instances;
  };
  using Entries = std::map<secret, Entry>;

  Status check_room(PeerId caller) const;
  Entries::iterator add(PeerId caller, const announcement &announcement);
  void change(Entry &entry, const instance &what);
  void remove(Entries::iterator at);
  void give_to(Entry &entry, PeerId caller);
  void take_from_caller(const Entry &entry);
  void show(const Entry &entry);
  void hide(const Entry &entry);
  void note_change(const std::string &name);
  void forget_vanished();

  RegistryLimits limits_;
  std::function<void(const std::string &)> changed_;
  Entries entries_;
  std::map<std::string, Name, std::less<>> names_;
  std::unordered_map<std::uint64_t, std::size_t> entries_of_;  ///< by caller
  std::multimap<Time, secret> expiries_;
  std::map<std::uint64_t, std::string> vanished_;  ///< by the generation in which they vanished
  std::uint64_t generation_ = 0, numbers_ = 0;
  std::uint64_t forgotten_at_ = 0;  ///< of the names that are in no map any more, the last change
};

}  // namespace directory
