// SPDX-License-Identifier: BSD-3-Clause
// From which size on a message is written by its sender, and not only read by its receiver: what the settings say, and
// what this process has measured.
#pragma once

#include <nnti/context.hpp>

#include <array>
#include <optional>
#include <string_view>

namespace nnti {

/// "nnti.rendezvous.*".
struct RendezvousSettings {
  std::optional<std::uint64_t> write_from;  ///< empty: to be measured
  unsigned read_percent = 50;

  /// kInvalidArgument: a value that cannot be read.
  static Result<RendezvousSettings> from(const nessie::Config &config);
};

/// How much of a message of `size_bytes` its receiver is to read, from the front.
std::uint64_t readable_part(const Rendezvous &rendezvous, std::uint64_t size_bytes);

/// The times of transfers of two sizes, in microseconds: read by the receiver, and shared by both.
struct RendezvousTimes {
  static constexpr std::array<std::uint64_t, 2> kSizes = {64 << 10, 1 << 20};
  std::array<double, 2> read{}, shared{};
};
/// From where on sharing is faster, if time grows with the size as between the two.
std::uint64_t faster_shared_from(const RendezvousTimes &times);

/// What was measured in this process, by the transport's name. Any thread.
namespace measured_rendezvous {
std::optional<std::uint64_t> find(std::string_view transport);
/// True: the caller is to measure, and says end() afterwards. At most one does at a time, and few in all.
bool begin(std::string_view transport);
/// Empty: nothing was found out.
void end(std::string_view transport, std::optional<std::uint64_t> write_from);
}  // namespace measured_rendezvous

}  // namespace nnti
