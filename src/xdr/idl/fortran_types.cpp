// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/fortran_types.hpp"

#include <fmt/format.h>

#include <xdr/swap.hpp>

#include <algorithm>
#include <utility>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;
using Element = FortranForm::Element;
using Layout = FortranForm::Layout;

std::string list_key(const std::string &name) { return name + " list"; }

bool is_number(Element element) {
  return element == Element::kInt || element == Element::kHyper || element == Element::kFloat ||
         element == Element::kDouble;
}
std::uint64_t bytes_of(Element element) { return element == Element::kHyper || element == Element::kDouble ? 8 : 4; }

std::optional<std::uint64_t> size_of(const Declaration &declaration) {
  if (!declaration.size) return std::nullopt;
  return declaration.size->number.magnitude;
}

}  // namespace

FortranTypes::FortranTypes(const Interface &interface, FortranNames &names)
    : interface_(interface), graph_(interface), names_(names) {
  name_all();
  fill_all();
  find_cycles();
  std::set<std::string> begun;
  for (const auto &definition : interface_.definitions) {
    const auto name = type_name_of(definition);
    for (const auto &key : {name, list_key(name)})
      if (types_.contains(key)) put_in_order(key, begun);
  }
  for (const auto &key : order_) {
    types_[key].plain = plain_of(types_[key]);
    types_[key].size_bytes = size_bytes(types_[key]);
  }
}

// --- which there are -------------------------------------------------------------------------------------------------------

void FortranTypes::name_all() {
  for (const auto &definition : interface_.definitions) {
    const auto name = type_name_of(definition);
    if (const auto *it = std::get_if<Enum>(&definition)) enums_[name] = it->name;
    if (std::holds_alternative<Union>(definition)) add(name, definition, FortranType::Kind::kUnion, name);
    if (const auto *it = std::get_if<Struct>(&definition)) {
      const bool is_list = graph_.is_chain(*it);
      add(name, definition, is_list ? FortranType::Kind::kLink : FortranType::Kind::kStruct, name);
      if (is_list) add(list_key(name), definition, FortranType::Kind::kWrapper, name + "_list");
    }
    const auto *it = std::get_if<Typedef>(&definition);
    if (it != nullptr && it->declaration.shape != Shape::kPlain)
      add(name, definition, FortranType::Kind::kWrapper, name);
  }
}

void FortranTypes::add(const std::string &key, const Definition &definition, FortranType::Kind kind,
                       const std::string &wanted) {
  FortranType made;
  made.kind = kind;
  made.name = names_.claim_type(wanted);
  Declaration plain;
  plain.type = {Kind::kNamed, type_name_of(definition), {}};
  // What is shortest counts 4 bytes even where it has none: as in C++.
  made.least_bytes = std::max(graph_.least_bytes(plain), std::uint64_t{4});
  if (kind == FortranType::Kind::kLink) made.least_bytes = 4;
  made.of_union = std::get_if<Union>(&definition);
  made.at = position_of(definition);
  types_[key] = std::move(made);
}

void FortranTypes::fill_all() {
  for (const auto &definition : interface_.definitions) fill(definition);
}

void FortranTypes::fill(const Definition &definition) {
  if (const auto *it = std::get_if<Struct>(&definition)) fill_struct(*it);
  if (const auto *it = std::get_if<Union>(&definition)) fill_union(*it);
  const auto *it = std::get_if<Typedef>(&definition);
  if (it != nullptr && it->declaration.shape != Shape::kPlain)
    types_[it->declaration.name].fields.push_back({"value", form_of(it->declaration)});
}

FortranField FortranTypes::field_of(const Declaration &declaration, FortranNames &names) const {
  return {names.claim(declaration.name), form_of(declaration)};
}

void FortranTypes::fill_struct(const Struct &it) {
  FortranNames names;
  const bool is_list = graph_.is_chain(it);
  for (const auto &field : it.fields)
    if (!is_list || &field != &it.fields.back()) types_[it.name].fields.push_back(field_of(field, names));
  if (!is_list) return;
  FortranForm links;
  links.element = Element::kDerived;
  links.layout = Layout::kList;
  links.type = it.name;
  types_[list_key(it.name)].fields.push_back({"value", links});
}

