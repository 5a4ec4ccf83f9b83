// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/work/rendezvous.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace nnti {

Result<RendezvousSettings> RendezvousSettings::from(const nessie::Config &config) {
  RendezvousSettings settings;
  const auto text = config.get_or("nnti.rendezvous.write_from", "measured");
  if (text == "never") {
    settings.write_from = Rendezvous::kNever;
  } else if (text != "measured") {
    auto size = config.get_size("nnti.rendezvous.write_from", 0);
    if (!size.ok()) return size.error();
    settings.write_from = *size;
  }
  auto percent = config.get_int("nnti.rendezvous.read_percent", settings.read_percent);
  if (!percent.ok()) return percent.error();
  if (*percent < 0 || *percent > 100) return config.bad_value("nnti.rendezvous.read_percent", "0 to 100");
  settings.read_percent = static_cast<unsigned>(*percent);
  return settings;
}

std::uint64_t readable_part(const Rendezvous &rendezvous, std::uint64_t size_bytes) {
  constexpr std::uint64_t kPage = 4096;
  if (size_bytes < rendezvous.write_from) return size_bytes;
  return size_bytes / 100 * rendezvous.read_percent / kPage * kPage;
}

std::uint64_t faster_shared_from(const RendezvousTimes &times) {
  constexpr double kLeastGain = 1.1, kMost = 64 << 20;
  constexpr auto kSmall = static_cast<double>(RendezvousTimes::kSizes[0]);
  constexpr double kBetween = static_cast<double>(RendezvousTimes::kSizes[1]) - kSmall;
  const double read = (times.read[1] - times.read[0]) / kBetween;  // microseconds a byte
  const double shared = (times.shared[1] - times.shared[0]) / kBetween;
  if (read <= shared * kLeastGain) return Rendezvous::kNever;
  const double crossing = kSmall + (times.shared[0] - times.read[0]) / (read - shared);
  if (crossing > kMost) return Rendezvous::kNever;
  return static_cast<std::uint64_t>(std::max(crossing, kSmall));
}

namespace measured_rendezvous {
namespace {

constexpr int kMostAttempts = 3;

struct Entry {
  std::optional<std::uint64_t> write_from;
  bool under_way = false;
  int attempts = 0;
};
struct Table {
  std::mutex mutex;
  std::map<std::string, Entry, std::less<>> entries;
};
Table &table() {
  static Table one;
  return one;
}

}  // namespace

std::optional<std::uint64_t> find(std::string_view transport) {
  std::lock_guard guard(table().mutex);
  auto found = table().entries.find(transport);
  return found == table().entries.end() ? std::nullopt : found->second.write_from;
}

bool begin(std::string_view transport) {
  std::lock_guard guard(table().mutex);
  auto &entry = table().entries[std::string(transport)];
  if (entry.write_from || entry.under_way || entry.attempts == kMostAttempts) return false;
  ++entry.attempts;
  entry.under_way = true;
  return true;
}

void end(std::string_view transport, std::optional<std::uint64_t> write_from) {
  std::lock_guard guard(table().mutex);
  auto &entry = table().entries[std::string(transport)];
  entry.under_way = false;
  entry.write_from = write_from;
}

}  // namespace measured_rendezvous

}  // namespace nnti
