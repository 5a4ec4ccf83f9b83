// SPDX-License-Identifier: BSD-3-Clause
#include <base/testing/fuzz.hpp>
#include <services/discovery/contact/contact.hpp>

#include <cstdlib>

using namespace nessie::service;

/// Whatever is accepted as a contact can be written, and is read back to the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const auto contact = parse_contact({reinterpret_cast<const char *>(data), size});
  if (!contact.ok()) return 0;
  const auto text = to_text(*contact);
  if (text.ok() ? *parse_contact(*text) != *contact : size <= kMaxContactBytes / 2) std::abort();
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  Contact plain{"directory", "shm://8a46-f0/nessie-1", {}, {"node1", "8a46c1ff", 4026531836, 4711, 12345}, 7},
      full = plain;
  full.url += ";ofi://10.0.0.7:41213?provider=tcp";
  full.offers = {{{0x4e534449, 1}, 0}, {{1, 2}, 3}};
  std::vector<std::vector<std::byte>> seeds;
  for (const auto &contact : {plain, full}) {
    const auto text = *to_text(contact);
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}
