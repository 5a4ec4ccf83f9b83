// SPDX-License-Identifier: BSD-3-Clause
// What somebody meant who misspelt a word.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nessie {

/// How many letters must be changed, added, removed or swapped with their neighbour to make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);
/// The first of the words that are nearest to `word`, at most two edits away and no more than one for every three
/// letters; empty: there is none.
std::string nearest_of(std::string_view word, const std::vector<std::string> &words);

}  // namespace nessie
