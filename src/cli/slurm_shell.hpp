// SPDX-License-Identifier: BSD-3-Clause
// Reads a shell script far enough to know its commands: where each word stands, past quotes, here-documents, comments,
// continued lines, substitutions and control structures. Nothing is expanded or run.
#pragma once

#include <nessie/result.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::cli {

struct ShellWord {
  std::size_t offset = 0;  ///< in the script
  std::string_view raw;    ///< as it stands there, with its quotes
};

/// A command with its arguments, without redirections and without the assignments in front of it.
struct ShellCommand {
  std::vector<ShellWord> words;
  bool in_background = false;  ///< "&" follows
};

struct ShellScript {
  std::vector<ShellCommand> commands;  ///< in the order in which they end
  /// What is assigned to variables, without quotes, up to the first expansion, for which "$" stands; of an array the
  /// words, joined by blanks.
  std::multimap<std::string, std::string> variables;
  std::set<std::string> functions;
  std::vector<ShellWord> here_documents;
};

/// kInvalidArgument, with the line: a quote, a substitution or a parenthesis does not end. `text` is borrowed.
Result<ShellScript> read_shell(std::string_view text);

/// The word without its quotes; nothing if the shell would expand something in it.
std::optional<std::string> literal(std::string_view raw);

/// The variable's name, if the word is nothing but its value: $NAME, "${NAME}", "${NAME[@]}".
std::optional<std::string> variable_in(std::string_view raw);

/// Lines count from 1.
std::size_t line_of(std::string_view text, std::size_t offset);

}  // namespace nessie::cli
