// SPDX-License-Identifier: BSD-3-Clause
// Where readers of a file are going: on through a variable, record after record, from one variable to the next. Each
// process may have its own way.
#pragma once

#include <services/staging/server/page_cache.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace staging {

/// The page after `index` in which there is something of `own`.
std::int64_t next_page(const CachedVariable &variable, std::int64_t index, Interval own);

class March {
 public:
  /// Somebody reads these pages of a variable, the last one of which may be its end. Whether a read before came to
  /// where this one begins.
  bool note(std::int32_t varid, std::int64_t first_page, std::int64_t last_page, bool is_end);

 private:
  struct Step {
    std::int32_t varid = -1;
    std::int64_t last_page = -1;
    bool is_end = false;
  };
  static constexpr std::size_t kSteps = 64;
  std::array<Step, kSteps> steps_;
  std::size_t next_ = 0;
};

}  // namespace staging
