// SPDX-License-Identifier: BSD-3-Clause
#include "xfer_team.hpp"

#include <base/budget.hpp>
#include <base/config.hpp>
#include <services/transfer/server/server.hpp>

#include <algorithm>

namespace bench {
namespace {

using nessie::Status;
using transfer::data_t;
using Kind = Way::Kind;

constexpr Way kAllWays[] = {{"write-encode", Kind::kWriteEncode, false, false, false},
                            {"read-encode", Kind::kReadEncode, false, false, false},
                            {"write-rdma-mapped", Kind::kWriteRdma, true, false, false},
                            {"read-rdma-mapped", Kind::kReadRdma, true, false, false},
                            {"write-rdma-application", Kind::kWriteRdma, false, false, false},
                            {"read-rdma-application", Kind::kReadRdma, false, false, false},
                            {"write-rdma-copied", Kind::kWriteRdma, true, false, true},
                            {"read-rdma-copied", Kind::kReadRdma, true, false, true},
                            {"write-rdma-validated", Kind::kWriteRdma, true, true, false},
                            {"read-rdma-validated", Kind::kReadRdma, true, true, false}};
constexpr std::size_t kPlain = 4;
constexpr std::int32_t kSeed = 1;

}  // namespace

const std::span<const Way> kWays(kAllWays);
const std::span<const Way> kWaysOfMany = kWays.first(kPlain);

XferClient::XferClient(const Connection &connection, const XferArrays &arrays)
    : client_(connection.runtime, connection.service), own_(arrays.most_bytes / sizeof(data_t)) {
  keep(client_.lend(own_));
  for (int i = 0; i < arrays.mapped; ++i) keep(client_.allocate(static_cast<std::uint32_t>(own_.size())));
}

const transfer::Array &XferClient::array_for(const Way &way) {
  return way.mapped ? arrays_[1 + next_++ % (arrays_.size() - 1)] : arrays_.front();
}

void XferClient::keep(nessie::Result<transfer::Array> array) {
  if (!array) return void(status_ = array.error());
  arrays_.push_back(*std::move(array));
}

void XferClient::prepare() {
  for (const auto &array : arrays_) transfer::fill(array.elements(), kSeed);
}

void XferClient::call(const Way &way, std::uint64_t size_bytes) {
  if (!status_.ok()) return;
  const transfer::xfer_args args{static_cast<std::uint32_t>(size_bytes / sizeof(data_t)), kSeed, way.validated, 0};
  switch (way.kind) {
    case Kind::kWriteEncode: return void(status_ = client_.write_encode(std::span(own_).first(args.len)));
    case Kind::kReadEncode: return void(status_ = client_.read_encode(std::span(own_).first(args.len)));
    case Kind::kWriteRdma: return write_rdma(way, args);
    case Kind::kReadRdma: return read_rdma(way, args);
  }
}

void XferClient::write_rdma(const Way &way, const transfer::xfer_args &args) {
  const auto &array = array_for(way);
  if (way.copied) std::copy_n(own_.begin(), args.len, array.elements().begin());
  status_ = client_.stub().xfer_write_rdma(args, array.buffer());
}

void XferClient::read_rdma(const Way &way, const transfer::xfer_args &args) {
  const auto &array = array_for(way);
  status_ = client_.stub().xfer_read_rdma(args, array.buffer());
  if (way.copied) std::copy_n(array.elements().begin(), args.len, own_.begin());
  if (status_.ok() && args.validate) status_ = transfer::check(array.elements().first(args.len), kSeed);
}

nessie::Result<std::unique_ptr<Board>> run_xfer_team(const Options &options, const ServiceTeam &team,
                                                     const XferArrays &arrays, const XferLead &lead) {
  const auto host = [&](Board &board) {
    const nessie::Config config;
    nessie::Budget budget;
    nessie::service::Worker main_thread;
    std::optional<nessie::ProviderContext> context;
    std::unique_ptr<nessie::Provider> server;
    return serve(options, team, board, [&](nssi::Runtime &runtime) -> Status {
      context.emplace(nessie::ProviderContext{runtime, "transfer", 0, {}, config, budget, main_thread, {}, {}});
      auto started = transfer::Server::start(*context, {});
      if (!started.ok()) return started.error();
      server = *std::move(started);
      return {};
    });
  };
  return run_service_team(options, team, host, [&](const Connection &connection, Lane &lane) {
    XferClient client(connection, arrays);
    auto status = lead(client, lane);
    return client.status().ok() ? status : client.status();
  });
}

}  // namespace bench
