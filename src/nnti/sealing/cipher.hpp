// SPDX-License-Identifier: BSD-3-Clause
// One direction of a sealed connection: AES-256-GCM under a key that the job's secret, both sides' salts and what the
// two agree upon (X25519, RFC 7748) give together.
#pragma once

#include <base/credential.hpp>

#include <nettle/gcm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace nnti::sealing {

using Tag = std::array<std::byte, GCM_DIGEST_SIZE>;
using Salt = nessie::Nonce;
using PublicKey = std::array<std::byte, 32>;
using AgreedSecret = std::array<std::byte, 32>;

/// One side's part in agreeing upon a secret that is gone with the two who have agreed: who learns the job's credential
/// later cannot make it again.
class KeyAgreement {
 public:
  KeyAgreement();
  ~KeyAgreement();
  KeyAgreement(const KeyAgreement &) = delete;
  KeyAgreement &operator=(const KeyAgreement &) = delete;
  const PublicKey &public_key() const { return public_; }
  /// Nothing: `theirs` is one of the few keys with which anybody knows the outcome.
  std::optional<AgreedSecret> agree(const PublicKey &theirs) const;

 private:
  std::array<std::byte, 32> private_;
  PublicKey public_;
};

/// What all keys of a connection come from.
struct KeySource {
  Salt connecting, accepting;
  AgreedSecret agreed;
};

/// Encrypts what one side sends, or decrypts it at the other. A (key, number) pair must never seal two texts.
class Cipher {
 public:
  /// `role` names the direction and the use: every role has a key of its own.
  Cipher(const nessie::Credential &credential, std::string_view role, const KeySource &source);

  /// Encrypts `plain` to `sealed` (of the same size; they may be the same memory). `label` is authenticated with it.
  Tag seal(std::uint64_t number, std::span<const std::byte> label, std::span<const std::byte> plain,
           std::span<std::byte> sealed);
  /// Decrypts `sealed` to `plain`. False: it is not what was sealed under this number and label; `plain` holds garbage.
  [[nodiscard]] bool open(std::uint64_t number, std::span<const std::byte> label, std::span<const std::byte> sealed,
                          const Tag &tag, std::span<std::byte> plain);

 private:
  void begin(std::uint64_t number, std::span<const std::byte> label);

  gcm_aes256_ctx context_;
};

}  // namespace nnti::sealing
