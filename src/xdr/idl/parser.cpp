// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/parser.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace xdr::idl {
namespace {

using Shape = Declaration::Shape;

constexpr std::array<std::string_view, 23> kKeywords = {
    "bool",  "case",     "const",   "default",   "double", "enum",   "float",  "hyper",
    "int",   "opaque",   "program", "quadruple", "string", "struct", "switch", "typedef",
    "union", "unsigned", "version", "void",      "long",   "short",  "char"};

/// The types of the language, and names for them that C programmers use and rpcgen knows.
constexpr std::array<std::pair<std::string_view, Type::Kind>, 18> kTypes = {{
    {"int", Type::Kind::kInt},
    {"hyper", Type::Kind::kHyper},
    {"float", Type::Kind::kFloat},
    {"double", Type::Kind::kDouble},
    {"bool", Type::Kind::kBool},
    {"string", Type::Kind::kString},
    {"opaque", Type::Kind::kOpaque},
    {"void", Type::Kind::kVoid},
    {"long", Type::Kind::kInt},
    {"u_int", Type::Kind::kUnsigned},
    {"u_long", Type::Kind::kUnsigned},
    {"bool_t", Type::Kind::kBool},
    {"int32_t", Type::Kind::kInt},
    {"uint32_t", Type::Kind::kUnsigned},
    {"u_int32_t", Type::Kind::kUnsigned},
    {"int64_t", Type::Kind::kHyper},
    {"uint64_t", Type::Kind::kUnsignedHyper},
    {"u_int64_t", Type::Kind::kUnsignedHyper},
}};

/// A file beyond these is none that a person wrote: whoever follows its types may do so by recursion.
constexpr std::size_t kMostDefinitions = 10'000;
constexpr int kDeepestNesting = 64;

bool is_keyword(std::string_view word) { return std::ranges::find(kKeywords, word) != kKeywords.end(); }

/// After the first fault every function returns something empty, and the file seems to end.
class Parser {
 public:
  explicit Parser(std::string_view source) : lexer_(source) { take(); }

  std::variant<Interface, Fault> parse() {
    keep_passage();
    while (token_.kind != Token::Kind::kEnd) {
      definition();
      keep_passage();
    }
    if (!fault_ && lexer_.fault()) fault_ = lexer_.fault();
    if (fault_) return *fault_;
    return std::move(interface_);
  }

 private:
  // --- words -----------------------------------------------------------------------------------------------------------
  Token take() { return std::exchange(token_, fault_ ? Token{} : lexer_.next()); }
  void fail(Position at, std::string text) {
    // The lexer's fault comes first: what it did not understand is why the parser does not, either.
    if (!fault_) fault_ = lexer_.fault() ? *lexer_.fault() : Fault{at, std::move(text)};
    token_ = {};
  }
  bool is(std::string_view text) const { return token_.kind != Token::Kind::kEnd && token_.text == text; }
  bool take_if(std::string_view text) {
    if (!is(text)) return false;
    take();
    return true;
  }
  std::string found() const {
    return token_.kind == Token::Kind::kEnd ? "the end of the file" : fmt::format("'{}'", token_.text);
  }
  void expect(std::string_view text, std::string_view where) {
    if (!take_if(text)) fail(token_.at, fmt::format("'{}' expected {}, not {}", text, where, found()));
  }
  std::string name(std::string_view of_what) {
    if (token_.kind != Token::Kind::kName) {
      fail(token_.at, fmt::format("the name of {} expected, not {}", of_what, found()));
      return {};
    }
    if (is_keyword(token_.text))
      fail(token_.at, fmt::format("'{}' is a word of the language and cannot name {}", token_.text, of_what));
    return std::string(take().text);
  }
  Value value(std::string_view of_what) {
    Value value{{}, {}, token_.at, {}};
    if (token_.kind == Token::Kind::kNumber) {
      value.text = token_.text;
      value.number = take().number;
    } else if (token_.kind == Token::Kind::kName && !is_keyword(token_.text)) {
      value.name = take().text;
    } else {
      fail(token_.at, fmt::format("{} expected: a number, or a constant's name; not {}", of_what, found()));
    }
    return value;
  }

