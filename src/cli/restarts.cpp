// SPDX-License-Identifier: BSD-3-Clause
#include "restarts.hpp"

#include <array>
#include <chrono>

namespace nessie::cli {

namespace {

using std::chrono::milliseconds;

constexpr std::array kPauses = {milliseconds(0), milliseconds(50), milliseconds(100), milliseconds(200),
                                milliseconds(400)};
constexpr auto kRecent = std::chrono::seconds(10);

}  // namespace

std::optional<Deadline> Restarts::next(Clock::time_point now) {
  while (!recent_.empty() && now - recent_.front() > kRecent) recent_.pop_front();
  const auto number = recent_.size();
  recent_.push_back(now);
  if (number >= kPauses.size()) return std::nullopt;
  return Deadline::at(now + kPauses[number]);
}

}  // namespace nessie::cli
