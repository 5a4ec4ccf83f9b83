// SPDX-License-Identifier: BSD-3-Clause
// The job's credential: one secret that all processes of a job share; it is proved, never sent.
// After the cookie and protection tag of the Gemini paper (communication domains).
#pragma once

#include "base/random.hpp"

#include <nessie/result.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace nessie {

class Config;

using Nonce = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 32>;

/// What somebody is told who proves another credential, and what is said of such a peer.
inline constexpr const char *kCredentialsDiffer =
    "the credentials differ, as different users' do; give both sides the same NESSIE_CREDENTIAL";
inline constexpr const char *kPeerHasAnotherCredential =
    "the peer does not have this job's credential, or user's; give both sides the same NESSIE_CREDENTIAL";

/// A 256-bit secret. The default-constructed credential is the empty one ("none"): two processes with it prove the same
/// all-zero secret to each other and so can connect.
class Credential {
 public:
  Credential() = default;
  /// A fresh secret from the system's random source.
  static Credential generate();
  /// Parses what to_hex() wrote. kInvalidArgument unless it is 64 hexadecimal digits.
  static Result<Credential> from_hex(std::string_view hex);
  /// What the setting `credential` holds; "none": the empty one. Without it that of the user who runs this process: of
  /// `credential_file`, otherwise of ~/.config/nessie/credential, or, where there is no home that can be written,
  /// /tmp/nessie-UID/credential; made when it is first asked for. So nobody but the user's own processes can connect to
  /// each other by default, on any node that sees the file. kInvalidArgument: as from_hex(). kRefused: the file could
  /// be known to others. kIo: it cannot be read or made.
  static Result<Credential> of(const Config &config);
  /// What another setting holds; the empty one if it is not set. Errors as from_hex().
  static Result<Credential> of_setting(const Config &config, const std::string &setting);
  /// Not the empty one.
  bool is_set() const { return secret_ != std::array<std::byte, 32>{}; }
  std::string to_hex() const;

  /// HMAC-SHA256 over (`role`, `mine`, `theirs`) under the secret. `role` keeps a proof from being reflected.
  Proof prove(std::string_view role, const Nonce &mine, const Nonce &theirs) const;
  /// Compares in constant time.
  bool check(const Proof &proof, std::string_view role, const Nonce &mine, const Nonce &theirs) const;

 private:
  std::array<std::byte, 32> secret_{};
};

}  // namespace nessie
