// SPDX-License-Identifier: BSD-3-Clause
// The transport, as its connections see it.
#pragma once

#include "nnti/transport/decorated.hpp"
#include "nnti/transports/faulty/faults.hpp"

namespace nnti::faulty {

/// "I break this connection; let go, too." The one message that a faulty transport sends of its own.
inline constexpr auto kLetGo = static_cast<MessageKind>(kMaxMessageKind);

class Host : public Transport {
 public:
  Host(const TransportOptions &options, const Faults &faults)
      : events_(options.events), faults_(faults), time_(options.time), dice_(faults.seed) {}

  TransportEvents &events() { return events_; }
  const Faults &faults() const { return faults_; }
  Dice &dice() { return dice_; }
  Moment moment() const { return {turn_, time_.now(), false}; }
  /// When to look again at what waits for turns.
  Time soon() const { return time_.now() + std::chrono::milliseconds(1); }
  /// A connection broke: none can be made for a while.
  void begin_outage() { outage_ends_ = dice_.within(faults_.breaks.extent, moment()); }

 protected:
  TransportEvents &events_;
  const Faults faults_;
  const nessie::TimeSource time_;
  Dice dice_;
  std::uint64_t turn_ = 0;
  Moment outage_ends_;
};

}  // namespace nnti::faulty
