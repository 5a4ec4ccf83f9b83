// SPDX-License-Identifier: BSD-3-Clause
#include <base/testing/fuzz.hpp>

#include <nssi/wire/wire.hpp>

#include <algorithm>
#include <cstdlib>

using namespace nssi;

namespace {

template <class Message> bool is_encoding_of(const Message &message, std::span<const std::byte> input) {
  return std::ranges::equal(xdr::encode(message), input);
}

}  // namespace

/// Whatever is accepted as a request, or a list of segments, must be one: its encoding is the input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte *>(data), size);
  (void)wire::prefix_of(input);
  wire::Segments segments;
  if (wire::decode_segments(input, segments).ok() && !is_encoding_of(segments, input)) std::abort();
  wire::Request request;
  if (!wire::decode_request(input, request).ok()) return 0;
  if (!is_encoding_of(request, input)) std::abort();
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  static constexpr std::byte kArgs[] = {std::byte{1}, std::byte{2}, std::byte{3}};
  wire::Request plain, full, long_args;
  plain.args = kArgs;
  full = plain;
  full.data = wire::Buffer{{1, 2, 3, 4, 5, nnti::Rights::kReadWrite}};
  long_args.long_args = full.data;
  full.does_not_wait.emplace();
  full.is_one_way.emplace();
  full.trace = wire::Trace{6, 7};
  const auto list = xdr::encode(wire::Segments{{*full.data, *full.data}, {{1, 1, 2}, {0, 0, 3}}});
  wire::Request scattered, far_scattered;
  scattered.segments = list;
  far_scattered.data = full.data;
  far_scattered.data_is_list.emplace();
  return {xdr::encode(plain),
          xdr::encode(full),
          xdr::encode(long_args),
          xdr::encode(scattered),
          xdr::encode(far_scattered),
          list,
          xdr::encode(wire::Prefix{wire::Kind::kCancel, 7}),
          xdr::encode(wire::Hello())};
}
