// SPDX-License-Identifier: BSD-3-Clause
// What files survive, as users say it: "logged", or with exceptions, "*.rst=replicated /scratch/*=durable memory".
#pragma once

#include <staging.hpp>

#include <nessie/result.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace staging {

/// "memory", "replicated", "logged", "durable". kInvalidArgument: it is none of these.
nessie::Result<Durability> durability_named(std::string_view name);
std::string_view name_of(Durability durability);

class DurabilityRules {
 public:
  /// Words with blanks or commas between them: PATTERN=DURABILITY, as a shell matches names, of which the first that
  /// matches counts; and one without a pattern, for all other files. A pattern with a slash is for the whole path,
  /// otherwise it is for the file's name. kInvalidArgument, with the word that is wrong.
  static nessie::Result<DurabilityRules> parse(std::string_view text);

  Durability of(const std::string &path) const;
  /// Whether all files are in memory only.
  bool keeps_nothing() const { return rules_.empty() && otherwise_ == Durability::kMemory; }

 private:
  std::vector<std::pair<std::string, Durability>> rules_;
  Durability otherwise_ = Durability::kMemory;
};

}  // namespace staging
