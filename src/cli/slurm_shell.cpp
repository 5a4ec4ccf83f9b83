// SPDX-License-Identifier: BSD-3-Clause
#include "slurm_shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <utility>

namespace nessie::cli {

namespace {

constexpr int kDeepest = 100;  // substitutions within each other
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kMeta = " \t\r\n;&|<>()";

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "NAME=", "NAME+=" and "NAME[…]=": how much of the word that is; 0: it is no assignment.
std::size_t assignment_length(std::string_view word) {
  if (word.empty() || !is_name_start(word.front())) return 0;
  std::size_t i = 1;
  while (i < word.size() && is_name_part(word[i])) ++i;
  if (i < word.size() && word[i] == '[') {
    i = word.find(']', i);
    if (i == std::string_view::npos) return 0;
    ++i;
  }
  if (i < word.size() && word[i] == '+') ++i;
  return i < word.size() && word[i] == '=' ? i + 1 : 0;
}

std::string name_in(std::string_view word) { return std::string(word.substr(0, word.find_first_of("[+="))); }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), limit_(text.size()) {}

  Result<ShellScript> read() {
    if (!commands('\0')) return *error_;
    return std::move(script_);
  }

 private:
  struct HereDocument {
    std::string delimiter;
    bool strips_tabs;
  };

  // --- what stands where ----------------------------------------------------------------------------------------------

  bool at_end() const { return at_ >= limit_; }
  char here(std::size_t ahead = 0) const { return at_ + ahead < limit_ ? text_[at_ + ahead] : '\0'; }
  bool stands(std::string_view what) const { return !at_end() && text_.substr(at_, limit_ - at_).starts_with(what); }

  bool skip(std::string_view what) {
    if (!stands(what)) return false;
    at_ += what.size();
    return true;
  }

  bool fail(std::size_t offset, std::string_view what) {
    if (!error_) error_ = Error{Code::kInvalidArgument, fmt::format("line {}: {}", line_of(text_, offset), what)};
    return false;
  }

  void skip_blanks() {
    while (!at_end() && (kBlanks.find(here()) != std::string_view::npos || stands("\\\n") || stands("\\\r\n")))
      at_ += here() == '\\' ? (here(1) == '\r' ? 3 : 2) : 1;
  }

  void skip_line() { at_ = std::min(limit_, text_.find('\n', at_)); }

  bool skip_newline() {
    if (here() != '\n' || at_end()) return false;
    ++at_;
    for (const auto &document : pending_) skip_here_document(document);
    pending_.clear();
    return true;
  }

  void skip_here_document(const HereDocument &document) {
    const auto start = at_;
    while (!at_end()) {
      const auto end = std::min(limit_, text_.find('\n', at_));
      auto line = text_.substr(at_, end - at_);
      at_ = std::min(limit_, end + 1);
      if (document.strips_tabs) line.remove_prefix(std::min(line.size(), line.find_first_not_of('\t')));
      if (line == document.delimiter) break;
    }
    script_.here_documents.push_back({start, text_.substr(start, at_ - start)});
  }

  /// Blanks, line ends and comments.
  void skip_space() {
    for (;;) {
      skip_blanks();
      if (here() == '#')
        skip_line();
      else if (!skip_newline())
        return;
    }
  }

  // --- words ----------------------------------------------------------------------------------------------------------

  bool single_quotes(bool has_escapes) {
    const auto start = at_++;
    while (!at_end() && here() != '\'') at_ += has_escapes && here() == '\\' ? 2 : 1;
    if (at_end()) return fail(start, "the quote does not end");
    ++at_;
    return true;
  }

  bool double_quotes() {
    const auto start = at_++;
    while (!at_end() && here() != '"') {
      if (here() == '\\')
        at_ += 2;
      else if (here() == '$' || here() == '`') {
        if (!expansion(true)) return false;
      } else
        ++at_;
    }
    if (at_end()) return fail(start, "the quote does not end");
    ++at_;
    return true;
  }

  bool back_quotes() {
    const auto start = at_++;
    auto end = at_;
    while (end < limit_ && text_[end] != '`') end += text_[end] == '\\' ? 2 : 1;
    if (end >= limit_) return fail(start, "the back quote does not end");
    const auto outer_limit = std::exchange(limit_, end);
    const bool read = nested([&] { return commands('\0'); });
    limit_ = outer_limit;
    at_ = end + 1;
    return read;
  }

