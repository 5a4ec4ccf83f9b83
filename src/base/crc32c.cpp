// SPDX-License-Identifier: BSD-3-Clause
#include "base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define NESSIE_HAS_CRC32C 1
#define NESSIE_CRC32C_TARGET __attribute__((target("sse4.2")))
#define NESSIE_FOLD_TARGET __attribute__((target("sse4.2,avx512f,vpclmulqdq")))
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define NESSIE_HAS_CRC32C 1
#define NESSIE_CRC32C_TARGET
#endif

// Design notes. A checksum is a polynomial modulo P over GF(2), its lowest power in the highest bit. Zeros behind a
// sequence multiply its checksum by a power of x, so the checksums of two sequences can be joined; and the processor,
// which takes three cycles for eight bytes but can begin with others in each of them, is given three sequences at once.
// One that multiplies wide polynomials without carries does better: 256 bytes are multiplied by the power of x by which
// they lie in front of the next 256, and added to them, until 64 are left that have the checksum of all. (V. Gopal et
// al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel, 2009.)
namespace nessie {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;
constexpr std::uint32_t kOne = 0x80000000;  ///< x^0

constexpr std::uint32_t times_x(std::uint32_t a) { return (a & 1) != 0 ? (a >> 1) ^ kPolynomial : a >> 1; }

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (auto bit = kOne; bit != 0; bit >>= 1, b = times_x(b))
    if ((a & bit) != 0) product ^= b;
  return product;
}

/// powers[k] is x^(8 · 2^k): what 2^k bytes of zeros multiply by.
constexpr auto kPowers = [] {
  std::array<std::uint32_t, 64> powers{};
  powers[0] = kOne >> 8;
  for (std::size_t k = 1; k < powers.size(); ++k) powers[k] = multiply(powers[k - 1], powers[k - 1]);
  return powers;
}();

constexpr std::uint32_t power_of(std::uint64_t zero_bytes) {
  auto power = kOne;
  for (std::size_t k = 0; zero_bytes != 0; ++k, zero_bytes >>= 1)
    if ((zero_bytes & 1) != 0) power = multiply(power, kPowers[k]);
  return power;
}

using Table = std::array<std::uint32_t, 256>;

/// kTables[k][b] is the checksum of the byte b with k zeros behind it.
constexpr auto kTables = [] {
  std::array<Table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    auto value = byte;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  return tables;
}();

template <class Word> Word load(const std::byte *from) {
  Word word{};
  std::memcpy(&word, from, sizeof(word));
  return word;
}

