// SPDX-License-Identifier: BSD-3-Clause
#include <services/transfer/client/client.hpp>

#include <limits>

namespace transfer {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

xfer_args args_for(std::size_t len, const Options &options) {
  return {static_cast<std::uint32_t>(len), options.seed, options.validate};
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

Status Client::write_encode(const data_array_t &array, const Options &options) {
  if (auto status = check_len(array.size()); !status.ok()) return status;
  return stub_.xfer_write_encode(args_for(array.size(), options), array, call_options(options));
}

Status Client::write_rdma(const Array &array, const Options &options) {
  return stub_.xfer_write_rdma(args_for(array.len(), options), array.buffer(), call_options(options));
}

Result<data_array_t> Client::read_encode(std::uint32_t len, const Options &options) {
  data_array_t array;
  if (auto status = read_encode(len, array, options); !status.ok()) return status.error();
  return array;
}

/// Not by the stub, whose results are decoded into new memory.
Status Client::read_encode(std::uint32_t len, data_array_t &array, const Options &options) {
  auto call = runtime_.call(stub_.service(), XFER::ONE::xfer_read_encode, xdr::encode(args_for(len, options)),
                            call_options(options));
  if (auto status = call.wait(); !status.ok()) return status;
  if (auto status = xdr::decode_into(call.view(), array); !status.ok()) return status;
  if (array.size() != len) return Error{Code::kBadMessage, "the service's array has another length than was asked for"};
  return options.validate ? check(array, options.seed) : Status();
}

Status Client::read_rdma(const Array &array, const Options &options) {
  auto status = stub_.xfer_read_rdma(args_for(array.len(), options), array.buffer(), call_options(options));
  if (!status.ok() || !options.validate) return status;
  return check(array.elements(), options.seed);
}

}  // namespace transfer
