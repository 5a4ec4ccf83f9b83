// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/server/server.hpp>

#include <base/config_reader.hpp>

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

constexpr std::uint64_t kMostThreads = 1024, kMostPieceBytes = std::uint64_t{1} << 30;

/// A piece takes a fraction of that.
constexpr std::chrono::milliseconds kStuck{100};

}  // namespace

Result<ServerOptions> server_options(const nessie::Config &config) {
  ServerOptions options;
  nessie::ConfigReader read(config);
  read.count("transfer.threads", options.threads, 0, kMostThreads);
  read.size("transfer.piece", options.piece_bytes);
  read.size("transfer.most_encoded", options.most_encoded_bytes);
  if (!read.status().ok()) return read.status().error();
  if (options.piece_bytes == 0 || options.piece_bytes > kMostPieceBytes)
    return config.bad_value("transfer.piece", "a size such as 64K, 1G at most");
  if (options.most_encoded_bytes == 0) return config.bad_value("transfer.most_encoded", "a size such as 64K");
  return options;
}

nessie::ProviderType Server::type() {
  return {.name = "transfer",
          .start = [](const nessie::ProviderContext &context) -> Result<std::unique_ptr<nessie::Provider>> {
            auto options = server_options(context.config);
            return options.ok() ? start(context, *options) : options.error();
          },
          .takes_pool = true};
}

Result<std::unique_ptr<nessie::Provider>> Server::start(const nessie::ProviderContext &context,
                                                        const ServerOptions &options) {
  std::unique_ptr<Server> server(new Server(context, options));
  if (auto status = server->add_to(context.runtime, context.number, context.pool); !status.ok()) return status.error();
  return std::unique_ptr<nessie::Provider>(std::move(server));
}

Server::Server(const nessie::ProviderContext &context, const ServerOptions &options)
    : runtime_(context.runtime),
      options_(options),
      piece_(std::max<std::size_t>(1, options.piece_bytes / sizeof(data_t))),
      moves_(context.runtime, {kStuck}),
      lanes_(context.runtime, context.budget,
             {context.name, 2 * piece_ * sizeof(data_t), std::max<std::size_t>(1, options.most_lanes),
              [this](nssi::PeerId caller) { return moves_.is_slow(caller); }}),
      threads_(options.threads),
      anything_(piece_) {
  fill(anything_, 0);
}

std::string Server::describe() const { return fmt::format("pieces on their way: {}", moves_.count()); }

// --- encoded ---------------------------------------------------------------------------------------------------------

Status Server::xfer_write_encode(nssi::Request &, const xfer_args &args, const data_array_t &array) {
  if (array.size() != args.len)
    return Error{Code::kInvalidArgument,
                 fmt::format("the array has {} elements, not {} as `len` says", array.size(), args.len)};
  if (!args.validate) return {};
  Status checked;
  start(args.len, [&] { checked = check(array, args.seed, args.first); }).wait();
  return checked;
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
  auto lane = lanes_.take(request.caller(), &request);
  if (!lane) return lane.error();
  if (args.validate) return pull_and_check(request, args, *lane);
  return for_each_part(args.len, [&](const Part &part) { return get(request, piece_in(*lane, part), part.first); });
}

/// One piece is checked while the other one is filled.
Status Server::pull_and_check(nssi::Request &request, const xfer_args &args, const Lease &lane) {
  Status outcome[2];
  Task checks[2];
  auto status = for_each_part(args.len, [&](const Part &part) -> Status {
    const auto half = part.number % 2;
    checks[half].wait();
    if (!outcome[half].ok()) return outcome[half];
    const auto piece = piece_in(lane, part);
    if (auto got = get(request, piece, part.first); !got.ok()) return got;
    checks[half] = start(args.len, [&args, &into = outcome[half], piece, first = args.first + part.first] {
      into = check(piece, args.seed, first);
    });
    return {};
  });
  for (auto &check : checks) check.wait();
  // Of the last two pieces, the one before the last comes first.
  const std::uint64_t parts = (args.len + piece_ - 1) / piece_;
  for (const auto half : {parts % 2, (parts + 1) % 2})
    if (status.ok()) status = outcome[half];
  return status;
}

// --- bulk, the service's to the client -------------------------------------------------------------------------------

Status Server::xfer_read_rdma(nssi::Request &request, const xfer_args &args) {
  if (auto status = check_buffer(request, args); !status.ok()) return status;
  if (!args.validate)
    return for_each_part(
        args.len, [&](const Part &part) { return put(request, std::span(anything_).first(part.count), part.first); });
  auto lane = lanes_.take(request.caller(), &request);
  return lane ? make_and_push(request, args, *lane) : Status(lane.error());
}

/// One piece is made while the other one is sent.
Status Server::make_and_push(nssi::Request &request, const xfer_args &args, const Lease &lane) {
  Task making;
  const auto make = [&](const Part &part) {
    making = start(args.len, [&args, piece = piece_in(lane, part), first = args.first + part.first] {
      fill(piece, args.seed, first);
    });
  };
  make(part_of(args.len, 0));
  return for_each_part(args.len, [&](const Part &part) -> Status {
    making.wait();
    if (const auto next = part_of(args.len, part.number + 1); next.count > 0) make(next);
    return put(request, piece_in(lane, part), part.first);
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

std::span<data_t> Server::piece_in(const Lease &lane, const Part &part) const {
  auto *elements = reinterpret_cast<data_t *>(lane.data());
  return {elements + part.number % 2 * piece_, part.count};
}

Status Server::get(nssi::Request &request, std::span<data_t> into, std::uint64_t first) {
  const nessie::service::Moves::Move move(moves_, request.caller());
  request.limit_transfers(Deadline::in(options_.client_timeout));
  return request.get_data(std::as_writable_bytes(into), first * sizeof(data_t));
}

Status Server::put(nssi::Request &request, std::span<const data_t> from, std::uint64_t first) {
  const nessie::service::Moves::Move move(moves_, request.caller());
  request.limit_transfers(Deadline::in(options_.client_timeout));
  return request.put_data(std::as_bytes(from), first * sizeof(data_t));
}

/// What is a piece at most is computed at once: it takes as long as moving it, and less than waking up a thread.
Server::Task Server::start(std::uint64_t len, std::function<void()> work) {
  if (len > piece_ && threads_.threads() > 0) return threads_.start(runtime_, std::move(work));
  work();
  return {};
}

}  // namespace transfer
