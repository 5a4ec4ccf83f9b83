// SPDX-License-Identifier: BSD-3-Clause
// A `nessie run` that is part of the program of another one.
#pragma once

#include <string>

namespace nessie::cli {

/// Makes the boards of the outer run, which `boards` names (NESSIE_BOARDS), boards of this one: by links in `folder`,
/// numbered from `first` on. So programs of this run wait for files of the outer one, too. Returns how many they are.
int link_outer_boards(const std::string &boards, int first, const std::string &folder);

}  // namespace nessie::cli
