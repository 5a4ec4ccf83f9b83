// SPDX-License-Identifier: BSD-3-Clause
// The endpoint's own thresholds, as `nessie info` prints them; those of a transport are among its TransportInfo's
// facts.
#include "nnti/endpoint/impl.hpp"
#include "nnti/work/rendezvous.hpp"
#include "nnti/work/wire.hpp"

#include <fmt/core.h>

namespace nnti {
namespace {

/// "50 us (nnti.spin_us; default)".
std::string with_source(std::string value, const nessie::Config &config, std::string_view key) {
  auto source = config.source_of(key);
  return fmt::format("{} ({}; {})", value, key, source.empty() ? "default" : "from " + source);
}

/// "measured for each transport, …", "never", or a size.
std::string writing_starts(const RendezvousSettings &settings) {
  if (!settings.write_from)
    return "measured, for each transport of a process once it has sent a message of 64 KiB or more";
  return *settings.write_from == Rendezvous::kNever ? "never" : "from " + nessie::format_size(*settings.write_from);
}

}  // namespace

Result<std::vector<Fact>> Endpoint::thresholds(const nessie::Config &config) {
  auto spin_us = config.get_int("nnti.spin_us", kDefaultSpinMicroseconds);
  if (!spin_us.ok()) return spin_us.error();
  auto queue = config.get_int("nnti.send_queue", kDefaultSendQueue);
  if (!queue.ok()) return queue.error();
  auto eager_memory = config.get_size("nnti.eager_memory", kDefaultEagerMemory);
  if (!eager_memory.ok()) return eager_memory.error();
  auto eager_max = eager_max_of(config);
  if (!eager_max.ok()) return eager_max.error();
  auto rendezvous = RendezvousSettings::from(config);
  if (!rendezvous.ok()) return rendezvous.error();
  return std::vector<Fact>{
      {"pushed messages",
       fmt::format("up to {} bytes; what is larger is left at the sender and fetched", kMaxEagerBytes)},
      {"of these, NNTI_send pushes",
       with_source(fmt::format("up to {} bytes, with {} of its own", *eager_max, sizeof(wire::Control)), config,
                   "nnti.eager_max")},
      {"larger ones are written by their sender while their receiver reads",
       with_source(writing_starts(*rendezvous), config, "nnti.rendezvous.write_from")},
      {"of which the receiver reads",
       with_source(fmt::format("{} %", rendezvous->read_percent), config, "nnti.rendezvous.read_percent")},
      {"memory for messages larger than a mailbox takes",
       with_source(nessie::format_size(*eager_memory), config, "nnti.eager_memory")},
      {"messages that wait for a peer's credits", with_source(std::to_string(*queue), config, "nnti.send_queue")},
      {"a wait spins, before it yields and blocks, for",
       with_source(fmt::format("{} us", *spin_us), config, "nnti.spin_us")},
  };
}

}  // namespace nnti
