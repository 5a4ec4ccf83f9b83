// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/sender.hpp>

#include <algorithm>
#include <functional>

namespace staging {

namespace {

constexpr std::size_t kMostComparisons = 1 << 16;

}  // namespace

/// Whether one of the items meets what this process is still writing.
bool Client::Impl::meets_pending_write(FileToken file, std::span<const Item> items) const {
  std::size_t comparisons = 0;
  const auto meets_item = [&](const std::vector<Hull> &written, const Item &item) {
    if ((comparisons += written.size() * item.pieces.hulls().size()) > kMostComparisons) return true;
    for (const auto &hull : item.pieces.hulls())
      if (std::ranges::any_of(written, [&](const Hull &other) { return overlap(other, hull); })) return true;
    return false;
  };
  const auto meets = [&](const Message &message) {
    if (message.file != file || !message.is_write) return false;
    return std::ranges::any_of(items, [&](const Item &item) { return meets_item(message.pieces.hulls(), item); });
  };
  return std::ranges::any_of(messages, [&](const auto &message) { return meets(*message); }) ||
         std::ranges::any_of(awaited, [&](const Message *message) { return meets(*message); });
}

Result<int> Client::write(FileToken file, std::int64_t num_records, Order &order, std::span<const Item> items) {
  const std::lock_guard lock(impl_->mutex);
  const auto outcome = impl_->outcome_of(file);
  while (!impl_->messages.empty() && impl_->messages.front()->answer.test()) impl_->finish_one();
  if (impl_->meets_pending_write(file, items)) impl_->finish(outcome->pending);
  Impl::Sender sender(*impl_, true, file, num_records, order, outcome);
  sender.send(items);
  if (order.is_collective && impl_->mode == Mode::kDirect) sender.end_call();
  std::ranges::transform(order.sent, sender.sent(), order.sent.begin(), std::plus<>());
  impl_->finish(outcome->borrowed);
  impl_->finish_unsent();
  return outcome->take();
}

Result<int> Client::finish_writes(FileToken file) {
  const std::lock_guard lock(impl_->mutex);
  const auto written = impl_->written.find(file);
  if (written == impl_->written.end()) return 0;
  const auto outcome = written->second;
  impl_->finish(outcome->pending);
  impl_->written.erase(file);
  return outcome->take();
}

}  // namespace staging
