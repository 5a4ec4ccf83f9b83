// SPDX-License-Identifier: BSD-3-Clause
// The calling side of the transfer service. Threads, fibers and errors are those of nssi::Runtime and its calls.
#pragma once

#include <services/transfer/array.hpp>

#include <transfer_rpc.hpp>

#include <optional>
#include <span>

namespace transfer {

/// An array in memory that the service reaches by itself. Moves; the memory is out of reach when it is dropped.
class Array {
 public:
  explicit Array(nnti::RegisteredBuffer buffer) : buffer_(std::move(buffer)) {}
  std::span<data_t> elements() const;
  std::uint32_t len() const { return static_cast<std::uint32_t>(elements().size()); }
  const nnti::RegisteredBuffer &buffer() const { return buffer_; }

 private:
  nnti::RegisteredBuffer buffer_;
};

struct Options {
  std::int32_t seed = 0;
  /// The receiver compares every element with the array of that seed: kBadMessage names the first that is wrong.
  /// Otherwise what a read gives is unspecified.
  bool validate = false;
  std::optional<nessie::Deadline> deadline = {};  ///< of the whole; if not given, nssi.timeout (30 s) for each request
};

/// Calls wait for their end. Errors besides those of any call: kTooLarge, kNoMemory, as the messages say.
class Client {
 public:
  Client(nssi::Runtime &runtime, nssi::PeerId peer, std::uint32_t provider = 0)
      : runtime_(runtime), stub_(runtime, peer, provider) {}

  /// Memory that Nessie allocates, which a service on this node maps: the fastest.
  nessie::Result<Array> allocate(std::uint32_t len);
  /// Memory of the caller's, which stays its own, and must outlive what is returned.
  nessie::Result<Array> lend(std::span<data_t> elements);

  /// The array as the arguments of requests, in parts of 128 KiB: one is encoded here while others are decoded there.
  nessie::Status write_encode(std::span<const data_t> array, const Options &options = {});
  /// The array where it lies: the service gets it.
  nessie::Status write_rdma(const Array &array, const Options &options = {});
  /// The array as the results of requests, likewise, decoded to where `array` is. With an error, what it holds is
  /// unspecified.
  nessie::Status read_encode(std::span<data_t> array, const Options &options = {});
  /// Into the array: the service puts it there. With an error, what it holds is unspecified.
  nessie::Status read_rdma(const Array &array, const Options &options = {});

  /// For calls that do not wait.
  XFER::ONE::Client &stub() { return stub_; }

 private:
  nssi::Runtime &runtime_;
  XFER::ONE::Client stub_;
};

}  // namespace transfer
