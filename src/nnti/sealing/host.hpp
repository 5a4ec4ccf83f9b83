// SPDX-License-Identifier: BSD-3-Clause
// The sealed transport, as its connections see it.
#pragma once

#include "nnti/sealing/transfers.hpp"
#include "nnti/transport/decorated.hpp"

#include <unordered_map>

namespace nnti::sealing {

class Host : public DecoratedTransport {
 public:
  struct Refusal {
    Loss loss;
    Error error;
  };

  explicit Host(const TransportOptions &options) : credential_(options.credential), events_(options.events) {}

  const nessie::Credential &credential() const { return credential_; }
  TransportEvents &events() { return events_; }
  /// Why a connection that we made ended although nobody above knows it yet; `id`: the PeerId of the one below.
  void refused(std::uint64_t id, Loss loss, const Error &error) {
    refusals_.insert_or_assign(id, Refusal{loss, error});
  }
  void reap_later() { any_to_reap_ = true; }
  std::vector<std::byte> take_scratch() { return std::exchange(scratch_, {}); }
  void give_scratch(std::vector<std::byte> scratch) { scratch_ = std::move(scratch); }

 protected:
  const nessie::Credential &credential_;
  TransportEvents &events_;
  std::unordered_map<std::uint64_t, Refusal> refusals_;
  bool any_to_reap_ = false;

 private:
  std::vector<std::byte> scratch_;
};

}  // namespace nnti::sealing
