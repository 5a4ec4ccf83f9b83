// SPDX-License-Identifier: BSD-3-Clause
#include <base/testing/fuzz.hpp>

#include <nssi/wire/wire.hpp>

#include <cstdlib>
#include <cstring>

using namespace nssi;

/// Whatever is accepted as a result must be one: its encoding is the input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte *>(data), size);
  wire::Result result;
  if (!wire::decode_result(input, result).ok()) return 0;
  if (result.failure) (void)wire::to_error(*result.failure).to_string();
  auto again = xdr::encode(result);
  if (again.size() != size || std::memcmp(again.data(), data, size) != 0) std::abort();
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  static constexpr std::byte kResult[] = {std::byte{9}, std::byte{8}};
  wire::Result plain, failed, long_result;
  plain.result = kResult;
  failed.failure = wire::Failure{12, 1, 28, "No space left on device"};
  long_result.long_result = wire::Buffer{{1, 2, 3, 4, 5, nnti::Rights::kRemoteRead}};
  return {xdr::encode(plain), xdr::encode(failed), xdr::encode(long_result)};
}
