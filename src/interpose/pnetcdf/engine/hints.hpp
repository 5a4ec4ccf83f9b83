// SPDX-License-Identifier: BSD-3-Clause
// MPI-IO and PnetCDF hints: the program's, and those of PNETCDF_HINTS, which override them.
#pragma once

#include <staging.hpp>

#include <mpi.h>

#include <string_view>
#include <vector>

namespace interpose {

using Hints = std::vector<staging::Hint>;

/// Combines them as native PnetCDF does.
Hints collect_hints(MPI_Info info);
/// The pairs of "key=value;key=value"; ill-formed ones are left out.
Hints parse_hints(std::string_view text);
/// What a file is to survive, by the hint `nessie_durability`; kInherited: it says nothing, or nothing that there is.
staging::Durability durability_hint(const Hints &hints);
/// Whether it says that the file is to outlive its servers.
bool is_kept_by_hint(const Hints &hints);
/// nullptr if there is none of that name.
const std::string *find_hint(const Hints &hints, std::string_view key);

/// An MPI_Info object for a call.
class Info {
 public:
  explicit Info(const Hints &hints);
  Info(const Info &) = delete;
  Info &operator=(const Info &) = delete;
  ~Info();
  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

}  // namespace interpose
