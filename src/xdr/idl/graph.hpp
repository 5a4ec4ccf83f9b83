// SPDX-License-Identifier: BSD-3-Clause
// How the types of an interface hang together: what a generator asks, whatever its language.
#pragma once

#include "xdr/idl/model.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace xdr::idl {

class TypeGraph {
 public:
  /// `interface` has been checked, and outlives the graph.
  explicit TypeGraph(const Interface &interface);

  bool contains(const std::string &type) const { return types_.contains(type); }
  const Definition &at(const std::string &type) const { return *types_.at(type); }
  /// The types whose values one's values may hold, at any depth.
  const std::set<std::string> &reached(const std::string &type) const { return reached_.at(type); }
  /// Its values may hold others of their own kind.
  bool is_recursive(const std::string &type) const { return reached(type).contains(type); }
  /// What is behind plain typedefs.
  const Type &behind(const Type &type) const;
  /// A struct whose last field is optional, and another one of the same struct: a linked list.
  bool is_chain(const Struct &it) const;
  /// The bytes that the shortest value of a declared type has when it is encoded; 2^32 - 1 for more than that.
  std::uint64_t least_bytes(const Declaration &declaration) const;

  /// Recursive structs and unions: to be declared before everything else.
  std::vector<const Definition *> declared_first() const;
  /// All definitions, as in the file, but what one needs goes before it. Of what is declared first only values need a
  /// definition, not what is optional and no array<>.
  std::vector<const Definition *> in_order() const;

 private:
  class Order;
  void reach(const std::string &type, std::set<std::string> &reached) const;
  std::uint64_t least_bytes(const Type &type) const;
  void measure(const std::string &type);
  std::uint64_t measured(const Definition &definition);

  const Interface &interface_;
  std::map<std::string, const Definition *> types_;
  std::map<std::string, std::set<std::string>> reached_;
  std::map<std::string, std::uint64_t> least_bytes_;
};

}  // namespace xdr::idl
