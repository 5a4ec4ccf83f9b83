// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/classic_header.hpp>

#include <base/testing/fuzz.hpp>

#include <cstring>

namespace {

using nessie::fuzz::Bytes;

void append(Bytes &bytes, std::uint64_t number, int size_bytes) {
  for (int i = size_bytes - 1; i >= 0; --i) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
}

void append_name(Bytes &bytes, const char *name, int size_bytes) {
  append(bytes, std::strlen(name), size_bytes);
  for (const char *c = name; *c != 0; ++c) bytes.push_back(static_cast<std::byte>(*c));
  while (bytes.size() % 4 != 0) bytes.push_back({});
}

/// A dimension of records, another one, a variable of both, and an attribute.
Bytes header_of(int version) {
  const int size = version == 5 ? 8 : 4;
  Bytes bytes{std::byte{'C'}, std::byte{'D'}, std::byte{'F'}, static_cast<std::byte>(version)};
  append(bytes, 2, size);
  append(bytes, 10, 4), append(bytes, 2, size);
  append_name(bytes, "time", size), append(bytes, 0, size);
  append_name(bytes, "x", size), append(bytes, 7, size);
  append(bytes, 12, 4), append(bytes, 1, size);
  append_name(bytes, "title", size), append(bytes, 2, 4), append(bytes, 3, size), append(bytes, 0x61626300, 4);
  append(bytes, 11, 4), append(bytes, 1, size);
  append_name(bytes, "history", size), append(bytes, 2, size), append(bytes, 0, size), append(bytes, 1, size);
  append(bytes, 0, 4), append(bytes, 0, size);
  append(bytes, 6, 4), append(bytes, 56, size), append(bytes, 256, version == 1 ? 4 : 8);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto header = staging::parse_classic_header(std::as_bytes(std::span(data, size)));
  if (!header.ok()) return 0;
  for (const auto &variable : header->variables)
    if (variable.element_bytes <= 0 || variable.dimensions.size() != variable.dims()) __builtin_trap();
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() { return {header_of(1), header_of(2), header_of(5)}; }
