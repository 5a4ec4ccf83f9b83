// SPDX-License-Identifier: BSD-3-Clause
// What a server has of the shared space: of each name some versions, of each version boxes that were put, each element
// once. Knows no requests, and waits for nothing.
#pragma once

#include <services/streams/server/shelf.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace streams {

struct SpaceVersion {
  Blocks blocks;
  std::set<Key> puts;  ///< that were carried out
};

class Space {
 public:
  explicit Space(std::uint64_t most_versions) : most_versions_(most_versions) {}

  /// Whether a box may be put: kExists, kInvalidArgument, kNotFound, as nessie::streams::Space::put() says.
  Status check_put(const SpacePutArgs &args) const;
  bool has_put(const SpacePutArgs &args) const;
  void put(const SpacePutArgs &args, std::shared_ptr<Chunk> chunk);
  /// kNotFound: the version is gone. kInvalidArgument: another type, or number of dimensions.
  Status check_get(const SpaceGetArgs &args) const;
  /// Elements of the box that were put.
  std::int64_t covered(const SpaceGetArgs &args) const;
  /// Those that meet it.
  std::vector<Block> blocks(const SpaceGetArgs &args) const;
  /// kNotFound: nothing was put under that name.
  Result<std::uint64_t> newest(std::string_view name) const;

 private:
  struct Entry {
    ElementType type{};
    std::size_t dimensions = 0;
    std::map<std::uint64_t, SpaceVersion> versions;
    std::uint64_t gone_before = 0;
  };
  const Entry *find(std::string_view name) const;
  std::uint64_t most_versions_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace streams
