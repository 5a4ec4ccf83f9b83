// SPDX-License-Identifier: BSD-3-Clause
// One direction of a sealed connection: AES-256-GCM under a key that the job's secret and both sides' salts give.
#pragma once

#include <base/credential.hpp>

#include <nettle/gcm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace nnti::sealing {

using Tag = std::array<std::byte, GCM_DIGEST_SIZE>;
using Salt = nessie::Nonce;

/// Encrypts what one side sends, or decrypts it at the other. A (key, number) pair must never seal two texts.
class Cipher {
 public:
  /// `role` names the direction and the use: every role has a key of its own.
  Cipher(const nessie::Credential &credential, std::string_view role, const Salt &connecting, const Salt &accepting);

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
