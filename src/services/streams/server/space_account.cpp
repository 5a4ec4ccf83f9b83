// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/space_account.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace streams {

namespace {

Error is_gone(std::string_view name, std::uint64_t version) {
  return {Code::kNotFound,
          fmt::format("version {} of '{}' is gone: newer ones took its place (streams.space_versions)", version, name)};
}

Status check_type(std::string_view name, ElementType type, std::size_t dimensions, ElementType wanted,
                  std::size_t wanted_dimensions) {
  if (type == wanted && dimensions == wanted_dimensions) return {};
  return Error{Code::kInvalidArgument, fmt::format("'{}' has type {} and {} dimensions, and not {} and {}", name,
                                                   name_of(type), dimensions, name_of(wanted), wanted_dimensions)};
}

}  // namespace

const SpaceAccount::Entry *SpaceAccount::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

// --- puts -------------------------------------------------------------------------------------------------------------

Status SpaceAccount::check(const SpaceNote &note) const {
  const auto *entry = find(note.name);
  if (entry == nullptr) return {};
  if (auto status = check_type(note.name, entry->type, entry->dimensions, note.type, note.box.count.size());
      !status.ok())
    return status;
  if (note.version_number < entry->gone_before) return is_gone(note.name, note.version_number);
  const auto found = entry->versions.find(note.version_number);
  if (found == entry->versions.end() || elements_of(note.box) == 0) return {};
  const auto &version = found->second;
  for (const auto number : version.index.all(note.box))
    if (const auto &other = version.boxes[number]; !other.is_lost && other.put != note.put)
      return Error{Code::kExists, fmt::format("of {} some elements were put already in version {}",
                                              describe(note.name, note.box), note.version_number)};
  return {};
}

Status SpaceAccount::take(const SpaceNote &note) {
  if (auto status = check(note); !status.ok()) return status;
  auto &entry = entries_[note.name];
  entry.type = note.type;
  entry.dimensions = note.box.count.size();
  add(entry.versions[note.version_number], note);
  while (entry.versions.size() > most_versions_) {
    entry.gone_before = entry.versions.begin()->first + 1;
    entry.versions.erase(entry.versions.begin());
  }
  return {};
}

void SpaceAccount::add(Version &version, const SpaceNote &note) {
  if (elements_of(note.box) == 0) return;
  const Held held{note.box, note.put, {note.server, note.incarnation, 0}, false};
  const auto [at, is_new] = version.puts.try_emplace(note.put, version.boxes.size());
  if (!is_new) return (void)(version.boxes[at->second] = held);
  version.boxes.push_back(held);
  version.index.add(note.box);
}

void SpaceAccount::lose(std::uint32_t server) {
  for (auto &[name, entry] : entries_)
    for (auto &[number, version] : entry.versions)
      for (auto &held : version.boxes)
        if (held.holder.server == server) held.is_lost = true;
}

// --- gets -------------------------------------------------------------------------------------------------------------

Status SpaceAccount::check_get(const SpaceGetArgs &args) const {
  const auto *entry = find(args.name);
  if (entry == nullptr) return {};
  if (auto status = check_type(args.name, entry->type, entry->dimensions, args.type, args.box.count.size());
      !status.ok())
    return status;
  return args.version_number < entry->gone_before ? Status(is_gone(args.name, args.version_number)) : Status();
}

/// Elements that are there.
std::int64_t SpaceAccount::covered(const Version &version, const Box &box) {
  std::int64_t elements = 0;
  for (const auto number : version.index.all(box))
    if (const auto &held = version.boxes[number]; !held.is_lost) elements += elements_of(*intersection(held.box, box));
  return elements;
}

SpaceAccount::Cover SpaceAccount::cover(const SpaceGetArgs &args) const {
  Cover cover;
  const auto *entry = find(args.name);
  if (entry == nullptr) return cover;
  const auto found = entry->versions.find(args.version_number);
  if (found == entry->versions.end()) return cover;
  std::map<std::uint32_t, SpaceHolder> holders;
  for (const auto number : found->second.index.all(args.box)) {
    const auto &held = found->second.boxes[number];
    const auto part = *intersection(held.box, args.box);
    const auto elements = elements_of(part);
    if (held.is_lost) {
      cover.lost += elements - covered(found->second, part);
      continue;
    }
    cover.elements += elements;
    auto &holder = holders.try_emplace(held.holder.server, held.holder).first->second;
    holder.elements += static_cast<std::uint64_t>(elements);
  }
  for (const auto &[server, holder] : holders) cover.holders.push_back(holder);
  return cover;
}

Result<std::uint64_t> SpaceAccount::newest(std::string_view name) const {
  const auto *entry = find(name);
  if (entry != nullptr && !entry->versions.empty()) return entry->versions.rbegin()->first;
  return Error{Code::kNotFound, fmt::format("nothing was put under the name '{}'", name)};
}

std::uint64_t SpaceAccount::oldest(std::string_view name) const {
  const auto *entry = find(name);
  return entry == nullptr ? 0 : entry->gone_before;
}

}  // namespace streams