  void keep_passage() {
    auto text = lexer_.take_passage();
    if (!text.empty()) interface_.passages.push_back({std::move(text), interface_.definitions.size()});
  }

  // --- definitions -------------------------------------------------------------------------------------------------------
  void definition() {
    if (interface_.definitions.size() >= kMostDefinitions)
      fail(token_.at, fmt::format("a file may define {} things: divide it", kMostDefinitions));
    if (take_if("typedef"))
      type_definition();
    else if (take_if("const"))
      constant();
    else if (take_if("enum"))
      add_named(&Parser::enum_body, "an enum");
    else if (take_if("struct"))
      add_named(&Parser::struct_body, "a struct");
    else if (take_if("union"))
      add_named(&Parser::union_body, "a union");
    else if (take_if("program"))
      program();
    else
      return fail(token_.at,
                  fmt::format("a definition expected (const, enum, struct, union, typedef, program), not {}", found()));
    expect(";", "after a definition");
  }
  template <class Body> void add_named(Body (Parser::*body)(std::string, Position), std::string_view what) {
    const auto at = token_.at;
    auto name_of_it = name(what);
    interface_.definitions.emplace_back((this->*body)(std::move(name_of_it), at));
  }
  void constant() {
    Constant constant;
    constant.at = token_.at;
    constant.name = name("a constant");
    expect("=", "before a constant's value");
    constant.value = value("a constant's value");
    interface_.definitions.emplace_back(std::move(constant));
  }
  void type_definition() {
    const auto before = interface_.definitions.size();
    auto declared = declaration("");
    if (declared.type.kind == Type::Kind::kVoid) return fail(declared.type.at, "void cannot have a name");
    // `typedef struct {...} name` defines a struct of that name.
    if (interface_.definitions.size() > before && declared.shape == Shape::kPlain &&
        declared.type.name == declared.name)
      return;
    interface_.definitions.emplace_back(Typedef{std::move(declared)});
  }
  Enum enum_body(std::string name_of_it, Position at) {
    Enum made{std::move(name_of_it), {}, at};
    expect("{", "before the values of an enum");
    do {
      Enumerator enumerator;
      enumerator.at = token_.at;
      enumerator.name = name("an enum's value");
      if (take_if("=")) enumerator.given = value("an enum's value");
      made.enumerators.push_back(std::move(enumerator));
    } while (take_if(","));
    expect("}", "after the values of an enum");
    return made;
  }
  Struct struct_body(std::string name_of_it, Position at) {
    Struct made{std::move(name_of_it), {}, at};
    expect("{", "before the fields of a struct");
    do {
      auto field = declaration(made.name);
      if (field.type.kind != Type::Kind::kVoid) made.fields.push_back(std::move(field));
      expect(";", "after a field");
    } while (!fault_ && !is("}"));
    expect("}", "after the fields of a struct");
    return made;
  }
  Union union_body(std::string name_of_it, Position at) {
    Union made{std::move(name_of_it), {}, {}, at};
    expect("switch", "in a union, after its name");
    expect("(", "after 'switch'");
    if (is("void")) fail(token_.at, "a union switches on an int, an unsigned int, a bool or an enum");
    made.discriminant = declaration(made.name);
    expect(")", "after what a union switches on");
    expect("{", "before the arms of a union");
    if (!is("case")) fail(token_.at, fmt::format("'case' expected, not {}", found()));
    while (is("case")) {
      Arm arm;
      while (take_if("case")) {
        arm.cases.push_back(value("the value of a case"));
        expect(":", "after the value of a case");
      }
      arm.declaration = declaration(made.name);
      expect(";", "after an arm");
      made.arms.push_back(std::move(arm));
    }
    if (take_if("default")) {
      expect(":", "after 'default'");
      made.arms.push_back({{}, declaration(made.name)});
      expect(";", "after an arm");
    }
    expect("}", "after the arms of a union; its default is the last one");
    return made;
  }

