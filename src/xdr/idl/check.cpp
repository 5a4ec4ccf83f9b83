// SPDX-License-Identifier: BSD-3-Clause
// What RFC 4506 and RFC 5531 demand beyond the grammar.
#include "xdr/idl/parser.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace xdr::idl {
namespace {

using Kind = Type::Kind;
using Shape = Declaration::Shape;

constexpr std::uint64_t kWord = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kLargestInt = std::numeric_limits<std::int32_t>::max();

bool fits_int(const Number &number) { return number.magnitude <= kLargestInt + (number.negative ? 1 : 0); }
bool fits_unsigned(const Number &number) { return !number.negative && number.magnitude <= kWord; }
std::string text_of(const Number &number) { return fmt::format("{}{}", number.negative ? "-" : "", number.magnitude); }

/// One more; 0 is the first.
Number after(const std::optional<Number> &number) {
  if (!number) return {};
  return number->negative ? Number{number->magnitude - 1, number->magnitude > 1} : Number{number->magnitude + 1, false};
}

/// What a declaration's type is once typedefs are looked through.
struct Resolved {
  Kind kind = Kind::kVoid;
  const Definition *definition = nullptr;  ///< of a kNamed: an enum, a struct or a union
  bool plain = true;                       ///< no array, nothing optional on the way
};

class Checker {
 public:
  explicit Checker(Interface &interface) : interface_(interface) {}

  std::optional<Fault> check() {
    define_value("TRUE", {1, false});
    define_value("FALSE", {0, false});
    for (auto &definition : interface_.definitions) std::visit([this](auto &it) { define(it); }, definition);
    for (const auto &definition : interface_.definitions) check_types(definition);
    if (!fault_) check_all_cycles();
    if (!fault_)
      for (auto &definition : interface_.definitions)
        if (auto *it = std::get_if<Union>(&definition)) check_cases(*it);
    return fault_;
  }

 private:
  void fail(Position at, std::string text) {
    if (!fault_) fault_ = Fault{at, std::move(text)};
  }

  // --- names and values ----------------------------------------------------------------------------------------------
  void define_value(const std::string &name, Number number) { values_.emplace(name, number); }
  void define_name(const std::string &name, Position at) {
    if (name == "TRUE" || name == "FALSE") return fail(at, fmt::format("'{}' is a value of bool", name));
    if (const auto [known, added] = names_.emplace(name, at); !added)
      fail(at, fmt::format("'{}' is defined twice; first in line {}", name, known->second.line));
  }
  void define_type(const std::string &name, Position at) {
    define_name(name, at);
    types_.emplace(name, nullptr);
  }
  /// Constants come before their use, as in C.
  void resolve(Value &value) {
    if (value.name.empty()) return;
    const auto found = values_.find(value.name);
    if (found == values_.end()) return fail(value.at, fmt::format("no constant is called '{}' up to here", value.name));
    value.number = found->second;
  }

  void define(Constant &constant) {
    resolve(constant.value);
    define_name(constant.name, constant.at);
    define_value(constant.name, constant.value.number);
  }
  void define(Enum &it) {
    define_type(it.name, it.at);
    std::optional<Number> before;
    for (auto &enumerator : it.enumerators) {
      if (enumerator.given) resolve(*enumerator.given);
      enumerator.number = enumerator.given ? enumerator.given->number : after(before);
      if (!fits_int(enumerator.number))
        fail(enumerator.given ? enumerator.given->at : enumerator.at,
             fmt::format("{} does not fit an enum: its values are int", text_of(enumerator.number)));
      define_name(enumerator.name, enumerator.at);
      define_value(enumerator.name, enumerator.number);
      before = enumerator.number;
    }
  }
  void define(Struct &it) {
    define_type(it.name, it.at);
    for (auto &field : it.fields) resolve_size(field);
  }
  void define(Union &it) {
    define_type(it.name, it.at);
    for (auto &arm : it.arms) {
      for (auto &each : arm.cases) resolve(each);
      resolve_size(arm.declaration);
    }
  }
  void define(Typedef &it) {
    resolve_size(it.declaration);
    define_type(it.declaration.name, it.declaration.at);
  }
  void define(Program &it) {
    define_name(it.name, it.at);
    resolve_number(it.number, "a program's number");
    std::set<std::string> names;
    std::set<std::uint64_t> numbers;
    for (auto &version : it.versions) {
      define(version);
      if (!names.insert(version.name).second)
        fail(version.at, fmt::format("program {} has two versions called '{}'", it.name, version.name));
      if (!numbers.insert(version.number.number.magnitude).second)
        fail(version.number.at,
             fmt::format("program {} has two versions of number {}", it.name, version.number.number.magnitude));
    }
  }
  void define(Version &version) {
    resolve_number(version.number, "a version's number");
    std::set<std::string> names;
    std::set<std::uint64_t> numbers;
    for (auto &procedure : version.procedures) {
      resolve_number(procedure.number, "a procedure's number");
      if (!names.insert(procedure.name).second)
        fail(procedure.at, fmt::format("version {} has two procedures called '{}'", version.name, procedure.name));
      if (!numbers.insert(procedure.number.number.magnitude).second)
        fail(procedure.number.at, fmt::format("version {} has two procedures of number {}", version.name,
                                              procedure.number.number.magnitude));
    }
  }
  void resolve_number(Value &value, std::string_view what) {
    resolve(value);
    if (!fits_unsigned(value.number)) fail(value.at, fmt::format("{} is 0 to {}", what, kWord));
  }
  void resolve_size(Declaration &declaration) {
    if (!declaration.size) return;
    resolve(*declaration.size);
    if (!fits_unsigned(declaration.size->number)) fail(declaration.size->at, fmt::format("a size is 0 to {}", kWord));
  }

