// SPDX-License-Identifier: BSD-3-Clause
// What an interface file says: its definitions, in the order in which they stand there.
#pragma once

#include "xdr/idl/lexer.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace xdr::idl {

/// A number, or the name of a constant or an enumerator.
struct Value {
  std::string name;  ///< empty: `number` stands in the file
  Number number;     ///< of a name: set by check()
  Position at;
  std::string text;  ///< of a number, as it stands in the file
};

struct Type {
  enum class Kind { kVoid, kInt, kUnsigned, kHyper, kUnsignedHyper, kFloat, kDouble, kBool, kString, kOpaque, kNamed };
  Kind kind = Kind::kVoid;
  std::string name;  ///< of another than a kNamed the file's words: "long", "unsigned int", "u_int"
  Position at;
};

/// A field, an arm of a union, a typedef's name.
struct Declaration {
  enum class Shape { kPlain, kFixed, kVariable, kOptional };
  Type type;  ///< kVoid: nothing is declared
  Shape shape = Shape::kPlain;
  std::optional<Value> size;  ///< of a kFixed; of a kVariable at most; none: 2^32 - 1
  std::string name;
  Position at;  ///< of the name
};

struct Constant {
  std::string name;
  Value value;
  Position at;
};

struct Enumerator {
  std::string name;
  std::optional<Value> given;  ///< none: one more than the value before, or 0, as in C
  Number number;               ///< set by check()
  Position at;
};
struct Enum {
  std::string name;
  std::vector<Enumerator> enumerators;
  Position at;
};

struct Struct {
  std::string name;
  std::vector<Declaration> fields;
  Position at;
};

struct Arm {
  std::vector<Value> cases;  ///< none: the default
  Declaration declaration;
};
struct Union {
  std::string name;
  Declaration discriminant;
  std::vector<Arm> arms;  ///< the default, if there is one, is the last
  Position at;
};

struct Typedef {
  Declaration declaration;
};

/// What a procedure is given besides its arguments: memory of the caller's that the server reads or writes.
enum class Bulk { kNone, kIn, kOut, kInOut };
/// One of three things, by what the server may do: read, write, or both.
template <class T> T by_bulk(Bulk bulk, T in, T out, T inout) {
  return bulk == Bulk::kIn ? in : bulk == Bulk::kOut ? out : inout;
}
/// How a server carries a procedure out, unless it says otherwise: the kinds of nssi/nssi.hpp.
enum class HandlerKind { kFiber, kShort, kBulk, kBulkNow };
struct Procedure {
  std::string name;
  Type result;
  std::vector<Type> arguments;  ///< none: void
  Bulk bulk = Bulk::kNone;
  Value number;
  HandlerKind kind = HandlerKind::kFiber;
  bool tells_arrival = false;  ///< the server wants to hear of each request when it arrives, before its turn
  Position at;
};
struct Version {
  std::string name;
  std::vector<Procedure> procedures;
  Value number;
  Position at;
};
struct Program {
  std::string name;
  std::vector<Version> versions;
  Value number;
  Position at;
};

using Definition = std::variant<Constant, Enum, Struct, Union, Typedef, Program>;

/// What a value of a struct, a union or a typedef is made of: its fields; what it switches on, and its arms; its type.
std::vector<const Declaration *> members_of(const Definition &definition);

/// Empty: it defines no type.
std::string type_name_of(const Definition &definition);
Position position_of(const Definition &definition);

/// As C and C++ write it.
std::string literal(const Number &number);

/// Lines that the author wants in the output as they are: those that begin with %.
struct Passage {
  std::string text;        ///< whole lines, without the %
  std::size_t before = 0;  ///< which definition they stand before
};

/// A file that means something: every name is defined, every value known, every rule of RFC 4506 kept.
struct Interface {
  std::vector<Definition> definitions;
  std::vector<Passage> passages;
};

}  // namespace xdr::idl
