// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/server.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace transfer {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

Status check_buffer(const nssi::Request &request, const xfer_args &args) {
  const auto needed = std::uint64_t{args.len} * sizeof(data_t);
  if (request.data_bytes() >= needed) return {};
  return Error{Code::kOutOfRange,
               fmt::format("{} elements take {} bytes, but the caller's buffer has {}: lend a larger one", args.len,
                           needed, request.data_bytes())};
}

}  // namespace

Server::Server(const ServerOptions &options)
    : options_(options),
      piece_(std::max<std::size_t>(1, options.piece_bytes / sizeof(data_t))),
      lanes_(piece_, std::max<std::size_t>(1, options.most_lanes)),
      threads_(options.threads),
      anything_(piece_) {
  fill(anything_, 0);
}

Status Server::add_to(nssi::Runtime &runtime, std::uint32_t provider) {
  runtime_ = &runtime;
  return XFER::ONE::Server::add_to(runtime, provider);
}

// --- encoded ---------------------------------------------------------------------------------------------------------

Status Server::xfer_write_encode(nssi::Request &, const xfer_args &args, const data_array_t &array) {
  if (array.size() != args.len)
    return Error{Code::kInvalidArgument,
                 fmt::format("the array has {} elements, not {} as `len` says", array.size(), args.len)};
  if (!args.validate) return {};
  return start(args.len, [&] { return check(array, args.seed, args.first); }).wait();
}

/// The array is encoded as it is made, to where the client fetches it: it needs no memory of its own.
Result<data_array_t> Server::xfer_read_encode(nssi::Request &request, const xfer_args &args) {
  if (args.len > options_.most_encoded_bytes / sizeof(data_t))
    return Error{Code::kTooLarge,
                 fmt::format("{} elements are more than the {} bytes that this service encodes: read less "
                             "at once, or by xfer_read_rdma",
                             args.len, options_.most_encoded_bytes)};
  const auto seed = args.validate ? std::optional(args.seed) : std::nullopt;
  // The stub's answer, of what is returned here, comes after this one and is none.
  (void)request.reply(encoded_bytes(args.len),
                      [&](std::span<std::byte> at) { encode(at, args.len, seed, args.first); });
  return data_array_t();
}

// --- bulk, the client's to the service -------------------------------------------------------------------------------

Status Server::xfer_write_rdma(nssi::Request &request, const xfer_args &args) {
  if (auto status = check_buffer(request, args); !status.ok()) return status;
  auto lane = lanes_.take(*runtime_, request);
  if (!lane) return lane.error();
  if (args.validate) return pull_and_check(request, args, *lane);
  return for_each_part(args.len,
                       [&](const Part &part) { return get(request, lane->piece(0).first(part.count), part.first); });
}

/// One piece is checked while the other one is filled.
Status Server::pull_and_check(nssi::Request &request, const xfer_args &args, const Lanes::Lease &lane) {
  Workers::Task checks[2];
  auto status = for_each_part(args.len, [&](const Part &part) -> Status {
    auto &check_of_piece = checks[part.number % 2];
    if (auto checked = check_of_piece.wait(); !checked.ok()) return checked;
    const auto piece = lane.piece(part.number).first(part.count);
    if (auto got = get(request, piece, part.first); !got.ok()) return got;
    check_of_piece =
        start(args.len, [&args, piece, first = args.first + part.first] { return check(piece, args.seed, first); });
    return {};
  });
  for (auto &last : checks)
    if (auto checked = last.wait(); status.ok()) status = checked;
  return status;
}

// --- bulk, the service's to the client -------------------------------------------------------------------------------

Status Server::xfer_read_rdma(nssi::Request &request, const xfer_args &args) {
  if (auto status = check_buffer(request, args); !status.ok()) return status;
  if (!args.validate)
    return for_each_part(
        args.len, [&](const Part &part) { return put(request, std::span(anything_).first(part.count), part.first); });
  auto lane = lanes_.take(*runtime_, request);
  return lane ? make_and_push(request, args, *lane) : Status(lane.error());
}

/// One piece is made while the other one is sent.
Status Server::make_and_push(nssi::Request &request, const xfer_args &args, const Lanes::Lease &lane) {
  Workers::Task making;
  const auto make = [&](const Part &part) {
    const auto piece = lane.piece(part.number).first(part.count);
    making = start(args.len, [&args, piece, first = args.first + part.first]() -> Status {
      fill(piece, args.seed, first);
      return {};
    });
  };
  make(part_of(args.len, 0));
  return for_each_part(args.len, [&](const Part &part) -> Status {
    (void)making.wait();
    if (const auto next = part_of(args.len, part.number + 1); next.count > 0) make(next);
    return put(request, lane.piece(part.number).first(part.count), part.first);
  });
}

// --- a part of an array ----------------------------------------------------------------------------------------------

Server::Part Server::part_of(std::uint64_t len, std::uint64_t number) const {
  const auto first = std::min<std::uint64_t>(number * piece_, len);
  return {first, std::min<std::uint64_t>(piece_, len - first), number};
}

template <class Move> Status Server::for_each_part(std::uint64_t len, Move &&move) const {
  for (auto part = part_of(len, 0); part.count > 0; part = part_of(len, part.number + 1))
    if (auto status = move(part); !status.ok()) return status;
  return {};
}

Status Server::get(nssi::Request &request, std::span<data_t> into, std::uint64_t first) const {
  request.limit_transfers(Deadline::in(options_.client_timeout));
  return request.get_data(std::as_writable_bytes(into), first * sizeof(data_t));
}

Status Server::put(nssi::Request &request, std::span<const data_t> from, std::uint64_t first) const {
  request.limit_transfers(Deadline::in(options_.client_timeout));
  return request.put_data(std::as_bytes(from), first * sizeof(data_t));
}

/// What is a piece at most is computed at once: it takes as long as moving it, and less than waking up a thread.
Workers::Task Server::start(std::uint64_t len, Work work) {
  return (len <= piece_ ? here_ : threads_).start(*runtime_, std::move(work));
}

}  // namespace transfer