  // --- types -----------------------------------------------------------------------------------------------------------
  void check_type(const Type &type) {
    if (type.kind != Kind::kNamed || types_.contains(type.name)) return;
    fail(type.at, names_.contains(type.name) ? fmt::format("'{}' is no type", type.name)
                                             : fmt::format("no type is called '{}'", type.name));
  }
  /// Their types are known, and their names differ.
  void check_members(const Definition &definition, const std::string &of) {
    std::map<std::string, Position> known;
    for (const auto *member : members_of(definition)) {
      check_type(member->type);
      if (member->type.kind == Kind::kVoid) continue;
      if (const auto [first, added] = known.emplace(member->name, member->at); !added)
        fail(member->at,
             fmt::format("'{}' has two fields called '{}'; first in line {}", of, member->name, first->second.line));
    }
  }
  void check_types(const Definition &definition) {
    if (const auto *it = std::get_if<Program>(&definition)) return check_types(*it);
    const auto name = type_name_of(definition);
    if (name.empty()) return;
    types_[name] = &definition;
    check_members(definition, name);
  }
  void check_types(const Program &it) {
    for (const auto &version : it.versions)
      for (const auto &procedure : version.procedures) {
        check_type(procedure.result);
        for (const auto &argument : procedure.arguments) check_type(argument);
      }
  }

  static bool is_value(const Declaration &declaration) {
    return declaration.shape == Shape::kPlain || declaration.shape == Shape::kFixed;
  }
  bool is_typedef(const std::string &type) const { return std::holds_alternative<Typedef>(*types_.at(type)); }
  void check_all_cycles() {
    const auto by_value = [](const std::string &, const Declaration &member) { return is_value(member); };
    const auto by_name = [this](const std::string &name, const Declaration &member) {
      return is_typedef(name) && is_typedef(member.type.name);
    };
    for (auto &[name, definition] : types_) check_cycles(name, by_value);
    done_.clear();
    for (auto &[name, definition] : types_) check_cycles(name, by_name);
  }
  /// A value of the type would hold another one of its own kind, and so on for ever; or a typedef would mean itself.
  template <class Follows> void check_cycles(const std::string &name, Follows follows) {
    if (done_.contains(name) || fault_) return;
    if (!path_.insert(name).second)
      return fail(names_.at(name), fmt::format("'{}' contains itself: make it optional where it does ({} *name), or an "
                                               "array<>",
                                               name, name));
    for (const auto *member : members_of(*types_.at(name)))
      if (member->type.kind == Kind::kNamed && follows(name, *member)) check_cycles(member->type.name, follows);
    path_.erase(name);
    done_.insert(name);
  }

  Resolved resolved(const Declaration &declaration) {
    Resolved made{declaration.type.kind, nullptr, declaration.shape == Shape::kPlain};
    if (made.kind != Kind::kNamed) return made;
    const auto *definition = types_.at(declaration.type.name);
    if (const auto *it = std::get_if<Typedef>(definition)) {
      auto inner = resolved(it->declaration);
      inner.plain = inner.plain && made.plain;
      return inner;
    }
    made.definition = definition;
    return made;
  }

  // --- unions ------------------------------------------------------------------------------------------------------------
  void check_cases(const Union &it) {
    const auto type = resolved(it.discriminant);
    const auto *choice = type.definition == nullptr ? nullptr : std::get_if<Enum>(type.definition);
    const bool allowed = type.kind == Kind::kInt || type.kind == Kind::kUnsigned || type.kind == Kind::kBool || choice;
    if (!type.plain || !allowed)
      return fail(it.discriminant.at, "a union switches on an int, an unsigned int, a bool or an enum");
    std::map<std::pair<bool, std::uint64_t>, Position> known;
    for (const auto &arm : it.arms)
      for (const auto &value : arm.cases) {
        check_case(value, type.kind, choice);
        const auto [first, added] = known.emplace(std::pair(value.number.negative, value.number.magnitude), value.at);
        if (!added)
          fail(value.at, fmt::format("'{}' has a case {} already, in line {}", it.name, text_of(value.number),
                                     first->second.line));
      }
  }
  void check_case(const Value &value, Kind kind, const Enum *choice) {
    const auto &number = value.number;
    if (choice != nullptr) {
      const bool is_one = std::ranges::any_of(
          choice->enumerators, [&](const Enumerator &enumerator) { return enumerator.number == number; });
      if (!is_one) fail(value.at, fmt::format("{} is no value of {}", shown(value), choice->name));
    } else if (kind == Kind::kBool && (number.negative || number.magnitude > 1)) {
      fail(value.at, fmt::format("{} is neither TRUE nor FALSE", shown(value)));
    } else if (kind == Kind::kInt ? !fits_int(number) : !fits_unsigned(number)) {
      fail(value.at, fmt::format("{} does not fit what the union switches on", shown(value)));
    }
  }
  static std::string shown(const Value &value) { return value.name.empty() ? text_of(value.number) : value.name; }

  Interface &interface_;
  std::optional<Fault> fault_;
  std::map<std::string, Position> names_;
  std::map<std::string, Number> values_;
  std::map<std::string, const Definition *> types_;
  std::set<std::string> path_, done_;  ///< of check_cycles()
};

}  // namespace

std::optional<Fault> check(Interface &interface) { return Checker(interface).check(); }

}  // namespace xdr::idl
