// SPDX-License-Identifier: BSD-3-Clause
// Of names in the shared space, which versions there are, and which server has which boxes of them: each name is one
// server's account. Knows no requests, and waits for nothing.
#pragma once

#include <services/streams/box_index.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace streams {

class SpaceAccount {
 public:
  explicit SpaceAccount(std::uint64_t most_versions) : most_versions_(most_versions) {}

  /// Whether a server may keep the box: kExists, kInvalidArgument, kNotFound, as nessie::streams::Space::put() says.
  Status check(const SpaceNote &note) const;
  /// It does; it may be told again. Errors as check(): nothing has changed then.
  Status take(const SpaceNote &note);
  /// kNotFound: the version is gone. kInvalidArgument: another type, or number of dimensions.
  Status check_get(const SpaceGetArgs &args) const;
  struct Cover {
    std::int64_t elements = 0;         ///< of the box that were put, and are there
    std::int64_t lost = 0;             ///< that were put, and are lost with their server
    std::vector<SpaceHolder> holders;  ///< who has some, in order
  };
  Cover cover(const SpaceGetArgs &args) const;
  /// kNotFound: nothing was put under that name.
  Result<std::uint64_t> newest(std::string_view name) const;
  /// The first version of the name that stays.
  std::uint64_t oldest(std::string_view name) const;
  /// A server has nothing any more of what it had.
  void lose(std::uint32_t server);

 private:
  struct Held {
    Box box;
    Key put = 0;
    SpaceHolder holder;
    bool is_lost = false;
  };
  struct Version {
    BoxIndex index;
    std::vector<Held> boxes;
    std::map<Key, std::size_t> puts;
  };
  struct Entry {
    ElementType type{};
    std::size_t dimensions = 0;
    std::map<std::uint64_t, Version> versions;
    std::uint64_t gone_before = 0;
  };
  const Entry *find(std::string_view name) const;
  static void add(Version &version, const SpaceNote &note);
  static std::int64_t covered(const Version &version, const Box &box);
  std::uint64_t most_versions_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace streams
