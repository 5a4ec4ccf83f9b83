// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/box_index.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace streams {

namespace {

constexpr std::size_t kMostFresh = 16;

/// What of a range goes into its first half.
std::size_t half_of(std::size_t count) { return count / 2; }

}  // namespace

// --- looking up -------------------------------------------------------------------------------------------------------

bool BoxIndex::meets(const Corners &corners, std::size_t i, const Box &box) const {
  ++comparisons_;
  const auto *first = corners.data() + i * 2 * dimensions_, *behind = first + dimensions_;
  for (std::size_t d = 0; d < dimensions_; ++d)
    if (std::min(behind[d], box.start[d] + box.count[d]) <= std::max(first[d], box.start[d])) return false;
  return true;
}

bool BoxIndex::visit(const Tree &tree, Range range, const Box &box, const Visit &each) const {
  if (range.count == 1) return !meets(tree.leaves, range.first, box) || each(tree, range.first);
  if (!meets(tree.inner, range.node, box)) return true;
  const auto half = half_of(range.count);
  return visit(tree, {range.node + 1, range.first, half}, box, each) &&
         visit(tree, {range.node + half, range.first + half, range.count - half}, box, each);
}

bool BoxIndex::visit_all(const Box &box, const Visit &each) const {
  for (const auto &tree : trees_)
    if (!visit(tree, {0, 0, tree.numbers.size()}, box, each)) return false;
  for (std::size_t leaf = 0; leaf < fresh_.numbers.size(); ++leaf)
    if (meets(fresh_.leaves, leaf, box) && !each(fresh_, leaf)) return false;
  return true;
}

std::optional<BoxIndex::Found> BoxIndex::find(const Box &box) const {
  std::optional<Found> found;
  visit_all(box, [&](const Tree &tree, std::size_t leaf) {
    const auto *first = tree.leaves.data() + leaf * 2 * dimensions_;
    found = {tree.numbers[leaf], {{first, first + dimensions_}, {}}};
    for (std::size_t d = 0; d < dimensions_; ++d) found->box.count.push_back(first[dimensions_ + d] - first[d]);
    return false;
  });
  return found;
}

std::vector<std::size_t> BoxIndex::all(const Box &box) const {
  std::vector<std::size_t> numbers;
  visit_all(box, [&](const Tree &tree, std::size_t leaf) {
    numbers.push_back(tree.numbers[leaf]);
    return true;
  });
  std::ranges::sort(numbers);
  return numbers;
}

// --- adding -----------------------------------------------------------------------------------------------------------

void BoxIndex::add(const Box &box) {
  dimensions_ = box.count.size();
  fresh_.numbers.push_back(size_++);
  fresh_.leaves.insert(fresh_.leaves.end(), box.start.begin(), box.start.end());
  for (std::size_t d = 0; d < dimensions_; ++d) fresh_.leaves.push_back(box.start[d] + box.count[d]);
  if (fresh_.numbers.size() == kMostFresh) plant();
}

/// A tree of the fresh boxes, and of those in trees that are not larger.
void BoxIndex::plant() {
  auto gathered = std::exchange(fresh_, {});
  while (!trees_.empty() && trees_.back().numbers.size() <= gathered.numbers.size()) {
    const auto &last = trees_.back();
    gathered.numbers.insert(gathered.numbers.end(), last.numbers.begin(), last.numbers.end());
    gathered.leaves.insert(gathered.leaves.end(), last.leaves.begin(), last.leaves.end());
    trees_.pop_back();
  }
  const auto count = gathered.numbers.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  gathered.inner.resize((count - 1) * 2 * dimensions_);
  divide(gathered, order, {0, 0, count});
  auto &tree = trees_.emplace_back();
  tree.inner = std::move(gathered.inner);
  for (const auto i : order) {
    tree.numbers.push_back(gathered.numbers[i]);
    const auto first = gathered.leaves.begin() + static_cast<std::ptrdiff_t>(i * 2 * dimensions_);
    tree.leaves.insert(tree.leaves.end(), first, first + static_cast<std::ptrdiff_t>(2 * dimensions_));
  }
}

std::size_t BoxIndex::widest(const std::int64_t *node) const {
  std::size_t widest = 0;
  for (std::size_t d = 1; d < dimensions_; ++d)
    if (node[dimensions_ + d] - node[d] > node[dimensions_ + widest] - node[widest]) widest = d;
  return widest;
}

/// Has a node around the range's leaves, and halves them where they are the furthest apart.
void BoxIndex::divide(Tree &tree, std::vector<std::size_t> &order, Range range) const {
  if (range.count < 2 || dimensions_ == 0) return;
  auto *node = tree.inner.data() + range.node * 2 * dimensions_;
  const auto leaf = [&](std::size_t i) { return tree.leaves.data() + i * 2 * dimensions_; };
  std::copy_n(leaf(order[range.first]), 2 * dimensions_, node);
  for (auto i = range.first; i < range.first + range.count; ++i)
    for (std::size_t d = 0; d < dimensions_; ++d) {
      node[d] = std::min(node[d], leaf(order[i])[d]);
      node[dimensions_ + d] = std::max(node[dimensions_ + d], leaf(order[i])[dimensions_ + d]);
    }
  const auto half = half_of(range.count), cut = widest(node);
  const auto begin = order.begin() + static_cast<std::ptrdiff_t>(range.first);
  std::nth_element(begin, begin + static_cast<std::ptrdiff_t>(half), begin + static_cast<std::ptrdiff_t>(range.count),
                   [&](std::size_t a, std::size_t b) { return leaf(a)[cut] < leaf(b)[cut]; });
  divide(tree, order, {range.node + 1, range.first, half});
  divide(tree, order, {range.node + half, range.first + half, range.count - half});
}

}  // namespace streams
