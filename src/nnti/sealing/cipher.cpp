// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/sealing/cipher.hpp"

#include <nettle/curve25519.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>

#include <cstring>

namespace nnti::sealing {
namespace {

const std::uint8_t *octets(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t *>(bytes.data());
}
std::uint8_t *octets(std::span<std::byte> bytes) { return reinterpret_cast<std::uint8_t *>(bytes.data()); }

}  // namespace

KeyAgreement::KeyAgreement() {
  static_assert(std::tuple_size_v<PublicKey> == CURVE25519_SIZE);
  nessie::random_bytes(private_);
  curve25519_mul_g(octets(std::span<std::byte>(public_)), octets(std::span<const std::byte>(private_)));
}

KeyAgreement::~KeyAgreement() { ::explicit_bzero(private_.data(), private_.size()); }

std::optional<AgreedSecret> KeyAgreement::agree(const PublicKey &theirs) const {
  AgreedSecret agreed;
  curve25519_mul(octets(std::span<std::byte>(agreed)), octets(std::span<const std::byte>(private_)),
                 octets(std::span<const std::byte>(theirs)));
  const AgreedSecret known{};
  if (memeql_sec(agreed.data(), known.data(), known.size()) != 0) return std::nullopt;
  return agreed;
}

/// HMAC under the credential first, then, under what that gives, over what was agreed: as a key takes both to know.
Cipher::Cipher(const nessie::Credential &credential, std::string_view role, const KeySource &source) {
  const auto of_job = credential.prove(role, source.connecting, source.accepting);
  hmac_sha256_ctx hmac;
  hmac_sha256_set_key(&hmac, of_job.size(), octets(std::span<const std::byte>(of_job)));
  hmac_sha256_update(&hmac, source.agreed.size(), octets(std::span<const std::byte>(source.agreed)));
  nessie::Proof key;
  hmac_sha256_digest(&hmac, key.size(), octets(std::span<std::byte>(key)));
  static_assert(std::tuple_size_v<nessie::Proof> == AES256_KEY_SIZE);
  gcm_aes256_set_key(&context_, octets(std::span<const std::byte>(key)));
  ::explicit_bzero(key.data(), key.size());
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
