// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/lexer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

namespace xdr::idl {
namespace {

// RFC 4506 is ASCII: what the locale calls a letter does not count.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_letter(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v'; }

/// Of a digit in any base; what is none is too large for each.
unsigned value_of(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 99;
}

/// Characters of a line that has a fault.
constexpr std::size_t kMostShown = 160;

std::string_view word_after(std::string_view text, std::size_t begin) {
  while (begin < text.size() && is_space(text[begin])) ++begin;
  std::size_t end = begin;
  while (end < text.size() && is_name(text[end])) ++end;
  return text.substr(begin, end - begin);
}

/// Of `( WORD )`, the word.
std::span<const Token> without_parentheses(std::span<const Token> words) {
  return words.size() == 3 && words[0].text == "(" && words[2].text == ")" ? words.subspan(1, 1) : words;
}

bool is_one_value(std::span<const Token> words) {
  return words.size() == 1 && (words[0].kind == Token::Kind::kName || words[0].kind == Token::Kind::kNumber);
}

}  // namespace

std::string describe(const Fault &fault, std::string_view file, std::string_view source) {
  auto text = fmt::format("{}:{}:{}: error: {}", file, fault.at.line, fault.at.column, fault.text);
  for (int line = 1; line < fault.at.line; ++line) source.remove_prefix(std::min(source.find('\n') + 1, source.size()));
  const auto line = source.substr(0, source.find('\n'));
  const auto place = static_cast<std::size_t>(fault.at.column - 1);
  // Of a long line what is about the place.
  const auto begin = place > kMostShown / 2 && line.size() > kMostShown ? place - kMostShown / 2 : 0;
  const auto shown = line.substr(begin, kMostShown);
  std::string below(line.substr(begin, place - begin));
  std::ranges::replace_if(
      below, [](char c) { return c != '\t'; }, ' ');
  const auto *before = begin > 0 ? "... " : "", *after = begin + shown.size() < line.size() ? " ..." : "";
  return text + fmt::format("\n    {}{}{}\n    {:{}}{}^", before, shown, after, "", std::strlen(before), below);
}

Token Lexer::fail(Position at, std::string text) {
  if (!fault_) fault_ = Fault{at, std::move(text)};
  rest_ = {};
  return {};
}

void Lexer::advance(std::size_t characters) {
  for (const char c : rest_.substr(0, characters)) {
    if (c == '\n') {
      ++at_.line;
      at_.column = 1;
      line_begins_ = true;
    } else {
      ++at_.column;
      line_begins_ = line_begins_ && is_space(c);
    }
  }
  rest_.remove_prefix(std::min(characters, rest_.size()));
}

/// Returns whether there was any.
bool Lexer::skip_space() {
  const auto space = static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_space) - rest_.begin());
  advance(space);
  return space > 0;
}

bool Lexer::skip_comment() {
  if (!rest_.starts_with("/*")) return false;
  const auto end = rest_.find("*/", 2);
  if (end == std::string_view::npos)
    fail(at_, "this comment does not end");
  else
    advance(end + 2);
  return true;
}

/// What stands between here and the line's end, without comments; one may lead to another line.
std::vector<Token> Lexer::words_of_line() {
  std::vector<Token> words;
  while (!rest_.empty() && rest_[0] != '\n') {
    if (is_space(rest_[0]))
      advance(1);
    else if (rest_.starts_with("//"))
      skip_line();
    else if (!skip_comment())
      words.push_back(word());
  }
  return words;
}

/// Passes over a '#' and the name behind it.
std::string_view Lexer::directive_name() {
  const auto name = word_after(line(), 1);
  advance(static_cast<std::size_t>(name.data() - rest_.data()) + name.size());
  return name;
}

/// Reads the condition of an #if, #ifdef or #ifndef.
bool Lexer::holds(std::string_view directive, Position at) {
  const auto all = words_of_line();
  if (fault_) return false;
  auto words = std::span<const Token>(all);
  bool wanted = directive != "ifndef";
  bool asks_whether_defined = directive != "if";
  if (!asks_whether_defined) {
    for (; !words.empty() && words[0].text == "!"; words = words.subspan(1)) wanted = !wanted;
    asks_whether_defined = !words.empty() && words[0].text == "defined";
    if (asks_whether_defined) words = words.subspan(1);
  }
  words = without_parentheses(words);
  if (is_one_value(words)) {
    if (!asks_whether_defined)  // what is not defined is 0
      return (replaced(words[0]).number.magnitude != 0) == wanted;
    if (words[0].kind == Token::Kind::kName) return defined_.contains(words[0].text) == wanted;
  }
  fail(at, "conditions are understood of one name or number: #ifdef NAME, #if NAME, #if !defined(NAME), #if 0");
  return false;
}

/// A branch that is not taken: up to its #endif, or another branch that is.
void Lexer::skip_branch(Position begin, Others others) {
  for (int depth = 1; depth > 0;) {
    skip_line();
    if (rest_.empty()) {
      fail(begin, "this condition has no #endif");
      return;
    }
    advance(1);
    const auto mark = line().find_first_not_of(" \t");
    if (mark == std::string_view::npos || rest_[mark] != '#') continue;
    advance(mark);
    const auto at = at_;
    const auto name = directive_name();
    const bool may_be_taken = depth == 1 && others == Others::kMayBeTaken;
    if (name.starts_with("if")) {
      ++depth;
    } else if (name == "endif") {
      --depth;
    } else if (may_be_taken && (name == "else" || (name == "elif" && holds("if", at)))) {
      ++open_conditions_;
      depth = 0;
    }
  }
  skip_line();
}

