// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/graph.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

constexpr std::uint64_t kMostBytes = std::numeric_limits<std::uint32_t>::max();

bool is_value(const Declaration &declaration) {
  return declaration.shape == Shape::kPlain || declaration.shape == Shape::kFixed;
}
bool is_typedef(const Definition &definition) { return std::holds_alternative<Typedef>(definition); }

}  // namespace

TypeGraph::TypeGraph(const Interface &interface) : interface_(interface) {
  for (const auto &definition : interface.definitions) {
    const auto name = type_name_of(definition);
    if (!name.empty()) types_[name] = &definition;
  }
  find_cycles();
  find_boxes();
  for (const auto &[name, definition] : types_) {
    find_behind({Kind::kNamed, name, {}});
    measure(name);
  }
}

void TypeGraph::find_cycles() {
  Edges edges;
  for (const auto &[name, definition] : types_) {
    auto &successors = edges[name];
    for (const auto *member : members_of(*definition))
      if (member->type.kind == Kind::kNamed) successors.push_back(member->type.name);
  }
  components_ = components_of(edges);
}

/// What a component holds is known before the component is come to.
void TypeGraph::find_boxes() {
  std::vector<std::pair<std::size_t, const Definition *>> by_number;
  for (const auto &[name, definition] : types_) by_number.emplace_back(components_.at(name).number, definition);
  std::ranges::sort(by_number);
  holds_boxes_.resize(by_number.size());
  for (const auto &[number, definition] : by_number)
    for (const auto *member : members_of(*definition))
      if (member->type.kind == Kind::kNamed && (is_boxed(*member) || holds_boxes(member->type.name)))
        holds_boxes_[number] = true;
}

bool TypeGraph::is_boxed(const Declaration &declaration) const {
  return declaration.shape == Shape::kOptional && declaration.type.kind == Kind::kNamed &&
         is_recursive(declaration.type.name);
}

bool TypeGraph::hold_each_other(const std::string &one, const std::string &other) const {
  return is_recursive(one) && components_.at(one).number == components_.at(other).number;
}

/// Once each: a typedef's may be found by way of another one's.
const Type &TypeGraph::find_behind(const Type &type) {
  const auto *it = type.kind == Kind::kNamed ? std::get_if<Typedef>(&at(type.name)) : nullptr;
  if (it == nullptr || it->declaration.shape != Shape::kPlain) return type;
  if (const auto known = behind_.find(type.name); known != behind_.end()) return *known->second;
  return *(behind_[type.name] = &find_behind(it->declaration.type));
}

const Type &TypeGraph::behind(const Type &type) const {
  const auto found = type.kind == Kind::kNamed ? behind_.find(type.name) : behind_.end();
  return found == behind_.end() ? type : *found->second;
}

bool TypeGraph::is_chain(const Struct &it) const {
  if (it.fields.empty()) return false;
  const auto *last = &it.fields.back();
  if (const auto &type = behind(last->type); last->shape == Shape::kPlain && type.kind == Kind::kNamed)
    if (const auto *named = std::get_if<Typedef>(&at(type.name))) last = &named->declaration;
  return last->shape == Shape::kOptional && behind(last->type).name == it.name;
}

// --- bytes ---------------------------------------------------------------------------------------------------------------

std::uint64_t TypeGraph::least_bytes(const Declaration &declaration) const {
  if (declaration.type.kind == Kind::kVoid) return 0;
  if (!is_value(declaration)) return 4;
  const auto count = declaration.shape == Shape::kFixed ? declaration.size->number.magnitude : 1;
  if (declaration.type.kind == Kind::kOpaque) return std::min((count + 3) / 4 * 4, kMostBytes);
  return std::min(count * least_bytes(declaration.type), kMostBytes);
}

std::uint64_t TypeGraph::least_bytes(const Type &type) const {
  switch (type.kind) {
    case Kind::kHyper:
    case Kind::kUnsignedHyper:
    case Kind::kDouble: return 8;
    case Kind::kNamed: return least_bytes_.at(type.name);
    default: return 4;
  }
}

/// Once each: many types may be made of the same ones.
void TypeGraph::measure(const std::string &type) {
  if (least_bytes_.contains(type)) return;
  for (const auto *member : members_of(at(type)))
    if (is_value(*member) && member->type.kind == Kind::kNamed) measure(member->type.name);
  least_bytes_[type] = measured(at(type));
}

std::uint64_t TypeGraph::measured(const Definition &definition) {
  if (std::holds_alternative<Enum>(definition)) return 4;
  if (const auto *it = std::get_if<Union>(&definition)) {
    auto arm_bytes = kMostBytes;
    for (const auto &arm : it->arms) arm_bytes = std::min(arm_bytes, least_bytes(arm.declaration));
    return std::min(4 + arm_bytes, kMostBytes);
  }
  std::uint64_t bytes = 0;
  for (const auto *member : members_of(definition)) bytes = std::min(bytes + least_bytes(*member), kMostBytes);
  return bytes;
}

// --- order ---------------------------------------------------------------------------------------------------------------

class TypeGraph::Order {
 public:
  explicit Order(const TypeGraph &graph) : graph_(graph) {}

  void add(const Definition &definition) {
    if (!begun_.insert(&definition).second) return;
    for (const auto *member : members_of(definition))
      if (member->type.kind == Kind::kNamed) add_needed(definition, *member);
    made.push_back(&definition);
  }
  std::vector<const Definition *> made;

 private:
  void add_needed(const Definition &definition, const Declaration &member) {
    const bool names_only = is_typedef(definition) && member.shape == Shape::kPlain;
    if (is_value(member) && !names_only) return add_values(member.type.name);
    const auto &name = member.type.name;
    const bool is_declared = graph_.is_recursive(name) && !is_typedef(graph_.at(name));
    if (!is_declared || !graph_.hold_each_other(name, type_name_of(definition))) add(graph_.at(name));
  }
  /// What a typedef is a name of is needed as well.
  void add_values(const std::string &type) {
    if (with_values_.contains(type)) return;
    const auto &definition = graph_.at(type);
    add(definition);
    const auto *it = std::get_if<Typedef>(&definition);
    if (it != nullptr && is_value(it->declaration) && it->declaration.type.kind == Kind::kNamed)
      add_values(it->declaration.type.name);
    with_values_.insert(type);
  }

  const TypeGraph &graph_;
  std::set<const Definition *> begun_;
  std::set<std::string> with_values_;  ///< what add_values() is done with
};

std::vector<const Definition *> TypeGraph::declared_first() const {
  std::vector<const Definition *> made;
  for (const auto &definition : interface_.definitions) {
    const auto name = type_name_of(definition);
    if (!name.empty() && !is_typedef(definition) && is_recursive(name)) made.push_back(&definition);
  }
  return made;
}

std::vector<const Definition *> TypeGraph::in_order() const {
  Order order(*this);
  for (const auto &definition : interface_.definitions) order.add(definition);
  return std::move(order.made);
}

}  // namespace xdr::idl