void FortranTypes::fill_union(const Union &it) {
  FortranNames names;
  auto &fields = types_[it.name].fields;
  fields.push_back(field_of(it.discriminant, names));
  for (const auto &arm : it.arms) {
    if (arm.declaration.type.kind == Kind::kVoid) continue;
    fields.push_back(field_of(arm.declaration, names));
    auto &form = fields.back().form;
    form.is_arm = form.element == Element::kDerived && form.layout == Layout::kScalar;
  }
}

// --- what a value is -------------------------------------------------------------------------------------------------------

/// Null: it is none.
const Struct *FortranTypes::chain(const Type &type) const {
  if (type.kind != Kind::kNamed) return nullptr;
  const auto *it = std::get_if<Struct>(&graph_.at(type.name));
  return it != nullptr && graph_.is_chain(*it) ? it : nullptr;
}

FortranForm FortranTypes::form_of(const Type &type) const {
  Declaration plain;
  plain.type = type;
  if (type.kind == Kind::kString) plain.shape = Shape::kVariable;
  return form_of(plain);
}

FortranForm FortranTypes::form_of(const Declaration &declaration) const {
  const auto &[type, shape, size, name, at] = declaration;
  const auto &behind = graph_.behind(type);
  if (shape == Shape::kPlain && behind.kind == Kind::kNamed)
    if (const auto *it = std::get_if<Typedef>(&graph_.at(behind.name))) return form_of(it->declaration);
  auto form = element_of(behind);
  form.size = size_of(declaration);
  if (const auto *it = chain(behind); it != nullptr && (shape == Shape::kPlain || shape == Shape::kOptional)) {
    form.type = it->name;
    form.layout = shape == Shape::kPlain ? Layout::kList : Layout::kListOrNone;
  } else if (shape == Shape::kFixed) {
    form.layout = Layout::kVector;
  } else if (shape == Shape::kVariable && behind.kind != Kind::kString) {
    form.layout = Layout::kArray;
  } else if (shape == Shape::kOptional) {
    form.layout = Layout::kOptional;
  }
  return form;
}

FortranForm FortranTypes::element_of(const Type &type) const {
  FortranForm form;
  switch (type.kind) {
    case Kind::kHyper:
    case Kind::kUnsignedHyper: form.element = Element::kHyper; break;
    case Kind::kFloat: form.element = Element::kFloat; break;
    case Kind::kDouble: form.element = Element::kDouble; break;
    case Kind::kBool: form.element = Element::kLogical; break;
    case Kind::kString: form.element = Element::kString; break;
    case Kind::kOpaque: form.element = Element::kOpaque; break;
    case Kind::kNamed:
      form.element = enums_.contains(type.name) ? Element::kEnum : Element::kDerived;
      form.type = chain(type) != nullptr ? list_key(type.name) : type.name;
      break;
    default: break;
  }
  return form;
}

std::string FortranTypes::element_type(const FortranForm &form) const {
  switch (form.element) {
    case Element::kInt:
    case Element::kEnum: return "integer(c_int32_t)";
    case Element::kHyper: return "integer(c_int64_t)";
    case Element::kFloat: return "real(c_float)";
    case Element::kDouble: return "real(c_double)";
    case Element::kLogical: return "logical";
    case Element::kString: return "character(len=:)";
    case Element::kOpaque: return "integer(c_int8_t)";
    case Element::kDerived: break;
  }
  return fmt::format("type({})", at(form.type).name);
}

