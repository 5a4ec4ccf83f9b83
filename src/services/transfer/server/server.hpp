// SPDX-License-Identifier: BSD-3-Clause
// The transfer service. Arrays pass through buffers that are used again; what is to be validated is computed by threads
// of its own, one piece while the next is on its way.
#pragma once

#include <nessie/provider.hpp>
#include <service/buffers.hpp>
#include <service/moves.hpp>
#include <service/worker.hpp>
#include <services/transfer/array.hpp>

#include <transfer_rpc.hpp>

#include <chrono>
#include <vector>

namespace transfer {

struct ServerOptions {
  std::size_t piece_bytes = 512 << 10;  ///< of an array, moved at once; rounded down to elements, one at least
  std::size_t most_lanes = 8;           ///< arrays on their way at once, in buffers of two pieces; others wait
  unsigned threads = 1;                 ///< that make and check arrays of more than a piece
  /// What a read may have as its result. (Encoded arguments are bounded by nssi.max_long.)
  std::uint64_t most_encoded_bytes = 1 << 28;
  /// How long one piece may take before the client is given up.
  std::chrono::milliseconds client_timeout{30000};
};

/// transfer.piece (1 GiB at most), transfer.threads (1024 at most), transfer.most_encoded. kInvalidArgument.
nessie::Result<ServerOptions> server_options(const nessie::Config &config);

class Server final : public nessie::Provider, XFER::ONE::Server {
 public:
  /// The provider type `transfer`.
  static nessie::ProviderType type();
  /// kExists: the runtime has this provider of the interface.
  static nessie::Result<std::unique_ptr<nessie::Provider>> start(const nessie::ProviderContext &context,
                                                                 const ServerOptions &options);

  std::string describe() const override;

 private:
  using Lease = nessie::service::Buffers::Lease;
  using Task = nessie::service::Worker::Task;
  /// The elements of an array that move at once; none: the array is at its end.
  struct Part {
    std::uint64_t first, count, number;
  };
  Server(const nessie::ProviderContext &context, const ServerOptions &options);

  nessie::Status xfer_write_encode(nssi::Request &request, const xfer_args &args, const data_array_t &array) override;
  nessie::Status xfer_write_rdma(nssi::Request &request, const xfer_args &args) override;
  nessie::Result<data_array_t> xfer_read_encode(nssi::Request &request, const xfer_args &args) override;
  nessie::Status xfer_read_rdma(nssi::Request &request, const xfer_args &args) override;

  Part part_of(std::uint64_t len, std::uint64_t number) const;
  std::span<data_t> piece_in(const Lease &lane, const Part &part) const;
  template <class Move> nessie::Status for_each_part(std::uint64_t len, Move &&move) const;
  nessie::Status pull_and_check(nssi::Request &request, const xfer_args &args, const Lease &lane);
  nessie::Status make_and_push(nssi::Request &request, const xfer_args &args, const Lease &lane);
  nessie::Status get(nssi::Request &request, std::span<data_t> into, std::uint64_t first);
  nessie::Status put(nssi::Request &request, std::span<const data_t> from, std::uint64_t first);
  Task start(std::uint64_t len, std::function<void()> work);

  nssi::Runtime &runtime_;
  const ServerOptions options_;
  const std::size_t piece_;  ///< elements
  nessie::service::Moves moves_;
  nessie::service::Buffers lanes_;  ///< two pieces each: one can be worked on while the other is on its way
  nessie::service::Worker threads_;
  std::vector<data_t> anything_;  ///< what is read if nobody asks what it is: never another client's data
};

}  // namespace transfer
