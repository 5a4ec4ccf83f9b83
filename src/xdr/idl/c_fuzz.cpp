// SPDX-License-Identifier: BSD-3-Clause
// Bytes that may be anything, decoded by the C that is made of golden.x: it takes those that C++ takes.
#include "golden_side.h"
#include "golden_streams.hpp"
#include "golden_values.hpp"

#include <cstdint>
#include <cstdlib>

namespace {

template <class Kind> bool is_taken(const golden_type &type, std::vector<std::byte> bytes, bool must_end) {
  Kind stream(bytes, XDR_DECODE);
  void *value = std::calloc(1, type.size);
  bool is_good = type.code(&stream.get(), value) == TRUE;
  if (must_end && is_good) is_good = xdr_getpos(&stream.get()) == bytes.size();
  type.free(value);
  std::free(value);
  return is_good;
}

template <class T> void check(const char *name, const std::vector<std::byte> &bytes) {
  const auto &type = *golden_find(&golden_nessie, name);
  const bool is_good = xdr::decode<T>(bytes).ok();
  if (is_taken<MemoryStream>(type, bytes, true) != is_good) std::abort();
  if (!is_taken<FileStream>(type, bytes, false) && is_good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  const auto *begin = reinterpret_cast<const std::byte *>(data);
  const std::vector<std::byte> bytes(begin + 1, begin + size);
  switch (data[0] % 6) {
    case 0: check<golden::everything>("everything", bytes); break;
    case 1: check<golden::node>("node", bytes); break;
    case 2: check<golden::holder>("holder", bytes); break;
    case 3: check<golden::numbers>("numbers", bytes); break;
    case 4: check<golden::aliases>("aliases", bytes); break;
    default: check<golden::rest>("rest", bytes);
  }
  return 0;
}