std::optional<std::uint64_t> FortranTypes::fixed_bytes(const FortranForm &form) const {
  if (form.layout != Layout::kScalar && form.layout != Layout::kVector) return std::nullopt;
  const auto count = form.layout == Layout::kVector ? *form.size : 1;
  if (form.element == Element::kOpaque) return (count + 3) / 4 * 4;
  if (form.element == Element::kLogical || is_number(form.element)) return count * bytes_of(form.element);
  if (form.element != Element::kDerived || form.is_arm || at(form.type).kind == FortranType::Kind::kUnion)
    return std::nullopt;
  std::uint64_t bytes = 0;
  for (const auto &field : at(form.type).fields) {
    const auto each = fixed_bytes(field.form);
    if (!each) return std::nullopt;
    bytes += *each;
  }
  return count * bytes;
}

// --- how they hang together ------------------------------------------------------------------------------------------------

/// What contains its own kind does so by pointers.
void FortranTypes::find_cycles() {
  Edges edges;
  for (const auto &[key, type] : types_) {
    auto &successors = edges[key];
    for (const auto &field : type.fields)
      if (field.form.element == Element::kDerived) successors.push_back(field.form.type);
  }
  const auto components = components_of(edges);
  for (auto &[key, type] : types_)
    for (auto &field : type.fields) {
      const bool is_apart = field.form.layout != Layout::kScalar && field.form.layout != Layout::kVector;
      if (field.form.element == Element::kDerived && is_apart &&
          components.at(field.form.type).number == components.at(key).number)
        field.form.is_pointer = true;
    }
  find_pointers(components);
}

/// What a component holds is known before the component is come to.
void FortranTypes::find_pointers(const std::map<std::string, Component> &components) {
  std::vector<std::pair<std::size_t, const FortranType *>> by_number;
  for (const auto &[key, type] : types_) by_number.emplace_back(components.at(key).number, &type);
  std::ranges::sort(by_number);
  std::vector<bool> holds_pointers(by_number.size());
  for (const auto &[number, type] : by_number)
    for (const auto &[name, form] : type->fields)
      if (form.is_pointer || (form.element == Element::kDerived && holds_pointers[components.at(form.type).number]))
        holds_pointers[number] = true;
  for (auto &[key, type] : types_) type.holds_pointers = holds_pointers[components.at(key).number];
}

void FortranTypes::put_in_order(const std::string &key, std::set<std::string> &begun) {
  if (!begun.insert(key).second) return;
  for (const auto &field : at(key).fields)
    if (field.form.element == Element::kDerived && !field.form.is_pointer) put_in_order(field.form.type, begun);
  order_.push_back(key);
}

double FortranTypes::size_bytes(const FortranType &type) const {
  constexpr double kAddress = 8;
  double bytes = 0;
  for (const auto &[name, form] : type.fields) {
    const bool is_here = form.layout == Layout::kScalar || form.layout == Layout::kVector;
    const auto count = static_cast<double>(form.layout == Layout::kVector ? *form.size : 1);
    if (!is_here || form.is_arm || form.element == Element::kString)
      bytes += kAddress;
    else if (form.element == Element::kDerived)
      bytes += count * at(form.type).size_bytes;
    else
      bytes += count * (form.element == Element::kOpaque ? 1 : static_cast<double>(bytes_of(form.element)));
  }
  return bytes;
}

/// As xdr/layout.hpp finds it out of C++'s structs.
std::optional<FortranType::Plain> FortranTypes::plain_of(const FortranType &type) const {
  FortranType::Plain made;
  if (type.kind != FortranType::Kind::kStruct || type.fields.empty()) return std::nullopt;
  for (const auto &[name, form] : type.fields) {
    if (form.layout != Layout::kScalar || !is_number(form.element)) return std::nullopt;
    const auto bytes = bytes_of(form.element);
    if (made.size_bytes % bytes != 0 || made.size_bytes + bytes > SwapPattern::kMostSlots * SwapPattern::kSlotBytes)
      return std::nullopt;
    if (bytes == 8) made.wide |= std::uint32_t{1} << (made.size_bytes / SwapPattern::kSlotBytes);
    made.size_bytes += bytes;
  }
  if (made.wide != 0 && made.size_bytes % SwapPattern::kSlotBytes != 0) return std::nullopt;
  return made;
}

}  // namespace xdr::idl