std::uint32_t step_by_table(std::uint32_t crc, std::byte byte) {
  return (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
}

#ifdef NESSIE_HAS_CRC32C

/// Multiplies by a power of x that is known beforehand, a byte at a time.
class Shift {
 public:
  explicit constexpr Shift(std::size_t zero_bytes) {
    const auto power = power_of(zero_bytes);
    for (std::size_t at = 0; at < tables_.size(); ++at)
      for (std::uint32_t byte = 0; byte < 256; ++byte) tables_[at][byte] = multiply(byte << (8 * at), power);
  }
  std::uint32_t operator()(std::uint32_t crc) const {
    return tables_[0][crc & 0xff] ^ tables_[1][(crc >> 8) & 0xff] ^ tables_[2][(crc >> 16) & 0xff] ^
           tables_[3][crc >> 24];
  }

 private:
  std::array<Table, 4> tables_{};
};

#if defined(__x86_64__)
bool can_fold() {
  static const bool can = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
  return can;
}
bool has_instructions() { return __builtin_cpu_supports("sse4.2") != 0; }
NESSIE_CRC32C_TARGET inline std::uint64_t step(std::uint64_t crc, std::uint64_t word) {
  return _mm_crc32_u64(crc, word);
}
NESSIE_CRC32C_TARGET inline std::uint64_t step(std::uint64_t crc, std::byte byte) {
  return _mm_crc32_u8(static_cast<std::uint32_t>(crc), std::to_integer<std::uint8_t>(byte));
}
#else
bool has_instructions() { return true; }
inline std::uint64_t step(std::uint64_t crc, std::uint64_t word) {
  return __crc32cd(static_cast<std::uint32_t>(crc), word);
}
inline std::uint64_t step(std::uint64_t crc, std::byte byte) {
  return __crc32cb(static_cast<std::uint32_t>(crc), std::to_integer<std::uint8_t>(byte));
}
#endif

struct Pass {
  std::byte *to;  ///< null in one that does not copy
  const std::byte *from;
  std::size_t left;
  std::uint64_t crc;
  std::size_t done = 0;
  void go_on(std::size_t bytes) {
    done += bytes;
    left -= bytes;
  }
};

template <bool Copies, class Word>
NESSIE_CRC32C_TARGET inline std::uint64_t take(const Pass &pass, std::size_t at, std::uint64_t crc) {
  const auto word = load<Word>(pass.from + pass.done + at);
  if constexpr (Copies) std::memcpy(pass.to + pass.done + at, &word, sizeof(word));
  return step(crc, word);
}

/// As long as there are three sequences of `Length` bytes.
template <bool Copies, std::size_t Length> NESSIE_CRC32C_TARGET void take_three(Pass &pass) {
  static constexpr Shift kShift(Length);
  for (; pass.left >= 3 * Length; pass.go_on(3 * Length)) {
    std::uint64_t first = pass.crc, second = 0, third = 0;
    for (std::size_t at = 0; at < Length; at += sizeof(std::uint64_t)) {
      first = take<Copies, std::uint64_t>(pass, at, first);
      second = take<Copies, std::uint64_t>(pass, Length + at, second);
      third = take<Copies, std::uint64_t>(pass, 2 * Length + at, third);
    }
    const auto two = kShift(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    pass.crc = kShift(two) ^ static_cast<std::uint32_t>(third);
  }
}

#if defined(__x86_64__)

/// x^(8 · bytes - 1).
constexpr std::uint32_t power_less_one(std::uint64_t bytes) { return multiply(power_of(bytes - 1), kOne >> 7); }

/// For both halves of 16 bytes that lie so many bytes in front: a product has one power of x more than its factors, and
/// each of these stands for itself times x^32.
NESSIE_FOLD_TARGET inline __m512i powers_for(std::uint32_t first, std::uint32_t second) {
  return _mm512_set4_epi32(0, static_cast<int>(second), 0, static_cast<int>(first));
}

NESSIE_FOLD_TARGET inline __m512i fold(__m512i bytes, __m512i powers, __m512i next) {
  constexpr int kSumOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(bytes, powers, 0x00),
                                   _mm512_clmulepi64_epi128(bytes, powers, 0x11), next, kSumOfThree);
}

template <bool Copies> NESSIE_FOLD_TARGET inline __m512i take_64(const Pass &pass, std::size_t at) {
  const auto bytes = _mm512_loadu_si512(pass.from + pass.done + at);
  if constexpr (Copies) _mm512_storeu_si512(pass.to + pass.done + at, bytes);
  return bytes;
}

constexpr std::size_t kFolded = 256;

/// As long as there are kFolded bytes, of which there must be some.
template <bool Copies> NESSIE_FOLD_TARGET void take_folding(Pass &pass) {
  static constexpr auto kFar = std::array{power_less_one(kFolded + 4), power_less_one(kFolded - 4)};
  static constexpr auto kNear = std::array{power_less_one(64 + 4), power_less_one(64 - 4)};
  const auto far = powers_for(kFar[0], kFar[1]), near = powers_for(kNear[0], kNear[1]);
  const auto before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(pass.crc)));
  auto a = _mm512_xor_si512(take_64<Copies>(pass, 0), before), b = take_64<Copies>(pass, 64),
       c = take_64<Copies>(pass, 128), d = take_64<Copies>(pass, 192);
  for (pass.go_on(kFolded); pass.left >= kFolded; pass.go_on(kFolded)) {
    a = fold(a, far, take_64<Copies>(pass, 0));
    b = fold(b, far, take_64<Copies>(pass, 64));
    c = fold(c, far, take_64<Copies>(pass, 128));
    d = fold(d, far, take_64<Copies>(pass, 192));
  }
  std::array<std::uint64_t, 8> rest;
  _mm512_storeu_si512(rest.data(), fold(fold(fold(a, near, b), near, c), near, d));
  pass.crc = 0;
  for (const auto word : rest) pass.crc = step(pass.crc, word);
}

template <bool Copies> void fold_if_possible(Pass &pass) {
  if (pass.left >= 2 * kFolded && can_fold()) take_folding<Copies>(pass);
}

