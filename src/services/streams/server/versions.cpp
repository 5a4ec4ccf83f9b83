// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/versions.hpp>

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

const Space::Entry *Space::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

bool Space::has_put(const SpacePutArgs &args) const {
  const auto *entry = find(args.name);
  if (entry == nullptr) return false;
  const auto version = entry->versions.find(args.version_number);
  return version != entry->versions.end() && version->second.puts.contains(args.put);
}

Status Space::check_put(const SpacePutArgs &args) const {
  if (auto status = check_name("array", args.name); !status.ok()) return status;
  if (size_of(args.type) == 0 || !is_box(args.box))
    return Error{Code::kInvalidArgument, "the type does not exist, or the box has a negative start or count"};
  const auto *entry = find(args.name);
  if (entry == nullptr) return {};
  if (auto status = check_type(args.name, entry->type, entry->dimensions, args.type, args.box.count.size());
      !status.ok())
    return status;
  if (args.version_number < entry->gone_before) return is_gone(args.name, args.version_number);
  const auto version = entry->versions.find(args.version_number);
  if (version == entry->versions.end()) return {};
  if (elements_of(args.box) > 0 && version->second.blocks.find(args.box) != nullptr)
    return Error{Code::kExists, fmt::format("of {} some elements were put already in version {}",
                                            describe(args.name, args.box), args.version_number)};
  return {};
}

void Space::put(const SpacePutArgs &args, std::shared_ptr<Chunk> chunk) {
  auto &entry = entries_[args.name];
  entry.type = args.type;
  entry.dimensions = args.box.count.size();
  auto &version = entry.versions[args.version_number];
  version.puts.insert(args.put);
  if (elements_of(args.box) > 0) version.blocks.add({args.box, std::move(chunk), 0, 0});
  while (entry.versions.size() > most_versions_) {
    entry.gone_before = entry.versions.begin()->first + 1;
    entry.versions.erase(entry.versions.begin());
  }
}

Status Space::check_get(const SpaceGetArgs &args) const {
  if (size_of(args.type) == 0 || !is_box(args.box))
    return Error{Code::kInvalidArgument, "the type does not exist, or the box has a negative start or count"};
  const auto *entry = find(args.name);
  if (entry == nullptr) return check_name("array", args.name);
  if (auto status = check_type(args.name, entry->type, entry->dimensions, args.type, args.box.count.size());
      !status.ok())
    return status;
  if (args.version_number < entry->gone_before) return is_gone(args.name, args.version_number);
  return {};
}

std::vector<Block> Space::blocks(const SpaceGetArgs &args) const {
  const auto *entry = find(args.name);
  if (entry == nullptr) return {};
  const auto version = entry->versions.find(args.version_number);
  return version == entry->versions.end() ? std::vector<Block>() : version->second.blocks.in(args.box);
}

std::int64_t Space::covered(const SpaceGetArgs &args) const {
  const auto *entry = find(args.name);
  if (entry == nullptr) return 0;
  const auto version = entry->versions.find(args.version_number);
  if (version == entry->versions.end()) return 0;
  std::int64_t elements = 0;
  for (const auto &block : version->second.blocks.in(args.box))
    elements += elements_of(*intersection(block.box, args.box));
  return elements;
}

Result<std::uint64_t> Space::newest(std::string_view name) const {
  const auto *entry = find(name);
  if (entry != nullptr && !entry->versions.empty()) return entry->versions.rbegin()->first;
  return Error{Code::kNotFound, fmt::format("nothing was put under the name '{}'", name)};
}

}  // namespace streams
