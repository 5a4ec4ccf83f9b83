// SPDX-License-Identifier: BSD-3-Clause
// What the types of an interface are in Fortran, before a line of it is written.
//
// Design notes. Fortran has no typedef: a field whose type is the name of an array is that array. Where an array or an
// optional has elements of such a type, or a string's, they are of a wrapper: a derived type with the one component
// `value`. A struct that ends in `itself *next` is a list, for which Fortran has arrays: `itself` is one link without
// `next`, and its values are arrays of them; nothing recurses, however long they are. What otherwise contains its own
// kind does so by pointers: gfortran 12 crashes over allocatable components whose types contain each other, and frees
// twice what directly contains itself.
#pragma once

#include "xdr/idl/fortran_names.hpp"
#include "xdr/idl/graph.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace xdr::idl {

/// How a value is declared, and what it is made of.
struct FortranForm {
  enum class Element { kInt, kHyper, kFloat, kDouble, kLogical, kEnum, kString, kOpaque, kDerived };
  /// kList: an array with at least one element; kListOrNone.
  enum class Layout { kScalar, kVector, kArray, kOptional, kList, kListOrNone };
  Element element = Element::kInt;
  Layout layout = Layout::kScalar;
  std::string type;                   ///< of kDerived: its key; of kEnum: the enum
  std::optional<std::uint64_t> size;  ///< of a kVector; of a kArray and a kString at most
  bool is_pointer = false;            ///< instead of allocatable
  bool is_arm = false;                ///< a scalar of a derived type that is allocatable: an arm of a union
};

struct FortranField {
  std::string name;
  FortranForm form;
};

/// A derived type. Its key is the name of the definition that it is made of, or that with " list" behind it.
struct FortranType {
  enum class Kind { kStruct, kLink, kUnion, kWrapper };
  Kind kind = Kind::kStruct;
  std::string name;
  std::vector<FortranField> fields;  ///< of a union: what it switches on, then an arm each, but void ones
  const Union *of_union = nullptr;
  bool holds_pointers = false;  ///< at any depth
  std::uint64_t least_bytes = 4;
  double size_bytes = 0;  ///< in memory, of its arrays of a fixed size; of what is apart a little
  Position at;            ///< of the definition
  /// Numbers only, in memory as on the wire but for the order of bytes: slots of 8 bytes, and which are one number.
  struct Plain {
    std::uint64_t size_bytes = 0;
    std::uint32_t wide = 0;
  };
  std::optional<Plain> plain;
};

class FortranTypes {
 public:
  /// Both outlive it. `names` are the module's.
  FortranTypes(const Interface &interface, FortranNames &names);

  /// By their keys; what one needs goes before it, but for what is behind pointers.
  const std::vector<std::string> &in_order() const { return order_; }
  const FortranType &at(const std::string &key) const { return types_.at(key); }
  const std::string &name_of_enum(const std::string &name) const { return enums_.at(name); }

  /// "integer(c_int32_t)", "type(point)": of one element.
  std::string element_type(const FortranForm &form) const;
  /// Of an argument or a result.
  FortranForm form_of(const Type &type) const;
  FortranForm form_of(const Declaration &declaration) const;
  /// Bytes of its encoding if they are the same for all values, none of which breaks a rule.
  std::optional<std::uint64_t> fixed_bytes(const FortranForm &form) const;

 private:
  void name_all();
  void fill_all();
  const Struct *chain(const Type &type) const;
  FortranForm element_of(const Type &type) const;
  void add(const std::string &key, const Definition &definition, FortranType::Kind kind, const std::string &wanted);
  void fill(const Definition &definition);
  void fill_struct(const Struct &it);
  void fill_union(const Union &it);
  FortranField field_of(const Declaration &declaration, FortranNames &names) const;
  void find_cycles();
  void put_in_order(const std::string &key, std::set<std::string> &begun);
  void find_pointers(const std::map<std::string, Component> &components);
  double size_bytes(const FortranType &type) const;
  std::optional<FortranType::Plain> plain_of(const FortranType &type) const;

  const Interface &interface_;
  const TypeGraph graph_;
  FortranNames &names_;
  std::map<std::string, FortranType> types_;
  std::map<std::string, std::string> enums_;
  std::vector<std::string> order_;
};

}  // namespace xdr::idl