void Lexer::define(Position at) {
  const auto words = words_of_line();
  if (fault_) return;
  if (words.empty() || words[0].kind != Token::Kind::kName) {
    fail(at, "a name expected behind #define");
    return;
  }
  const auto name = words[0].text;
  const auto behind = std::span<const Token>(words).subspan(1);
  const bool has_arguments = !behind.empty() && behind[0].text.data() == name.data() + name.size();
  const auto value = has_arguments ? behind : without_parentheses(behind);
  if (value.empty())
    defined_[name] = {};
  else if (is_one_value(value))
    defined_[name] = value[0];
  else
    fail(at, "#define is understood of one number, one name, or nothing");
}

void Lexer::undefine(Position at) {
  const auto words = words_of_line();
  if (fault_) return;
  if (words.size() == 1 && words[0].kind == Token::Kind::kName)
    defined_.erase(words[0].text);
  else
    fail(at, "one name expected behind #undef");
}

/// A line of the preprocessor's, or one for rpcgen's output.
bool Lexer::directive() {
  if (!line_begins_ || rest_.empty()) return false;
  if (rest_[0] == '%' && at_.column == 1) {
    passage_ += fmt::format("{}\n", line().substr(1));
    skip_line();
    return true;
  }
  if (rest_[0] != '#') return false;
  const auto at = at_;
  const auto name = directive_name();
  if (name == "if" || name == "ifdef" || name == "ifndef") {
    if (holds(name, at))
      ++open_conditions_;
    else
      skip_branch(at, Others::kMayBeTaken);
  } else if ((name == "elif" || name == "else" || name == "endif") && open_conditions_ > 0) {
    --open_conditions_;
    if (name == "endif")
      skip_line();
    else
      skip_branch(at, Others::kAreSkipped);
  } else if (name == "elif" || name == "else" || name == "endif") {
    fail(at, fmt::format("there is no condition to this #{}", name));
  } else if (name == "define") {
    define(at);
  } else if (name == "undef") {
    undefine(at);
  } else if (name.empty() || is_digit(name[0]) || name == "line") {
    skip_line();  // a line marker
  } else {
    fail(at, fmt::format("the preprocessor's #{} is not understood here", name));
  }
  return true;
}

/// What a name stands for, where it stands.
Token Lexer::replaced(const Token &name) const {
  auto token = name;
  for (std::size_t steps = 0; token.kind == Token::Kind::kName && steps <= defined_.size(); ++steps) {
    const auto definition = defined_.find(token.text);
    if (definition == defined_.end()) break;
    token = definition->second;
  }
  token.at = name.at;
  return token;
}

Token Lexer::number() {
  Token token{Token::Kind::kNumber, {}, at_, {}};
  std::size_t end = rest_[0] == '-' ? 1 : 0;
  token.number.negative = end == 1;
  unsigned base = 10;
  if (rest_.substr(end).starts_with("0x") || rest_.substr(end).starts_with("0X")) {
    base = 16;
    end += 2;
  } else if (rest_.substr(end, 1) == "0") {
    base = 8;
  }
  const auto digits = end;
  while (end < rest_.size() && is_name(rest_[end])) ++end;
  token.text = rest_.substr(0, end);
  if (digits == end) return fail(at_, "a number has no digits");
  for (const char c : rest_.substr(digits, end - digits)) {
    const unsigned digit = value_of(c);
    if (digit >= base) return fail(at_, fmt::format("'{}' is no number", token.text));
    if (token.number.magnitude > (std::numeric_limits<std::uint64_t>::max() - digit) / base)
      return fail(at_, fmt::format("{} does not fit into 64 bits", token.text));
    token.number.magnitude = token.number.magnitude * base + digit;
  }
  if (token.number.negative && token.number.magnitude > std::uint64_t{1} << 63)
    return fail(at_, fmt::format("{} does not fit into 64 bits", token.text));
  token.number.negative = token.number.negative && token.number.magnitude > 0;
  advance(end);
  return token;
}

/// The word that begins here.
Token Lexer::word() {
  const char first = rest_[0];
  if (is_digit(first) || first == '-') return number();
  Token token{Token::Kind::kMark, {}, at_, {}};
  std::size_t size = 1;
  if (is_letter(first)) {
    while (size < rest_.size() && is_name(rest_[size])) ++size;
    token.kind = Token::Kind::kName;
  } else if (rest_.starts_with("//")) {
    return fail(at_, "comments are written /* like this */");
  } else if (std::string_view("{}()[]<>*=,;:!").find(first) == std::string_view::npos) {
    return fail(at_, fmt::format("a character that means nothing here (0x{:02x})", static_cast<unsigned char>(first)));
  }
  token.text = rest_.substr(0, size);
  advance(size);
  return token;
}

Token Lexer::next() {
  for (;;) {
    while (skip_space() || skip_comment() || directive()) {}
    if (rest_.empty()) {
      if (open_conditions_ > 0) fail(at_, "a condition has no #endif");
      return {Token::Kind::kEnd, {}, at_, {}};
    }
    auto token = word();
    if (token.kind != Token::Kind::kName) return token;
    token = replaced(token);
    if (token.kind != Token::Kind::kEnd) return token;
  }
}

}  // namespace xdr::idl