  bool braces(bool quoted) {
    const auto start = at_;
    at_ += 2;
    while (!at_end() && here() != '}') {
      if (here() == '\\')
        at_ += 2;
      else if (here() == '\'' && !quoted) {
        if (!single_quotes(false)) return false;
      } else if (here() == '"') {
        if (!double_quotes()) return false;
      } else if (here() == '$' || here() == '`') {
        if (!expansion(quoted)) return false;
      } else
        ++at_;
    }
    if (at_end()) return fail(start, "${ does not end");
    ++at_;
    return true;
  }

  /// Behind "((": true, and behind the "))" that ends it, if that is what it is, and not two subshells.
  bool arithmetic() {
    int depth = 2;
    for (auto i = at_; i < limit_; ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] != ')') continue;
      --depth;
      if (depth == 1 && (i + 1 >= limit_ || text_[i + 1] != ')')) return false;
      if (depth > 0) continue;
      at_ = i + 1;
      return true;
    }
    return false;
  }

  /// What "$" or "`" begins.
  bool expansion(bool quoted) {
    if (here() == '`') return nested([&] { return back_quotes(); });
    if (here(1) == '{') return nested([&] { return braces(quoted); });
    if (here(1) == '\'' && !quoted) return ++at_, single_quotes(true);
    if (here(1) == '(') return substitution(1);
    ++at_;
    return true;
  }

  /// "$(", "<(" or ">(", with `lead` characters before the parenthesis.
  bool substitution(std::size_t lead) {
    const auto start = at_;
    at_ += lead + 1;
    if (here() == '(' && text_[start] == '$') {
      ++at_;
      if (arithmetic()) return true;
      --at_;
    }
    return nested([&] { return commands(')') || fail(start, "the parenthesis does not end"); });
  }

  template <class Read> bool nested(Read read) {
    if (depth_ >= kDeepest) return fail(at_, "too much within each other");
    ++depth_;
    const bool all_read = read();
    --depth_;
    return all_read;
  }

  bool stops_word() const { return kMeta.find(here()) != std::string_view::npos; }

  /// False at the end of what can be understood; nothing is read where no word begins.
  bool word(ShellWord &found) {
    const auto start = at_ = std::min(at_, limit_);
    while (!at_end()) {
      const char c = here();
      const bool is_pattern =
          c == '(' && at_ > start && std::string_view("?*+@!").find(text_[at_ - 1]) != std::string_view::npos;
      if ((c == '<' || c == '>') && here(1) == '(') {
        if (!substitution(1)) return false;
      } else if (is_pattern) {
        if (!pattern()) return false;
      } else if (stops_word()) {
        break;
      } else if (c == '\\') {
        at_ += 2;
      } else if (c == '\'') {
        if (!single_quotes(false)) return false;
      } else if (c == '"') {
        if (!double_quotes()) return false;
      } else if (c == '$' || c == '`') {
        if (!expansion(false)) return false;
      } else {
        ++at_;
      }
    }
    at_ = std::min(at_, limit_);
    found = {start, text_.substr(start, at_ - start)};
    return true;
  }

  /// "@(a|b)" and its like.
  bool pattern() {
    const auto start = at_++;
    while (!at_end() && here() != ')') {
      ShellWord part;
      if (here() == '|' || here() == '(' || kBlanks.find(here()) != std::string_view::npos)
        ++at_;
      else if (const auto before = at_; !word(part) || at_ == before)
        return fail(start, "the pattern is not understood");
    }
    if (at_end()) return fail(start, "the pattern does not end");
    ++at_;
    return true;
  }

  // --- commands -------------------------------------------------------------------------------------------------------

  /// Up to `closer`, which is read: ')' of a subshell, ';' of what belongs to a case's pattern, or the end.
  bool commands(char closer) {
    for (;;) {
      skip_blanks();
      if (at_end()) return closer == '\0';
      const char c = here();
      if (c == ')' && closer == ')') return ++at_, true;
      if (closer == ';' && ends_case_part()) return true;
      if (c == '#')
        skip_line();
      else if (c == '\n')
        skip_newline();
      else if (c == ';' || c == '|' || (c == '&' && here(1) != '>'))
        ++at_;
      else if (c == '(') {
        if (!subshell()) return false;
      } else if (c == ')')
        return fail(at_, "a parenthesis too many");
      else if (!command())
        return false;
    }
  }

  bool ends_case_part() {
    if (skip(";;&") || skip(";;") || skip(";&")) return true;
    return stands("esac") && (at_ + 4 >= limit_ || kMeta.find(text_[at_ + 4]) != std::string_view::npos);
  }

  bool subshell() {
    const auto start = at_++;
    if (here() == '(') {
      ++at_;
      if (arithmetic()) return true;
      --at_;
    }
    return nested([&] { return commands(')') || fail(start, "the parenthesis does not end"); });
  }

  /// Reads "<", "2>&1", "&>" and so on, with the word behind it. `is_one`: whether there was one.
  bool redirection(bool &is_one) {
    auto i = at_;
    while (i < limit_ && std::isdigit(static_cast<unsigned char>(text_[i])) != 0) ++i;
    if (i == at_ && stands("&>")) ++i;
    is_one = i < limit_ && (text_[i] == '<' || text_[i] == '>') && (i > at_ || i + 1 >= limit_ || text_[i + 1] != '(');
    if (!is_one) return true;
    at_ = i;
    if (stands("<<") && !stands("<<<")) return here_document();
    for (const auto *sign : {"<<<", ">>", "<&", ">&", "<>", ">|", "<", ">"})
      if (skip(sign)) break;
    skip_blanks();
    ShellWord target;
    return word(target);
  }

  bool here_document() {
    at_ += 2;
    const bool strips_tabs = skip("-");
    skip_blanks();
    ShellWord delimiter;
    if (!word(delimiter)) return false;
    std::string text;
    for (const char c : delimiter.raw)
      if (c != '\'' && c != '"' && c != '\\') text += c;
    pending_.push_back({text, strips_tabs});
    return true;
  }

  void assign(const std::string &name, std::string_view raw) {
    if (const auto value = literal_start(raw); !value.empty()) script_.variables.emplace(name, value);
  }

  /// What stands in the word up to the first expansion, for which "$" stands, without quotes.
  static std::string literal_start(std::string_view raw) {
    const auto end = raw.find_first_of("$`");
    std::string start(raw.substr(0, end));
    if (end != std::string_view::npos) start += '$';
    std::erase_if(start, [](char c) { return c == '"' || c == '\'' || c == '\\'; });
    std::ranges::replace(start, '\n', ' ');
    return start;
  }

  /// "(a b c)" behind "NAME=".
  bool array(const std::string &name) {
    const auto start = at_++;
    std::string all;
    for (;;) {
      skip_space();
      if (at_end()) return fail(start, "the parenthesis does not end");
      if (here() == ')') break;
      ShellWord element;
      const auto before = at_;
      if (!word(element)) return false;
      if (at_ == before) return fail(at_, "the array is not understood");
      if (!all.empty()) all += ' ';
      all += literal_start(element.raw);
    }
    ++at_;
    script_.variables.emplace(name, all);
    return true;
  }

  bool command() {
    ShellCommand found;
    bool done = false;
    while (!done && next_part(found, done)) {}
    if (error_) return false;
    if (found.words.empty()) return true;
    found.in_background = here() == '&' && here(1) != '&';
    script_.commands.push_back(std::move(found));
    return true;
  }

  /// A word, an assignment, a redirection, or the end, which is not read. False: it is not understood.
  bool next_part(ShellCommand &command, bool &done) {
    skip_blanks();
    bool is_redirection = false;
    if (at_end() || here() == '#') return done = true;
    if (!redirection(is_redirection)) return false;
    if (is_redirection) return true;
    if (here() == '(' && command.words.size() == 1) return function(command, done);
    if (here() == '(' && command.words.empty()) return done = true;  // "if (", "! ("
    if (here() == '(') return fail(at_, "the parenthesis is not understood");
    if (stops_word() && (here() != '<' && here() != '>')) return done = true;
    ShellWord found;
    if (!word(found)) return false;
    return take(found, command, done);
  }

  bool take(const ShellWord &found, ShellCommand &command, bool &done) {
    const auto length = assignment_length(found.raw);
    const bool is_alone = length == found.raw.size();
    if (length > 0 && here() == '(' && is_alone) return array(name_in(found.raw));
    if (length > 0) assign(name_in(found.raw), found.raw.substr(length));
    if (length > 0 && command.words.empty()) return true;
    if (command.words.empty() && is_reserved(found.raw)) return reserved(found, done);
    command.words.push_back(found);
    return true;
  }

  static bool is_reserved(std::string_view word) {
    return is_one_of(word, {"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "{", "}", "!", "case",
                            "esac", "for", "select", "function", "[[", "coproc"});
  }

  bool reserved(const ShellWord &found, bool &done) {
    if (found.raw == "case") return nested([&] { return case_body(found.offset); });
    if (found.raw == "for" || found.raw == "select") return done = true, loop_head();
    if (found.raw == "[[") return condition(found.offset);
    if (found.raw != "function") return true;
    skip_blanks();
    ShellWord name;
    if (!word(name)) return false;
    script_.functions.emplace(name.raw);
    skip_blanks();
    (void)skip("()");
    return done = true;
  }

  bool function(ShellCommand &command, bool &done) {
    const auto start = at_++;
    skip_blanks();
    if (!skip(")")) return fail(start, "the parenthesis is not understood");
    script_.functions.emplace(command.words.front().raw);
    command.words.clear();
    return done = true;
  }

  /// Up to the line's end, ";" or "do".
  bool loop_head() {
    skip_blanks();
    if (skip("((")) return arithmetic() || fail(at_, "the loop is not understood");
    while (!at_end() && here() != '\n' && here() != ';') {
      ShellWord part;
      const auto before = at_;
      if (!word(part)) return false;
      if (at_ == before) return fail(at_, "the loop is not understood");
      if (part.raw == "do") return true;  // "for i do": over the arguments
      skip_blanks();
      if (here() == '#') skip_line();
    }
    return true;
  }

  bool condition(std::size_t start) {
    for (;;) {
      skip_blanks();
      if (at_end()) return fail(start, "[[ does not end");
      ShellWord part;
      if (stops_word())
        ++at_;
      else if (!word(part))
        return false;
      else if (part.raw == "]]")
        return true;
    }
  }

  bool case_body(std::size_t start) {
    ShellWord subject, in;
    skip_space();
    if (!word(subject)) return false;
    skip_space();
    if (!word(in)) return false;
    if (in.raw != "in") return fail(start, "case without in");
    for (;;) {
      skip_space();
      if (at_end()) return fail(start, "case does not end");
      if (ends_case_part()) return skip("esac") || fail(start, "case is not understood");
      if (!case_pattern() || !commands(';')) return fail(start, "case does not end");
    }
  }

  bool case_pattern() {
    (void)skip("(");
    while (!at_end() && here() != ')') {
      ShellWord part;
      const auto before = at_;
      if (here() == '|' || here() == '\n')
        ++at_;
      else if (!word(part))
        return false;
      skip_blanks();
      if (at_ == before) return fail(at_, "the pattern is not understood");
    }
    return skip(")");
  }

  std::string_view text_;
  std::size_t at_ = 0, limit_;
  int depth_ = 0;
  std::vector<HereDocument> pending_;
  ShellScript script_;
  std::optional<Error> error_;
};

}  // namespace

