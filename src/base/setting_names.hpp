// SPDX-License-Identifier: BSD-3-Clause
// Which settings there are, so that misspelt ones are noticed, and people can look them up (`nessie info --settings`,
// docs/configuration.md). Each is declared by its owner, in a file settings.def of that folder; the build collects
// them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nessie {

/// For people, in Markdown.
struct Setting {
  const char *name;   ///< NAME stands for the part that the user gives: "nssi.pool.NAME.threads"
  const char *flag;   ///< "`--mode`"; empty: there is none
  const char *value;  ///< if nothing is said: "`30s`"; empty: none
  const char *meaning;
};
std::span<const Setting> settings();

/// Every setting of Nessie's own; where the user gives a part of the name, a `*` stands for it: "nssi.pool.*.threads".
const std::vector<std::string> &setting_names();
/// Whether it is one of them.
bool is_setting(std::string_view key);
/// "staging.memory" → "NESSIE_STAGING_MEMORY".
std::string variable_of(std::string_view key);
/// What to tell somebody who wrote it into a file, or set it: "there is no setting nssi.timeot; did you mean
/// nssi.timeout?". Empty for a setting, and for what may be the program's own: its first part is none of Nessie's, nor
/// is it near a setting.
std::string doubt_about_key(std::string_view key);
/// The same of a variable of the environment. Only what is near the variable of a setting is doubted: many others begin
/// with NESSIE_, too.
std::string doubt_about_variable(std::string_view variable);

}  // namespace nessie
