// SPDX-License-Identifier: BSD-3-Clause
// The transfer service and its clients: the ways in which arrays go to and fro.
#pragma once

#include "page_aligned.hpp"
#include "service_team.hpp"

#include <services/transfer/client/client.hpp>

#include <span>

namespace bench {

/// A way to transfer an array, and what it is set beside.
struct Way {
  const char *mode;
  enum class Kind { kWriteEncode, kReadEncode, kWriteRdma, kReadRdma } kind;
  bool mapped;     ///< by RDMA: the client's buffer is Nessie's; otherwise the application's own
  bool validated;  ///< the receiver compares each element with what it must be
  bool copied;     ///< by RDMA: the client copies its array into the buffer, or out of it, as encoding would
};
/// Those of the paper, and with copies and with validation.
extern const std::span<const Way> kWays;
/// Those that many clients use at once.
extern const std::span<const Way> kWaysOfMany;

/// What a client has: arrays of up to so many bytes, and so many of them mapped, which it uses in turn.
struct XferArrays {
  std::uint64_t most_bytes;
  int mapped = 1;
};

/// A client of the service. After a call has failed, every call returns at once.
class XferClient {
 public:
  XferClient(const Connection &connection, const XferArrays &arrays);
  /// Before calls of another way: the arrays are what they should be, which not every read leaves them.
  void prepare();
  void call(const Way &way, std::uint64_t size_bytes);
  const nessie::Status &status() const { return status_; }

 private:
  void keep(nessie::Result<transfer::Array> array);
  const transfer::Array &array_for(const Way &way);
  void write_rdma(const Way &way, const transfer::xfer_args &args);
  void read_rdma(const Way &way, const transfer::xfer_args &args);

  transfer::Client client_;
  PageAligned<transfer::data_t> own_;
  std::vector<transfer::Array> arrays_;  ///< the application's, then the mapped ones
  std::size_t next_ = 0;                 ///< of the mapped ones
  transfer::data_array_t encoded_;       ///< the argument, or the result
  nessie::Status status_;
};

using XferLead = std::function<nessie::Status(XferClient &client, Lane &lane)>;
/// Runs the service and its clients once.
nessie::Result<std::unique_ptr<Board>> run_xfer_team(const Options &options, const ServiceTeam &team,
                                                     const XferArrays &arrays, const XferLead &lead);

}  // namespace bench
