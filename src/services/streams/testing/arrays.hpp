// SPDX-License-Identifier: BSD-3-Clause
// For tests: arrays whose elements say where they are.
#pragma once

#include <nessie/streams.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

namespace streams::testing {

namespace api = nessie::streams;
using nessie::Deadline;

/// The watchdog's: longer than anything takes on a machine that has much else to do.
inline Deadline soon() { return Deadline::in(std::chrono::seconds(60)); }

/// Of an element: tells step and place apart.
inline double value_at(std::uint64_t step, const std::vector<std::int64_t> &at) {
  double value = static_cast<double>(step);
  for (const auto i : at) value = value * 1000 + static_cast<double>(i);
  return value;
}

inline std::int64_t elements_of(const api::Box &box) {
  std::int64_t total = 1;
  for (const auto n : box.count) total *= n;
  return total;
}

/// Calls `each(element's place, its index in the box)` in C order.
template <class Each> void for_each_element(const api::Box &box, const Each &each) {
  const auto total = elements_of(box);
  std::vector<std::int64_t> at = box.start;
  for (std::int64_t i = 0; i < total; ++i) {
    each(at, static_cast<std::size_t>(i));
    for (auto d = at.size(); d-- > 0;) {
      if (++at[d] < box.start[d] + box.count[d]) break;
      at[d] = box.start[d];
    }
  }
}

inline std::vector<double> values_of(std::uint64_t step, const api::Box &box) {
  std::vector<double> values;
  for_each_element(box, [&](const auto &at, std::size_t) { values.push_back(value_at(step, at)); });
  return values;
}

}  // namespace streams::testing