  // --- declarations ------------------------------------------------------------------------------------------------------
  Declaration declaration(const std::string &outer) {
    Declaration made;
    if (is("enum") || is("struct") || is("union")) {
      const auto at = token_.at;
      const auto word = std::string(take().text);
      if (!is("{") && !is("switch")) {  // C's way to name what is defined elsewhere
        made.type = {Type::Kind::kNamed, name("a type"), at};
        return declarator(std::move(made));
      }
      made.type = {Type::Kind::kNamed, define_here(word, outer, at), at};
      return declarator(std::move(made));
    }
    made.type = type();
    if (made.type.kind == Type::Kind::kVoid) return made;
    return declarator(std::move(made));
  }
  /// Returns the type's name.
  std::string define_here(std::string_view word, const std::string &outer, Position at) {
    if (++nesting_ > kDeepestNesting)
      fail(at, fmt::format("types lie more than {} deep in each other: name them", kDeepestNesting));
    auto name_of_it = name_of_body(outer);
    Definition body;
    if (word == "enum")
      body = enum_body(name_of_it, at);
    else if (word == "struct")
      body = struct_body(name_of_it, at);
    else
      body = union_body(name_of_it, at);
    --nesting_;
    interface_.definitions.push_back(std::move(body));
    return name_of_it;
  }
  /// A type that is defined where it is used is called as `outer`, and as what is declared, which stands behind it:
  /// what is defined within it is called after it. One that a typedef makes an array of, or optional, is its element.
  std::string name_of_body(const std::string &outer) const {
    auto ahead = lexer_;
    auto token = token_;
    for (int depth = 0; token.kind != Token::Kind::kEnd; token = ahead.next()) {
      if (token.text == "{") ++depth;
      if (token.text == "}" && --depth <= 0) break;
    }
    token = ahead.next();
    bool is_plain = token.text != "*";
    if (!is_plain) token = ahead.next();
    const std::string declared(token.text);
    if (!outer.empty()) return outer + "_" + declared;
    const auto next = ahead.next().text;
    is_plain = is_plain && next != "[" && next != "<";
    return is_plain ? declared : declared + "_element";
  }
  Declaration declarator(Declaration made) {
    const auto kind = made.type.kind;
    if (take_if("*")) made.shape = Shape::kOptional;
    made.at = token_.at;
    made.name = name("a field or type");
    if (made.shape == Shape::kOptional) {
      if (kind == Type::Kind::kString || kind == Type::Kind::kOpaque)
        fail(made.type.at, "only a type that has a name can be optional: typedef it first");
      return made;
    }
    if (take_if("[")) {
      if (kind == Type::Kind::kString) fail(made.at, "a string's length varies: string name<>, or <MOST>");
      made.shape = Shape::kFixed;
      made.size = value("the size of an array");
      expect("]", "after the size of an array");
    } else if (take_if("<")) {
      made.shape = Shape::kVariable;
      if (!is(">")) made.size = value("the largest size of an array");
      expect(">", "after the largest size of an array");
    } else if (kind == Type::Kind::kString || kind == Type::Kind::kOpaque) {
      fail(made.at, kind == Type::Kind::kString ? "a string needs its largest length: string name<MOST>, or <>"
                                                : "opaque bytes need their number: opaque name[SIZE], <MOST> or <>");
    }
    return made;
  }
  Type type() {
    Type made{Type::Kind::kVoid, {}, token_.at};
    if (token_.kind != Token::Kind::kName) {
      fail(token_.at, fmt::format("a type expected, not {}", found()));
      return made;
    }
    const auto word = take().text;
    using Kind = Type::Kind;
    made.name = word;
    if (word == "unsigned")
      finish_unsigned(made);
    else if (const auto known = std::ranges::find(kTypes, word, &std::pair<std::string_view, Kind>::first);
             known != kTypes.end())
      made.kind = known->second;
    else if (word == "quadruple")
      fail(made.at,
           "quadruple is not supported: C++, Fortran and Python have no such type in common; use double, or "
           "opaque name[16]");
    else if (word == "short" || word == "char")
      fail(made.at, fmt::format("XDR has no {}: use int, or opaque bytes", word));
    else if (is_keyword(word))
      fail(made.at, fmt::format("a type expected, not '{}'", word));
    else
      made = {Kind::kNamed, std::string(word), made.at};
    return made;
  }
  void finish_unsigned(Type &made) {
    if (is("short") || is("char")) fail(token_.at, fmt::format("XDR has no {}: use unsigned int", token_.text));
    made.kind = is("hyper") ? Type::Kind::kUnsignedHyper : Type::Kind::kUnsigned;
    const bool has_more = is("hyper") || is("int") || is("long");
    made.name = fmt::format("unsigned {}", has_more ? take().text : "int");
  }

