// SPDX-License-Identifier: BSD-3-Clause
#include "base/credential.hpp"

#include "base/hex.hpp"
#include "base/random.hpp"

#include <fmt/format.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace nessie {
namespace {

Error no_credential() {
  return {Code::kInvalidArgument,
          "a credential is 64 hexadecimal digits, or none; take the one that the job's servers were started with"};
}

const std::uint8_t *octets(const void *bytes) { return static_cast<const std::uint8_t *>(bytes); }

}  // namespace

Credential Credential::generate() {
  Credential credential;
  random_bytes(credential.secret_);
  return credential;
}

Result<Credential> Credential::from_hex(std::string_view hex) {
  Credential credential;
  if (hex.size() != 2 * credential.secret_.size()) return no_credential();
  for (std::size_t i = 0; i < credential.secret_.size(); ++i) {
    int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return no_credential();
    credential.secret_[i] = static_cast<std::byte>(high * 16 + low);
  }
  return credential;
}

std::string Credential::to_hex() const {
  std::string hex;
  for (auto byte : secret_) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return hex;
}

Proof Credential::prove(std::string_view role, const Nonce &mine, const Nonce &theirs) const {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, secret_.size(), octets(secret_.data()));
  // The role's length goes in front of it, so that no two (role, nonces) give the same text.
  const auto length = static_cast<std::uint8_t>(role.size());
  hmac_sha256_update(&context, sizeof length, &length);
  hmac_sha256_update(&context, role.size(), octets(role.data()));
  hmac_sha256_update(&context, mine.size(), octets(mine.data()));
  hmac_sha256_update(&context, theirs.size(), octets(theirs.data()));
  Proof proof{};
  hmac_sha256_digest(&context, proof.size(), reinterpret_cast<std::uint8_t *>(proof.data()));
  return proof;
}

bool Credential::check(const Proof &proof, std::string_view role, const Nonce &mine, const Nonce &theirs) const {
  const auto expected = prove(role, mine, theirs);
  return memeql_sec(proof.data(), expected.data(), proof.size()) != 0;
}

}  // namespace nessie
