// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/components.hpp"

#include <algorithm>

namespace xdr::idl {
namespace {

class Search {
 public:
  explicit Search(const Edges &edges) : edges_(edges) {}

  std::map<std::string, Component> run() {
    for (const auto &[name, successors] : edges_)
      if (!visits_.contains(name)) visit(name, successors);
    return std::move(found_);
  }

 private:
  struct Visit {
    std::size_t order = 0;   ///< in which it began
    std::size_t lowest = 0;  ///< of what it leads to and is on the path still
    bool is_open = true;     ///< its component is not known yet
  };

  void visit(const std::string &name, const std::vector<std::string> &successors) {
    auto &mine = visits_[name];  // a map's elements stay where they are
    mine.order = mine.lowest = visits_.size();
    open_.push_back(name);
    for (const auto &successor : successors) {
      const auto known = visits_.find(successor);
      if (known == visits_.end()) {
        visit(successor, edges_.at(successor));
        mine.lowest = std::min(mine.lowest, visits_.at(successor).lowest);
      } else if (known->second.is_open) {
        mine.lowest = std::min(mine.lowest, known->second.order);
      }
    }
    if (mine.lowest == mine.order) close(name, successors);
  }
  /// What has been opened since `first` is one component.
  void close(const std::string &first, const std::vector<std::string> &successors) {
    const bool is_cycle = open_.back() != first || std::ranges::find(successors, first) != successors.end();
    for (bool is_last = false; !is_last;) {
      const auto name = std::move(open_.back());
      open_.pop_back();
      is_last = name == first;
      visits_.at(name).is_open = false;
      found_[name] = {components_, is_cycle};
    }
    ++components_;
  }

  const Edges &edges_;
  std::map<std::string, Visit> visits_;
  std::vector<std::string> open_;
  std::map<std::string, Component> found_;
  std::size_t components_ = 0;
};

}  // namespace

std::map<std::string, Component> components_of(const Edges &edges) { return Search(edges).run(); }

}  // namespace xdr::idl