Result<ShellScript> read_shell(std::string_view text) { return Reader(text).read(); }

std::optional<std::string> literal(std::string_view raw) {
  std::string text;
  char quote = '\0';
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (quote == '\0' && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote && quote != '\0')
      quote = '\0';
    else if ((quote != '\'' && std::string_view("$`").find(c) != std::string_view::npos) ||
             (raw.size() > 1 && quote == '\0' && std::string_view("*?[<>").find(c) != std::string_view::npos))
      return std::nullopt;
    else if (c != '\\' || quote == '\'')
      text += c;
    else if (++i < raw.size() && raw[i] != '\n')
      text += raw[i];
  }
  return text;
}

std::optional<std::string> variable_in(std::string_view raw) {
  if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"') raw = raw.substr(1, raw.size() - 2);
  if (!raw.starts_with('$')) return std::nullopt;
  raw.remove_prefix(1);
  if (raw.starts_with('{') && raw.ends_with('}')) raw = raw.substr(1, raw.size() - 2);
  for (const std::string_view all : {"[@]", "[*]"})
    if (raw.ends_with(all)) raw.remove_suffix(all.size());
  if (raw.empty() || !is_name_start(raw.front()) || !std::all_of(raw.begin(), raw.end(), is_name_part))
    return std::nullopt;
  return std::string(raw);
}

std::size_t line_of(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  return 1 +
         static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

}  // namespace nessie::cli