#else
template <bool Copies> void fold_if_possible(Pass &) {}
#endif

constexpr std::size_t kLong = 4080, kShort = 256;

template <bool Copies>
NESSIE_CRC32C_TARGET std::uint32_t by_instructions(void *to, const void *from, std::size_t size_bytes,
                                                   std::uint32_t before, bool may_fold = true) {
  Pass pass{static_cast<std::byte *>(to), static_cast<const std::byte *>(from), size_bytes, ~before};
  if (may_fold) fold_if_possible<Copies>(pass);
  take_three<Copies, kLong>(pass);
  take_three<Copies, kShort>(pass);
  for (; pass.left >= sizeof(std::uint64_t); pass.go_on(sizeof(std::uint64_t)))
    pass.crc = take<Copies, std::uint64_t>(pass, 0, pass.crc);
  for (; pass.left > 0; pass.go_on(1)) pass.crc = take<Copies, std::byte>(pass, 0, pass.crc);
  return ~static_cast<std::uint32_t>(pass.crc);
}

#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) {
  auto crc = ~before;
  if constexpr (std::endian::native == std::endian::little)
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      const auto low = load<std::uint32_t>(bytes.data()) ^ crc, high = load<std::uint32_t>(bytes.data() + 4);
      crc = kTables[7][low & 0xff] ^ kTables[6][(low >> 8) & 0xff] ^ kTables[5][(low >> 16) & 0xff] ^
            kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][(high >> 8) & 0xff] ^
            kTables[1][(high >> 16) & 0xff] ^ kTables[0][high >> 24];
    }
  for (const auto byte : bytes) crc = step_by_table(crc, byte);
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#ifdef NESSIE_HAS_CRC32C
  if (has_instructions()) return by_instructions<false>(nullptr, bytes.data(), bytes.size(), before);
#endif
  return crc32c_by_tables(bytes, before);
}

std::uint32_t crc32c_without_folding(std::span<const std::byte> bytes, std::uint32_t before) {
#ifdef NESSIE_HAS_CRC32C
  if (has_instructions()) return by_instructions<false>(nullptr, bytes.data(), bytes.size(), before, false);
#endif
  return crc32c_by_tables(bytes, before);
}

std::uint32_t copy_crc32c(void *to, const void *from, std::size_t size_bytes, std::uint32_t before) {
#ifdef NESSIE_HAS_CRC32C
  if (has_instructions()) return by_instructions<true>(to, from, size_bytes, before);
#endif
  if (size_bytes > 0) std::memcpy(to, from, size_bytes);
  return crc32c_by_tables({static_cast<const std::byte *>(to), size_bytes}, before);
}

#if defined(__x86_64__)
namespace {

/// What the processor makes of two factors has x^33 more than their product: one as they are bits of a word each, and
/// 32 as its instruction for checksums puts as many zeros behind.
constexpr auto kLess = [] {
  auto power = kOne;
  for (int i = 0; i < 33; ++i)
    power = (power & kOne) != 0 ? ((power ^ kPolynomial) << 1) | 1 : power << 1;  // divided by x
  return power;
}();

bool can_multiply() { return __builtin_cpu_supports("pclmul") != 0 && has_instructions(); }

__attribute__((target("sse4.2,pclmul"))) std::uint32_t multiply_at_once(std::uint32_t a, std::uint32_t b_less) {
  const auto product =
      _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)), _mm_cvtsi32_si128(static_cast<int>(b_less)), 0);
  return static_cast<std::uint32_t>(step(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product))));
}

}  // namespace

Crc32cShift::Crc32cShift(std::uint64_t zero_bytes)
    : power_(can_multiply() ? multiply(power_of(zero_bytes), kLess) : power_of(zero_bytes)) {}

std::uint32_t Crc32cShift::operator()(std::uint32_t checksum) const {
  return can_multiply() ? multiply_at_once(checksum, power_) : multiply(checksum, power_);
}
#else
Crc32cShift::Crc32cShift(std::uint64_t zero_bytes) : power_(power_of(zero_bytes)) {}
std::uint32_t Crc32cShift::operator()(std::uint32_t checksum) const { return multiply(checksum, power_); }
#endif

std::uint32_t join_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return multiply(first, power_of(second_bytes)) ^ second;
}

}  // namespace nessie
