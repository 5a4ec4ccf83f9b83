// SPDX-License-Identifier: BSD-3-Clause
// The transfer service. Arrays pass through pieces of memory that are used again; what is to be validated is computed
// by threads of its own, one piece while the next is on its way.
#pragma once

#include <services/transfer/server/lanes.hpp>
#include <services/transfer/server/worker.hpp>

#include <transfer_rpc.hpp>

#include <chrono>
#include <vector>

namespace transfer {

struct ServerOptions {
  std::size_t piece_bytes = 512 << 10;  ///< of an array, moved at once; rounded down to elements, one at least
  std::size_t most_lanes = 8;           ///< arrays on their way at once, two pieces of memory each; others wait
  unsigned threads = 1;                 ///< that make and check arrays of more than a piece
  /// What a read may have as its result. (Encoded arguments are bounded by nssi.max_long.)
  std::uint64_t most_encoded_bytes = 1 << 28;
  /// How long one piece may take before the client is given up.
  std::chrono::milliseconds client_timeout{30000};
};

/// Must outlive the runtime that it is added to.
class Server final : XFER::ONE::Server {
 public:
  explicit Server(const ServerOptions &options = {});
  /// Offers the service, before runtime.run(). kExists: the runtime has this provider of it.
  nessie::Status add_to(nssi::Runtime &runtime, std::uint32_t provider = 0);

  nessie::Status xfer_write_encode(nssi::Request &request, const xfer_args &args, const data_array_t &array) override;
  nessie::Status xfer_write_rdma(nssi::Request &request, const xfer_args &args) override;
  nessie::Result<data_array_t> xfer_read_encode(nssi::Request &request, const xfer_args &args) override;
  nessie::Status xfer_read_rdma(nssi::Request &request, const xfer_args &args) override;

 private:
  /// The elements of an array that move at once; none: the array is at its end.
  struct Part {
    std::uint64_t first, count, number;
  };
  Part part_of(std::uint64_t len, std::uint64_t number) const;
  template <class Move> nessie::Status for_each_part(std::uint64_t len, Move &&move) const;
  nessie::Status pull_and_check(nssi::Request &request, const xfer_args &args, const Lanes::Lease &lane);
  nessie::Status make_and_push(nssi::Request &request, const xfer_args &args, const Lanes::Lease &lane);
  nessie::Status get(nssi::Request &request, std::span<data_t> into, std::uint64_t first) const;
  nessie::Status put(nssi::Request &request, std::span<const data_t> from, std::uint64_t first) const;
  Workers::Task start(std::uint64_t len, Work work);

  const ServerOptions options_;
  const std::size_t piece_;  ///< elements
  nssi::Runtime *runtime_ = nullptr;
  Lanes lanes_;
  Workers threads_, here_{0};
  std::vector<data_t> anything_;  ///< what is read if nobody asks what it is: never another client's data
};

}  // namespace transfer
