// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/sealing/cipher.hpp"

#include <nettle/memops.h>

#include <cstring>

namespace nnti::sealing {
namespace {

const std::uint8_t *octets(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t *>(bytes.data());
}
std::uint8_t *octets(std::span<std::byte> bytes) { return reinterpret_cast<std::uint8_t *>(bytes.data()); }

}  // namespace

Cipher::Cipher(const nessie::Credential &credential, std::string_view role, const Salt &connecting,
               const Salt &accepting) {
  const auto key = credential.prove(role, connecting, accepting);
  static_assert(std::tuple_size_v<nessie::Proof> == AES256_KEY_SIZE);
  gcm_aes256_set_key(&context_, octets(key));
}

void Cipher::begin(std::uint64_t number, std::span<const std::byte> label) {
  std::array<std::uint8_t, GCM_IV_SIZE> nonce{};
  for (std::size_t i = 0; i < sizeof number; ++i)
    nonce[nonce.size() - 1 - i] = static_cast<std::uint8_t>(number >> 8 * i);
  gcm_aes256_set_iv(&context_, nonce.size(), nonce.data());
  if (!label.empty()) gcm_aes256_update(&context_, label.size(), octets(label));
}

Tag Cipher::seal(std::uint64_t number, std::span<const std::byte> label, std::span<const std::byte> plain,
                 std::span<std::byte> sealed) {
  begin(number, label);
  if (!plain.empty()) gcm_aes256_encrypt(&context_, plain.size(), octets(sealed), octets(plain));
  Tag tag;
  gcm_aes256_digest(&context_, tag.size(), octets(std::span<std::byte>(tag)));
  return tag;
}

bool Cipher::open(std::uint64_t number, std::span<const std::byte> label, std::span<const std::byte> sealed,
                  const Tag &tag, std::span<std::byte> plain) {
  begin(number, label);
  if (!sealed.empty()) gcm_aes256_decrypt(&context_, sealed.size(), octets(plain), octets(sealed));
  Tag expected;
  gcm_aes256_digest(&context_, expected.size(), octets(std::span<std::byte>(expected)));
  return memeql_sec(tag.data(), expected.data(), tag.size()) != 0;
}

}  // namespace nnti::sealing
