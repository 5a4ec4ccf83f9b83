// SPDX-License-Identifier: BSD-3-Clause
// What the environment variable PNETCDF_SAFE_MODE asks for: in collective calls, processes tell each other their
// errors, and compare their arguments with root's.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace interpose {

class File;

/// Whether what this process opens now is to be in safe mode.
bool asks_for_safe_mode();

/// The arguments of a call, in the order in which native PnetCDF compares them, each with its code for a difference. As
/// many on all ranks.
class Arguments {
 public:
  Arguments &add(int code, std::span<const std::byte> value);
  template <class Value>
  requires std::is_arithmetic_v<Value> Arguments &add(int code, Value value) {
    return add(code, std::as_bytes(std::span<const Value, 1>(&value, 1)));
  }
  /// nullptr is a name, too.
  Arguments &add_name(int code, const char *name);

  /// All of them, for other ranks.
  const std::vector<std::byte> &encoding() const { return encoding_; }
  /// The code of the first that another rank's arguments do not have; NC_NOERR: they are the same.
  int difference(std::span<const std::byte> other) const;

 private:
  std::vector<int> codes_;
  std::vector<std::byte> encoding_;  ///< of each its size, and its value
};

/// The least of all ranks' codes, if the file is in safe mode; otherwise `code`.
int least(File &file, int code);

/// Who says what, where arguments differ.
enum class Verdict {
  kCommon,  ///< all ranks the least of their codes
  kOwn      ///< each the code of its own difference; who has none, the least
};

/// Compares the arguments of a call on a file in safe mode. NC_NOERR: they are the same on all ranks, so that native
/// PnetCDF finds the same wrong in them. Otherwise what this rank's caller gets: `check` says what native PnetCDF finds
/// wrong on this rank before it compares, which counts for more than a difference.
int compare(File &file, const Arguments &arguments, const std::function<int()> &check,
            Verdict verdict = Verdict::kCommon);

}  // namespace interpose
