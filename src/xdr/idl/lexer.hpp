// SPDX-License-Identifier: BSD-3-Clause
// The words of an interface file (RFC 4506, section 6.2; RFC 5531, section 12.2), and where they stand.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xdr::idl {

struct Position {
  int line = 1, column = 1;  ///< from 1; a tabulator is one column
};

/// What is wrong with a file, and where.
struct Fault {
  Position at;
  std::string text;
};

/// "FILE:LINE:COLUMN: error: TEXT", the line, and a mark below the place.
std::string describe(const Fault &fault, std::string_view file, std::string_view source);

/// A whole number that a file may name: of at most 64 bits, with or without sign.
struct Number {
  std::uint64_t magnitude = 0;
  bool negative = false;

  friend bool operator==(const Number &, const Number &) = default;
};

struct Token {
  enum class Kind { kEnd, kName, kNumber, kMark };
  Kind kind = Kind::kEnd;
  std::string_view text;  ///< as it stands in the source
  Position at;
  Number number;  ///< of a kNumber
};

/// Cuts a file into words. Comments are left out. Lines that begin with '%' are no words, but kept: they are for the
/// output in C. Of the C preprocessor it knows #define and #undef of what is one number, one name, or nothing; #ifdef,
/// #ifndef, #if and #elif (of one name or number, `defined` and `!`), #else and #endif. RPC_HDR is defined at first,
/// and nothing else. It skips line markers, and refuses the rest.
class Lexer {
 public:
  /// `source` outlives the lexer and its tokens.
  explicit Lexer(std::string_view source) : rest_(source) {}
  /// The next word; kEnd at the end, and after a fault.
  Token next();
  const std::optional<Fault> &fault() const { return fault_; }
  /// The lines that begin with '%' since the last call, without it.
  std::string take_passage() { return std::exchange(passage_, {}); }

 private:
  Token fail(Position at, std::string text);
  void advance(std::size_t characters);
  std::string_view line() const { return rest_.substr(0, rest_.find('\n')); }
  void skip_line() { advance(line().size()); }
  bool skip_space();
  bool skip_comment();
  bool directive();
  std::string_view directive_name();
  bool holds(std::string_view directive, Position at);
  enum class Others { kMayBeTaken, kAreSkipped };
  void skip_branch(Position begin, Others others);
  void define(Position at);
  void undefine(Position at);
  Token replaced(const Token &name) const;
  std::vector<Token> words_of_line();
  Token word();
  Token number();

  std::string_view rest_;
  Position at_;
  bool line_begins_ = true;  ///< only space since the line's beginning
  int open_conditions_ = 0;
  std::map<std::string_view, Token> defined_ = {
      {"RPC_HDR", {Token::Kind::kNumber, "1", {}, {1, false}}}};  ///< kEnd: as nothing
  std::optional<Fault> fault_;
  std::string passage_;
};

}  // namespace xdr::idl
