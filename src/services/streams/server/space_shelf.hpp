// SPDX-License-Identifier: BSD-3-Clause
// What a server has of the shared space: boxes of arrays, by name and version. Knows no requests, and waits for
// nothing.
#pragma once

#include <services/streams/server/shelf.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace streams {

class SpaceShelf {
 public:
  /// Whether that put was carried out.
  bool has(const SpacePutArgs &args) const;
  /// The name's account has agreed.
  void put(const SpacePutArgs &args, std::shared_ptr<Chunk> chunk);
  /// Those that meet the box.
  std::vector<Block> blocks(const SpaceGetArgs &args) const;
  /// Versions of the name before that one go.
  void drop_before(std::string_view name, std::uint64_t version);
  bool is_gone(std::string_view name, std::uint64_t version) const;
  /// All that is here, as accounts of names are told of it: of those that `home` keeps, of `servers`.
  std::vector<SpaceNote> notes(std::uint32_t home, std::uint32_t servers) const;
  /// What its chunks take.
  const std::shared_ptr<Tally> &tally() const { return tally_; }

 private:
  struct Version {
    ElementType type{};
    Blocks blocks;
    std::vector<Key> put_by;  ///< each block
    std::set<Key> puts;       ///< also those without elements
    /// Of what is here all is of that type, and has as many dimensions.
    bool fits(ElementType wanted, const Box &box) const {
      return blocks.all().empty() || (type == wanted && blocks.all().front().box.count.size() == box.count.size());
    }
  };
  struct Named {
    std::map<std::uint64_t, Version> versions;
    std::uint64_t gone_before = 0;
  };
  const Version *find(std::string_view name, std::uint64_t version) const;
  std::shared_ptr<Tally> tally_ = std::make_shared<Tally>();
  std::map<std::string, Named, std::less<>> names_;
};

}  // namespace streams
