// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/fuzz.hpp>

#include <nssi/wire.hpp>

#include <cstdlib>
#include <cstring>

using namespace nssi;

/// Whatever is accepted as a request must be one: its encoding is the input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte *>(data), size);
  (void)wire::prefix_of(input);
  wire::Request request;
  if (!wire::decode_request(input, request).ok()) return 0;
  auto again = xdr::encode(request);
  if (again.size() != size || std::memcmp(again.data(), data, size) != 0) std::abort();
  return 0;
}

std::vector<std::vector<std::byte>> fuzz::seeds() {
  static constexpr std::byte kArgs[] = {std::byte{1}, std::byte{2}, std::byte{3}};
  wire::Request plain, full, long_args;
  plain.args = kArgs;
  full = plain;
  full.data = wire::Buffer{{1, 2, 3, 4, 5, nnti::Rights::kReadWrite}};
  long_args.long_args = full.data;
  full.does_not_wait.emplace();
  full.is_one_way.emplace();
  return {xdr::encode(plain), xdr::encode(full), xdr::encode(long_args),
          xdr::encode(wire::Prefix{wire::Kind::kCancel, 7}), xdr::encode(wire::Hello())};
}
