// SPDX-License-Identifier: BSD-3-Clause
#include "xdr/idl/lexer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

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

/// A branch that is not taken: up to its #else or #endif.
void Lexer::skip_branch() {
  const auto begin = at_;
  for (int depth = 1; depth > 0;) {
    skip_line();
    if (rest_.empty()) {
      fail(begin, "this condition has no #endif");
      return;
    }
    advance(1);
    const auto text = line();
    const auto mark = text.find_first_not_of(" \t");
    if (mark == std::string_view::npos || text[mark] != '#') continue;
    const auto word = word_after(text, mark + 1);
    if (word.starts_with("if"))
      ++depth;
    else if (word == "endif")
      --depth;
    else if (word == "else" && depth == 1) {
      ++open_conditions_;
      depth = 0;
    }
  }
  skip_line();
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
  const auto word = word_after(line(), 1);
  if (word == "ifdef" || word == "ifndef") {
    const auto condition = word_after(line(), static_cast<std::size_t>(word.data() - rest_.data()) + word.size());
    if ((condition == "RPC_HDR") != (word == "ifdef")) {
      skip_branch();
    } else {
      ++open_conditions_;
      skip_line();
    }
  } else if ((word == "else" || word == "endif") && open_conditions_ > 0) {
    --open_conditions_;
    if (word == "else")
      skip_branch();
    else
      skip_line();
  } else if (word == "else" || word == "endif") {
    fail(at_, fmt::format("there is no condition to this #{}", word));
  } else if (word.empty() || is_digit(word[0]) || word == "line") {
    skip_line();  // a line marker
  } else {
    fail(at_,
         fmt::format("the preprocessor's #{} is not understood here; for a number, write: const NAME = VALUE;", word));
  }
  return true;
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

Token Lexer::next() {
  while (skip_space() || skip_comment() || directive()) {}
  Token token{Token::Kind::kEnd, {}, at_, {}};
  if (rest_.empty()) {
    if (open_conditions_ > 0) fail(at_, "a condition has no #endif");
    return token;
  }
  const char first = rest_[0];
  if (is_digit(first) || first == '-') return number();
  std::size_t size = 1;
  if (is_letter(first)) {
    while (size < rest_.size() && is_name(rest_[size])) ++size;
    token.kind = Token::Kind::kName;
  } else if (std::string_view("{}()[]<>*=,;:").find(first) != std::string_view::npos) {
    token.kind = Token::Kind::kMark;
  } else if (rest_.starts_with("//")) {
    return fail(at_, "comments are written /* like this */");
  } else {
    return fail(at_, fmt::format("a character that means nothing here (0x{:02x})", static_cast<unsigned char>(first)));
  }
  token.text = rest_.substr(0, size);
  advance(size);
  return token;
}

}  // namespace xdr::idl
