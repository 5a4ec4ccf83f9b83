// SPDX-License-Identifier: BSD-3-Clause
// Which of many things, that lead to each other, lead back to themselves.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace xdr::idl {

/// What leads to each other is one component. What a component leads to has a smaller number than itself.
struct Component {
  std::size_t number = 0;
  bool is_cycle = false;  ///< what is in it leads to itself, if only by others
};

/// From each name to those that it leads to, which are keys, too.
using Edges = std::map<std::string, std::vector<std::string>>;

/// The strongly connected components (R. Tarjan, Depth-first search and linear graph algorithms, 1972, section 4).
/// Takes time and memory as the edges are many, and recurses as deep as a path is long.
std::map<std::string, Component> components_of(const Edges &edges);

}  // namespace xdr::idl
