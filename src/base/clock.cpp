// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.hpp"

#include <algorithm>
#include <climits>

namespace nessie {

int Deadline::poll_timeout_ms() const {
  if (is_never()) return -1;
  if (when_ == Clock::time_point::min()) return 0;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(when_ - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

}  // namespace nessie
