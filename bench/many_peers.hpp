// SPDX-License-Identifier: BSD-3-Clause
// One process that holds many peers, and a second one in which each of them has an endpoint of its own.
#pragma once

#include "nnti_team.hpp"

#include <memory>
#include <vector>

namespace bench {

/// The first process: sends every message back.
class Holder : public Side {
 public:
  /// Makes progress until that many peers have connected.
  void wait_for_peers(int count);
  /// Until that many messages have come, and were answered.
  void answer(std::uint64_t count);

  void on_message(nnti::PeerId from, std::span<const std::byte> message) override;
  void on_peer_connected(nnti::PeerId) override { ++peers_; }
  void on_peer_lost(nnti::PeerId, const nessie::Error &error) override { give_up(error); }

 protected:
  bool is_impatient() const override { return true; }

 private:
  int peers_ = 0;
  std::uint64_t answered_ = 0;
  nnti::PeerId last_;  ///< whom we have answered last
};

/// The second process's.
class Guests {
 public:
  Guests(const Options &options, const Team &team, Board &board) : options_(options), team_(team), board_(board) {}
  /// Opens endpoints, and connects them, until there are that many.
  nessie::Status connect(int count);
  Leader &operator[](std::size_t i) { return *guests_[i]; }
  std::size_t size() const { return guests_.size(); }

 private:
  const Options &options_;
  const Team &team_;
  Board &board_;
  std::vector<std::unique_ptr<Leader>> guests_;
};

/// What either process does; both are opened, and the holder can be found.
struct HolderAndGuests {
  std::function<nessie::Status(Holder &holder, Board &board, Lane &lane)> hold;
  std::function<nessie::Status(Guests &guests, Board &board, Lane &lane)> visit;
};
inline constexpr int kHolder = 0, kGuests = 1;

/// Runs both once, on two cores; lanes kHolder and kGuests are theirs. kUnsupported for a transport within a process.
nessie::Result<std::unique_ptr<Board>> run_holder_and_guests(const Options &options, const Waiting &waiting,
                                                             const HolderAndGuests &duties);

}  // namespace bench