  // --- programs ------------------------------------------------------------------------------------------------------------
  void program() {
    Program made;
    made.at = token_.at;
    made.name = name("a program");
    expect("{", "before the versions of a program");
    do made.versions.push_back(version());
    while (is("version"));
    expect("}", "after the versions of a program");
    expect("=", "before a program's number");
    made.number = value("a program's number");
    interface_.definitions.emplace_back(std::move(made));
  }
  Version version() {
    Version made;
    expect("version", "in a program");
    made.at = token_.at;
    made.name = name("a version");
    expect("{", "before the procedures of a version");
    do made.procedures.push_back(procedure());
    while (!fault_ && !is("}"));
    expect("}", "after the procedures of a version");
    expect("=", "before a version's number");
    made.number = value("a version's number");
    expect(";", "after a version");
    return made;
  }
  Procedure procedure() {
    Procedure made;
    made.result = argument();
    made.at = token_.at;
    made.name = name("a procedure");
    expect("(", "before the arguments of a procedure");
    if (!is(")")) arguments(made);
    expect(")", "after the arguments of a procedure");
    expect("=", "before a procedure's number");
    made.number = value("a procedure's number");
    if (take_if("[")) attributes(made);
    expect(";", "after a procedure");
    return made;
  }
  /// `[short]`, `[bulk, arrival]`: behind the number, where neither XDR nor C could mean something.
  void attributes(Procedure &made) {
    bool has_kind = false;
    do {
      const auto at = token_.at;
      if (take_if("arrival")) {
        made.tells_arrival = true;
        continue;
      }
      if (has_kind) return fail(at, "a procedure has one kind of handler");
      has_kind = true;
      if (take_if("fiber"))
        made.kind = HandlerKind::kFiber;
      else if (take_if("short"))
        made.kind = HandlerKind::kShort;
      else if (take_if("bulk"))
        made.kind = HandlerKind::kBulk;
      else if (take_if("bulk_now"))
        made.kind = HandlerKind::kBulkNow;
      else
        return fail(at, fmt::format("fiber, short, bulk, bulk_now or arrival expected, not {}", found()));
    } while (take_if(","));
    expect("]", "after what a procedure is");
  }
  void arguments(Procedure &made) {
    do {
      if (is("bulk")) {
        const auto at = take().at;
        if (made.bulk != Bulk::kNone) fail(at, "a procedure has one bulk parameter at most");
        made.bulk = bulk();
        continue;
      }
      auto type = argument();
      if (type.kind == Type::Kind::kVoid && (!made.arguments.empty() || is(",")) && !fault_)
        return fail(type.at, "void is no argument beside others");
      if (type.kind != Type::Kind::kVoid) made.arguments.push_back(std::move(type));
    } while (take_if(","));
  }
  Bulk bulk() {
    if (take_if("in")) return Bulk::kIn;
    if (take_if("out")) return Bulk::kOut;
    if (take_if("inout")) return Bulk::kInOut;
    fail(token_.at, fmt::format("bulk in, bulk out or bulk inout expected, not {}", found()));
    return Bulk::kNone;
  }
  /// rpcgen allows `string` as an argument and a result, and struct, union and enum before a name.
  Type argument() {
    if (is("struct") || is("union") || is("enum")) take();
    auto made = type();
    if (made.kind == Type::Kind::kString && take_if("<"))
      expect(">", "after 'string<': a larger bound needs a typedef");
    if (made.kind == Type::Kind::kOpaque) fail(made.at, "opaque bytes need a name here: typedef them first");
    return made;
  }

  Lexer lexer_;
  Token token_;
  std::optional<Fault> fault_;
  int nesting_ = 0;
  Interface interface_;
};

}  // namespace

std::variant<Interface, Fault> parse(std::string_view source) { return Parser(source).parse(); }

std::variant<Interface, Fault> read(std::string_view source) {
  auto parsed = parse(source);
  if (auto *interface = std::get_if<Interface>(&parsed))
    if (auto fault = check(*interface)) return *fault;
  return parsed;
}

}  // namespace xdr::idl
