// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/channel/window.hpp"

#include <algorithm>
#include <cstdlib>

namespace nnti::channel {

SendWindow::Kept &SendWindow::push(Buffer bytes) {
  if (size() == ring_.size()) grow();
  bytes_ += bytes.size();
  Kept &kept = (*this)[next_++];
  kept.bytes = std::move(bytes);
  kept.again = kept.arrived = false;
  return kept;
}

void SendWindow::acknowledge(std::uint64_t number) {
  for (; first_ < number; ++first_) {
    Kept &kept = (*this)[first_];
    bytes_ -= kept.bytes.size();
    pool_.give_back(std::move(kept.bytes));
  }
}

void SendWindow::grow() {
  std::vector<Kept> larger(2 * ring_.size());
  for (auto number = first_; number < next_; ++number)
    larger[number & (larger.size() - 1)] = std::move((*this)[number]);
  ring_ = std::move(larger);
}

bool EarlyMessages::add(std::uint64_t number, std::uint8_t type, std::span<const std::byte> payload,
                        const Limits &limits) {
  if (has(number)) return true;
  const auto size_bytes = payload.size() + kHeaderBytes;
  if (messages_.size() >= limits.messages || bytes_ + size_bytes > limits.bytes) return false;
  messages_.emplace(number, Early{type, {payload.begin(), payload.end()}});
  bytes_ += size_bytes;
  return true;
}

std::optional<EarlyMessages::Early> EarlyMessages::take(std::uint64_t number) {
  auto node = messages_.extract(number);
  if (node.empty()) return std::nullopt;
  bytes_ -= node.mapped().payload.size() + kHeaderBytes;
  return std::move(node.mapped());
}

Buffer EarlyMessages::bitmap(std::uint64_t expected) const {
  Buffer bits;
  for (auto it = messages_.upper_bound(expected); it != messages_.end(); ++it) {
    const auto bit = it->first - expected - 1;
    if (bit >= 8 * kMaxBitmapBytes) break;
    bits.resize(bit / 8 + 1);
    bits[bit / 8] |= std::byte{1} << (bit % 8);
  }
  return bits;
}

void RoundTrip::sample(Duration took) {
  if (smoothed_ == Duration(0)) {
    smoothed_ = std::max(took, Duration(1));
    variation_ = took / 2;
  } else {
    variation_ = (3 * variation_ + std::chrono::abs(smoothed_ - took)) / 4;
    smoothed_ = std::max((7 * smoothed_ + took) / 8, Duration(1));
  }
  reset_back_off();
}

Duration RoundTrip::timeout() const {
  const auto base = smoothed_ == Duration(0) ? kFirst : std::clamp(smoothed_ + 4 * variation_, kShortest, kLongest);
  return std::min(base * (1 << std::min(doublings_, 10u)), kLongest);
}

}  // namespace nnti::channel
