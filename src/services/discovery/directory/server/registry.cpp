// SPDX-License-Identifier: BSD-3-Clause
#include "services/discovery/directory/server/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace directory {

Result<grant> Registry::announce(PeerId caller, const announcement &announcement, Time now) {
  if (auto status = check(announcement.what); !status.ok()) return status.error();
  auto at = entries_.find(announcement.key);
  const bool was_known = at != entries_.end();
  if (!was_known) {
    if (auto status = check_room(caller); !status.ok()) return status.error();
    at = add(caller, announcement);
  }
  auto &entry = at->second;
  if (entry.caller != caller) give_to(entry, caller);
  if (entry.what != announcement.what) change(entry, announcement.what);
  const auto lease =
      std::clamp(std::chrono::milliseconds(announcement.lease_ms), limits_.shortest_lease, limits_.longest_lease);
  expiries_.erase(entry.expiry);
  entry.expiry = expiries_.emplace(now + lease, at->first);
  return grant{static_cast<std::uint32_t>(lease.count()), was_known};
}

Status Registry::check_room(PeerId caller) const {
  const auto has = entries_of_.find(caller.value);
  if (has != entries_of_.end() && has->second >= limits_.entries_per_caller)
    return Error{Code::kNoMemory, fmt::format("a process may announce {} instances: announce fewer, or raise "
                                              "directory.entries_per_caller where the directory runs",
                                              limits_.entries_per_caller)};
  if (entries_.size() < limits_.entries) return {};
  return Error{Code::kNoMemory, fmt::format("the directory is full, it has {} instances: raise directory.entries where "
                                            "it runs",
                                            limits_.entries)};
}

Registry::Entries::iterator Registry::add(PeerId caller, const announcement &announcement) {
  const auto at = entries_.emplace(announcement.key, Entry{announcement.what, caller, ++numbers_, {}}).first;
  at->second.expiry = expiries_.emplace(Time::max(), at->first);
  ++entries_of_[caller.value];
  show(at->second);
  note_change(at->second.what.name);
  return at;
}

void Registry::change(Entry &entry, const instance &what) {
  const std::string old_name = entry.what.name;
  hide(entry);
  entry.what = what;
  show(entry);
  note_change(what.name);
  if (old_name != static_cast<const std::string &>(what.name)) note_change(old_name);
}

void Registry::remove(Entries::iterator at) {
  const std::string name = at->second.what.name;
  hide(at->second);
  take_from_caller(at->second);
  expiries_.erase(at->second.expiry);
  entries_.erase(at);
  note_change(name);
}

void Registry::give_to(Entry &entry, PeerId caller) {
  take_from_caller(entry);
  entry.caller = caller;
  ++entries_of_[caller.value];
}

void Registry::take_from_caller(const Entry &entry) {
  const auto has = entries_of_.find(entry.caller.value);
  if (--has->second == 0) entries_of_.erase(has);
}

void Registry::show(const Entry &entry) { names_[entry.what.name].instances.emplace(entry.number, &entry); }
void Registry::hide(const Entry &entry) { names_[entry.what.name].instances.erase(entry.number); }

bool Registry::withdraw(const secret &key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return false;
  remove(at);
  return true;
}

void Registry::lose(PeerId caller) {
  if (!entries_of_.contains(caller.value)) return;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    if (at->second.caller == caller) remove(at);
    at = next;
  }
}

void Registry::expire(Time now) {
  while (!expiries_.empty() && expiries_.begin()->first <= now) remove(entries_.find(expiries_.begin()->second));
}

Deadline Registry::next_expiry() const {
  return expiries_.empty() ? Deadline::never() : Deadline::at(expiries_.begin()->first);
}

void Registry::note_change(const std::string &name) {
  auto &changed = names_[name];
  vanished_.erase(changed.changed_at);
  changed.changed_at = ++generation_;
  if (changed.instances.empty()) vanished_.emplace(generation_, name);
  forget_vanished();
  changed_(name);
}

void Registry::forget_vanished() {
  while (vanished_.size() > limits_.vanished_names) {
    const auto oldest = vanished_.begin();
    forgotten_at_ = oldest->first;
    names_.erase(oldest->second);
    vanished_.erase(oldest);
  }
}

std::vector<instance> Registry::list(const query &query) const {
  std::vector<instance> all;
  for (auto at = names_.lower_bound(query.text); at != names_.end() && matches(query, at->first); ++at)
    for (const auto &[number, entry] : at->second.instances) all.push_back(entry->what);
  return all;
}

bool Registry::has_changed(const query &query, std::uint64_t since) const {
  if (query.is_prefix && query.text.empty()) return generation_ > since;
  bool is_known = false;
  for (auto at = names_.lower_bound(query.text); at != names_.end() && matches(query, at->first); ++at) {
    if (at->second.changed_at > since) return true;
    is_known = true;
  }
  return (query.is_prefix || !is_known) && forgotten_at_ > since;
}

}  // namespace directory
