// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/space_shelf.hpp>

#include <algorithm>

namespace streams {

const SpaceShelf::Version *SpaceShelf::find(std::string_view name, std::uint64_t version) const {
  const auto named = names_.find(name);
  if (named == names_.end()) return nullptr;
  const auto found = named->second.versions.find(version);
  return found == named->second.versions.end() ? nullptr : &found->second;
}

bool SpaceShelf::has(const SpacePutArgs &args) const {
  const auto *version = find(args.name, args.version_number);
  return version != nullptr && version->puts.contains(args.put);
}

void SpaceShelf::put(const SpacePutArgs &args, std::shared_ptr<Chunk> chunk) {
  auto &named = names_[args.name];
  if (args.version_number < named.gone_before) return;  // newer ones have come meanwhile
  auto &version = named.versions[args.version_number];
  if (!version.fits(args.type, args.box)) return;  // its account was started anew, and has not heard of these yet
  version.type = args.type;
  version.puts.insert(args.put);
  if (elements_of(args.box) == 0) return;
  version.blocks.add({args.box, std::move(chunk), 0, 0});
  version.put_by.push_back(args.put);
}

std::vector<Block> SpaceShelf::blocks(const SpaceGetArgs &args) const {
  const auto *version = find(args.name, args.version_number);
  if (version == nullptr || !version->fits(args.type, args.box)) return {};
  return version->blocks.in(args.box);
}

void SpaceShelf::drop_before(std::string_view name, std::uint64_t version) {
  auto &named = names_[std::string(name)];
  named.gone_before = std::max(named.gone_before, version);
  named.versions.erase(named.versions.begin(), named.versions.lower_bound(version));
}

bool SpaceShelf::is_gone(std::string_view name, std::uint64_t version) const {
  const auto found = names_.find(name);
  return found != names_.end() && version < found->second.gone_before;
}

std::vector<SpaceNote> SpaceShelf::notes(std::uint32_t home, std::uint32_t servers) const {
  std::vector<SpaceNote> notes;
  for (const auto &[name, named] : names_) {
    if (home_of(name, servers) != home) continue;
    for (const auto &[number, version] : named.versions)
      for (std::size_t i = 0; i < version.put_by.size(); ++i)
        notes.push_back({name, number, version.type, version.blocks.all()[i].box, version.put_by[i], 0, 0});
  }
  return notes;
}

}  // namespace streams
