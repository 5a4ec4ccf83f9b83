// SPDX-License-Identifier: BSD-3-Clause
// Which C++ type is which XDR type. The codec in codec.hpp works on these categories.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <xdr/types.hpp>

namespace xdr::detail {

template <class T> inline constexpr bool kIsOptional = false;
template <class T> inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T> inline constexpr bool kIsOptional<Box<T>> = true;
template <class T> inline constexpr bool kIsArray = false;
template <class T, std::size_t N> inline constexpr bool kIsArray<std::array<T, N>> = true;

/// int, unsigned int, float, enum, bool: one word of four bytes.
template <class T>
concept Word = std::same_as<T, bool> ||(std::is_enum_v<T> && sizeof(T) <= 4) ||
               ((std::integral<T> || std::floating_point<T>)&&sizeof(T) == 4);

/// hyper, unsigned hyper, double: eight bytes.
template <class T>
concept DoubleWord = (std::integral<T> || std::floating_point<T>)&&sizeof(T) == 8;

/// A number whose array can be swapped in bulk (bool and enum are checked one by one).
template <class T>
concept Number = DoubleWord<T> ||(Word<T> &&std::is_arithmetic_v<T> && !std::same_as<T, bool>);

/// opaque<> that owns its bytes.
template <class T>
concept OwnedBytes = std::derived_from<T, std::string> ||(requires(T t) {
  t.assign((const std::byte *)nullptr, (const std::byte *)nullptr);
} && std::same_as<typename T::value_type, std::byte>);

/// opaque<> that borrows them: after decoding it points into the message.
template <class T>
concept BorrowedBytes = std::same_as<T, std::string_view> || std::same_as<T, std::span<const std::byte>>;

/// A variable-length array: std::vector and what looks like it.
template <class T>
concept Sequence = !OwnedBytes<T> && !BorrowedBytes<T> && requires(T t) {
  typename T::value_type;
  t.resize(std::size_t{});
  t.emplace_back();
  t.data();
};

/// A variable-length array whose elements lie somewhere else. Decoded to there, it is to have as many.
template <class T> inline constexpr bool kIsElements = false;
template <class T> inline constexpr bool kIsElements<std::span<T>> = !std::same_as<T, const std::byte>;
template <class T>
concept Elements = kIsElements<T>;

/// What has a largest size.
template <class T>
concept HasBound = requires {
  T::kMost;
};

/// An enum of which the names are known: the interface compiler's.
template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T v) {
  { xdr_has_name(v) } -> std::same_as<bool>;
};

inline constexpr std::size_t padding(std::size_t size_bytes) { return (4 - size_bytes % 4) % 4; }

/// The bytes on the wire of every value of a type that is no struct; 0: they differ, or the type does not say.
template <class T> inline constexpr std::size_t kFixedBytes = Word<T> ? 4 : DoubleWord<T> ? 8 : 0;
template <class T, std::size_t N> inline constexpr std::size_t kFixedBytes<std::array<T, N>> = N *kFixedBytes<T>;
template <std::size_t N> inline constexpr std::size_t kFixedBytes<std::array<std::byte, N>> = N + padding(N);

template <class... T>
concept AllFixed = sizeof...(T) != 0 && ((kFixedBytes<T> != 0) && ...);

template <class T> struct WordOf { using type = std::uint32_t; };
template <DoubleWord T> struct WordOf<T> { using type = std::uint64_t; };

inline std::uint32_t swap(std::uint32_t v) {
  return std::endian::native == std::endian::big ? v : __builtin_bswap32(v);
}
inline std::uint64_t swap(std::uint64_t v) {
  return std::endian::native == std::endian::big ? v : __builtin_bswap64(v);
}

/// The big-endian image of a word or double word, and back.
template <class T> auto to_wire(T value) {
  using W = typename WordOf<T>::type;
  if constexpr (std::floating_point<T>)
    return swap(std::bit_cast<W>(value));
  else
    return swap(static_cast<W>(value));
}
template <class T, class W> T from_wire(W word) {
  if constexpr (std::floating_point<T>)
    return std::bit_cast<T>(swap(word));
  else
    return static_cast<T>(swap(word));
}

}  // namespace xdr::detail
