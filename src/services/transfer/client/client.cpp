// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/client/client.hpp>

#include <algorithm>
#include <deque>
#include <limits>

namespace transfer {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

xfer_args args_for(std::size_t len, const Options &options) {
  return {static_cast<std::uint32_t>(len), options.seed, options.validate, 0};
}

Status check_len(std::size_t len) {
  if (len <= std::numeric_limits<std::uint32_t>::max()) return {};
  return Error{Code::kTooLarge, "an array has fewer than 2^32 elements: transfer it in several"};
}

/// Nothing is kept of a transfer: it may be carried out twice.
nssi::CallOptions call_options(const Options &options) { return {.deadline = options.deadline, .idempotent = true}; }

Result<Array> array_of(Result<nnti::RegisteredBuffer> buffer) {
  if (!buffer) return buffer.error();
  return Array(*std::move(buffer));
}

/// Of an encoded array. With the other arguments it fits a block of 128 KiB, which stays in the second cache.
struct Part {
  static constexpr std::size_t kMost = ((128 << 10) - 64) / sizeof(data_t);
  Part(std::size_t len, std::size_t number) : first(number * kMost), count(std::min(kMost, len - first)) {}
  std::size_t first, count;
};
constexpr std::size_t kInFlight = 4;

/// Keeps some calls on their way: `start(part)` begins one, and `finish(call, part)` is told when it has succeeded.
template <class Start, class Finish> Status in_parts(std::size_t len, Start start, Finish finish) {
  const std::size_t parts = std::max<std::size_t>(1, (len + Part::kMost - 1) / Part::kMost);
  std::deque<nssi::Call> calls;
  for (std::size_t done = 0, next = 0; done < parts; ++done) {
    for (; next < std::min(parts, done + kInFlight); ++next) calls.push_back(start(Part(len, next)));
    if (auto status = calls.front().wait(); !status.ok()) return status;
    if (auto status = finish(calls.front(), Part(len, done)); !status.ok()) return status;
    calls.pop_front();
  }
  return {};
}

xfer_args args_for(const Part &part, const Options &options) {
  return {static_cast<std::uint32_t>(part.count), options.seed, options.validate,
          static_cast<std::uint32_t>(part.first)};
}

}  // namespace

std::span<data_t> Array::elements() const {
  const auto bytes = buffer_.bytes();
  return {reinterpret_cast<data_t *>(bytes.data()), bytes.size() / sizeof(data_t)};
}

Result<Array> Client::allocate(std::uint32_t len) {
  return array_of(runtime_.allocate(std::size_t{len} * sizeof(data_t), nnti::Rights::kReadWrite));
}

Result<Array> Client::lend(std::span<data_t> elements) {
  if (auto status = check_len(elements.size()); !status.ok()) return status.error();
  return array_of(runtime_.register_memory(std::as_writable_bytes(elements), nnti::Rights::kReadWrite));
}

/// Not by the stub, which takes and gives whole vectors.
Status Client::write_encode(std::span<const data_t> array, const Options &options) {
  if (auto status = check_len(array.size()); !status.ok()) return status;
  const auto start = [&](const Part &part) {
    auto args = args_for(part, options);
    const auto elements = array.subspan(part.first, part.count);
    const auto args_bytes = xdr::encoded_size(args);
    return runtime_.call(
        stub_.service(), XFER::ONE::xfer_write_encode, args_bytes + encoded_bytes(args.len),
        [&](std::span<std::byte> at) {
          xdr::Writer writer(at.data());
          writer(args);
          encode(at.subspan(args_bytes), elements);
        },
        call_options(options));
  };
  return in_parts(array.size(), start, [](const nssi::Call &call, const Part &) {
    return call.view().empty() ? Status() : Error{Code::kBadMessage, "there is a result where none should be"};
  });
}

Status Client::write_rdma(const Array &array, const Options &options) {
  return stub_.xfer_write_rdma(args_for(array.len(), options), array.buffer(), call_options(options));
}

Status Client::read_encode(std::span<data_t> array, const Options &options) {
  if (auto status = check_len(array.size()); !status.ok()) return status;
  const auto start = [&](const Part &part) {
    return runtime_.call(stub_.service(), XFER::ONE::xfer_read_encode, xdr::encode(args_for(part, options)),
                         call_options(options));
  };
  return in_parts(array.size(), start, [&](const nssi::Call &call, const Part &part) {
    const auto elements = array.subspan(part.first, part.count);
    auto status = decode(call.view(), elements);
    return status.ok() && options.validate ? check(elements, options.seed, part.first) : status;
  });
}

Status Client::read_rdma(const Array &array, const Options &options) {
  auto status = stub_.xfer_read_rdma(args_for(array.len(), options), array.buffer(), call_options(options));
  if (!status.ok() || !options.validate) return status;
  return check(array.elements(), options.seed);
}

}  // namespace transfer
