// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/graph.hpp"

#include <algorithm>
#include <limits>

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
  for (const auto &[name, definition] : types_) reach(name, reached_[name]);
  for (const auto &[name, definition] : types_) measure(name);
}

void TypeGraph::reach(const std::string &type, std::set<std::string> &reached) const {
  for (const auto *member : members_of(at(type)))
    if (member->type.kind == Kind::kNamed && reached.insert(member->type.name).second)
      reach(member->type.name, reached);
}

const Type &TypeGraph::behind(const Type &type) const {
  const auto *it = type.kind == Kind::kNamed ? std::get_if<Typedef>(&at(type.name)) : nullptr;
  return it != nullptr && it->declaration.shape == Shape::kPlain ? behind(it->declaration.type) : type;
}

bool TypeGraph::is_chain(const Struct &it) const {
  if (it.fields.empty()) return false;
  const auto *last = &it.fields.back();
  while (last->shape == Shape::kPlain && last->type.kind == Kind::kNamed && is_typedef(at(last->type.name)))
    last = &std::get<Typedef>(at(last->type.name)).declaration;
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
    if (!is_declared || !graph_.reached(name).contains(type_name_of(definition))) add(graph_.at(name));
  }
  /// What a typedef is a name of is needed as well.
  void add_values(const std::string &type) {
    const auto &definition = graph_.at(type);
    add(definition);
    const auto *it = std::get_if<Typedef>(&definition);
    if (it != nullptr && is_value(it->declaration) && it->declaration.type.kind == Kind::kNamed)
      add_values(it->declaration.type.name);
  }

  const TypeGraph &graph_;
  std::set<const Definition *> begun_;
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
