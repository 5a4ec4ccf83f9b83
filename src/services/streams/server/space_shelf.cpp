// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/server/space_shelf.hpp>

namespace streams {

const SpaceShelf::Version *SpaceShelf::find(std::string_view name, std::uint64_t version) const {
  const auto named = names_.find(name);
  if (named == names_.end()) return nullptr;
  const auto found = named->second.find(version);
  return found == named->second.end() ? nullptr : &found->second;
}

bool SpaceShelf::has(const SpacePutArgs &args) const {
  const auto *version = find(args.name, args.version_number);
  return version != nullptr && version->puts.contains(args.put);
}

void SpaceShelf::put(const SpacePutArgs &args, std::shared_ptr<Chunk> chunk) {
  auto &version = names_[args.name][args.version_number];
  version.type = args.type;
  version.puts.insert(args.put);
  if (elements_of(args.box) == 0) return;
  version.blocks.add({args.box, std::move(chunk), 0, 0});
  version.put_by.push_back(args.put);
}

std::vector<Block> SpaceShelf::blocks(const SpaceGetArgs &args) const {
  const auto *version = find(args.name, args.version_number);
  return version == nullptr ? std::vector<Block>() : version->blocks.in(args.box);
}

void SpaceShelf::drop_before(std::string_view name, std::uint64_t version) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  found->second.erase(found->second.begin(), found->second.lower_bound(version));
  if (found->second.empty()) names_.erase(found);
}

std::vector<SpaceNote> SpaceShelf::notes(std::uint32_t home, std::uint32_t servers) const {
  std::vector<SpaceNote> notes;
  for (const auto &[name, versions] : names_) {
    if (home_of(name, servers) != home) continue;
    for (const auto &[number, version] : versions)
      for (std::size_t i = 0; i < version.put_by.size(); ++i)
        notes.push_back({name, number, version.type, version.blocks.all()[i].box, version.put_by[i], 0, 0});
  }
  return notes;
}

}  // namespace streams
