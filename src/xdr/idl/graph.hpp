// SPDX-License-Identifier: BSD-3-Clause
// How the types of an interface hang together: what a generator asks, whatever its language.
#pragma once

#include "xdr/idl/components.hpp"
#include "xdr/idl/model.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace xdr::idl {

class TypeGraph {
 public:
  /// `interface` has been checked, and outlives the graph.
  explicit TypeGraph(const Interface &interface);

  bool contains(const std::string &type) const { return types_.contains(type); }
  const Definition &at(const std::string &type) const { return *types_.at(type); }
  /// Its values may hold others of their own kind, at any depth.
  bool is_recursive(const std::string &type) const { return components_.at(type).is_cycle; }
  /// Values of either may hold some of the other, at any depth.
  bool hold_each_other(const std::string &one, const std::string &other) const;
  /// Optional, and of a type that is recursive: it has to lie apart, wherever that is.
  bool is_boxed(const Declaration &declaration) const;
  /// Its values may hold some that are boxed, at any depth.
  bool holds_boxes(const std::string &type) const { return holds_boxes_[components_.at(type).number]; }
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
  void find_cycles();
  void find_boxes();
  const Type &find_behind(const Type &type);
  std::uint64_t least_bytes(const Type &type) const;
  void measure(const std::string &type);
  std::uint64_t measured(const Definition &definition);

  const Interface &interface_;
  std::map<std::string, const Definition *> types_;
  std::map<std::string, Component> components_;
  std::vector<bool> holds_boxes_;               ///< by the components' numbers
  std::map<std::string, const Type *> behind_;  ///< plain typedefs
  std::map<std::string, std::uint64_t> least_bytes_;
};

}  // namespace xdr::idl
