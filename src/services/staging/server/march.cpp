// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/march.hpp>

#include <algorithm>

namespace staging {

std::int64_t next_page(const CachedVariable &variable, std::int64_t index, Interval own) {
  const auto element = (index + 1) * variable.page_elements;
  if (!variable.variable.is_record) return std::max(element, own.begin) / variable.page_elements;
  const auto extent = std::max<std::int64_t>(1, variable.variable.extent_elements());
  auto record = element / extent, within = element % extent;
  if (within >= own.end) ++record, within = own.begin;
  return (record * extent + std::max(within, own.begin)) / variable.page_elements;
}

bool March::note(std::int32_t varid, std::int64_t first_page, std::int64_t last_page, bool is_end) {
  const auto leads_here = [&](const Step &step) {
    if (step.varid != varid) return first_page == 0 && step.is_end && step.varid >= 0 && step.varid < varid;
    return step.last_page == first_page || step.last_page + 1 == first_page;
  };
  const bool follows = std::ranges::any_of(steps_, leads_here);
  steps_[next_] = {varid, last_page, is_end};
  next_ = (next_ + 1) % kSteps;
  return follows;
}

}  // namespace staging
