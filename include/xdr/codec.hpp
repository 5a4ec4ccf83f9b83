// SPDX-License-Identifier: BSD-3-Clause
// XDR (RFC 4506) to and from bytes; the bytes are those that rpcgen and libtirpc make.
//
// A struct names its fields in the order of the wire:
//     struct Piece { int32_t varid; std::vector<int64_t> start; template <class A> void xdr(A &a) { a(varid, start); }
//     };
// Types: 32- and 64-bit integers, float, double, bool, enums (of at most 32 bits), std::string and vectors of std::byte
// (opaque<>), std::string_view and std::span<const std::byte> (likewise, borrowed from the message), std::vector and
// boost::container::small_vector (T<>), std::span (T<>: elements that lie somewhere else; decoded to there, the array
// is to have as many), std::array (T[n]; of std::byte: opaque[n]), std::optional (T *), structs. An element of an array
// takes at least four bytes on the wire.
//
// Decoding trusts nothing: a count is checked against the bytes that are left before memory is spent on it; padding
// must be zero; bool and optional are 0 or 1; nothing may follow the value; structs nest at most kMaxDepth deep.
//
// Arrays of numbers, and of structs that in memory are what they are on the wire but for the order of bytes (fields of
// four and eight bytes, structs and std::arrays of them, no padding, of 256 bytes at most: layout.hpp), are swapped by
// vector instructions, about as fast as memcpy. The xdr() of such a struct is not called for each element: it names all
// fields, in their order, whatever their values. One that may call fail() is called for each. Fields of a fixed size
// that are named together are checked against the end of the message together.
#pragma once

#include <nessie/copy.hpp>
#include <nessie/result.hpp>
#include <xdr/layout.hpp>
#include <xdr/swap.hpp>
#include <xdr/traits.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace xdr {

inline constexpr int kMaxDepth = 64;
/// Of a string or an array without a bound: RFC 4506, section 4.10.
inline constexpr std::size_t kMostElements = 0xFFFFFFFF;

/// Counts the bytes that a value takes, and says whether it may be encoded: what is longer than its bound may not, and
/// no union with another arm than it says, and no enum's value without a name.
class Sizer {
 public:
  static constexpr bool kReads = false;
  template <class... Fields> void operator()(Fields &...fields) { (add(fields), ...); }
  std::size_t size() const { return size_; }
  void fail(const char *fault) { fault_ = fault_ != nullptr ? fault_ : fault; }
  /// Null: none.
  const char *fault() const { return fault_; }

 private:
  template <class T> void add(T &v) {
    using namespace detail;
    if constexpr (HasBound<T>) {
      if (v.size() > T::kMost) fail("a string or an array is longer than its bound");
    } else if constexpr (OwnedBytes<T> || BorrowedBytes<T> || Sequence<T> || Elements<T>) {
      if (v.size() > kMostElements) fail("a string or an array is longer than its count can say");
    }
    if constexpr (NamedEnum<T>)
      if (!xdr_has_name(v)) fail("an enum has a value without a name");
    if constexpr (Word<T>)
      size_ += 4;
    else if constexpr (DoubleWord<T>)
      size_ += 8;
    else if constexpr (OwnedBytes<T> || BorrowedBytes<T>)
      size_ += 4 + v.size() + padding(v.size());
    else if constexpr (kIsArray<T>)
      add_array(v);
    else if constexpr (Sequence<T> || Elements<T>) {
      size_ += 4;
      add_elements(v);
    } else if constexpr (kIsOptional<T>) {
      size_ += 4;
      if (v) add(*v);
    } else
      v.xdr(*this);
  }
  template <class T, std::size_t N> void add_array(std::array<T, N> &v) {
    if constexpr (std::same_as<T, std::byte>)
      size_ += N + detail::padding(N);
    else
      add_elements(v);
  }
  template <class S> void add_elements(S &v) {
    using T = typename S::value_type;
    if constexpr (detail::Swappable<T>) {
      if (v.size() * sizeof(T) >= kLeastSwapBytes && detail::pattern_of<T>() != nullptr) {
        size_ += v.size() * sizeof(T);
        return;
      }
    }
    for (auto &element : v) add(const_cast<T &>(element));
  }

  std::size_t size_ = 0;
  const char *fault_ = nullptr;
};

/// Writes into memory that Sizer has found large enough.
class Writer {
 public:
  static constexpr bool kReads = false;
  void fail(const char *) {}  ///< Sizer has told
  explicit Writer(std::byte *at) : at_(at) {}
  template <class... Fields> void operator()(Fields &...fields) { (put(fields), ...); }
  std::byte *at() const { return at_; }

 private:
  template <class T> void put(T &v) {
    using namespace detail;
    if constexpr (Word<T> || DoubleWord<T>)
      put_number(v);
    else if constexpr (OwnedBytes<T> || BorrowedBytes<T>) {
      put_number(count_of(v));
      put_bytes(v.data(), v.size());
    } else if constexpr (kIsArray<T>)
      put_array(v);
    else if constexpr (Sequence<T> || Elements<T>) {
      put_number(count_of(v));
      put_elements(v);
    } else if constexpr (kIsOptional<T>) {
      put_number(std::uint32_t{static_cast<bool>(v)});
      if (v) put(*v);
    } else
      v.xdr(*this);
  }
  template <class S> static std::uint32_t count_of(const S &v) { return static_cast<std::uint32_t>(v.size()); }
  template <class T> void put_number(T v) {
    auto word = detail::to_wire(v);
    std::memcpy(at_, &word, sizeof word);  // NOLINT(clang-analyzer-core.NonNullParamChecker): Sizer has found room
    at_ += sizeof word;
  }
  void put_bytes(const void *bytes, std::size_t size) {
    nessie::copy_bytes(at_, bytes, size);
    at_ += size;
    for (auto n = detail::padding(size); n != 0; --n) *at_++ = std::byte{0};
  }
  template <class T, std::size_t N> void put_array(std::array<T, N> &v) {
    if constexpr (std::same_as<T, std::byte>)
      put_bytes(v.data(), N);
    else
      put_elements(v);
  }
  template <class S> void put_elements(S &v) {
    using T = typename S::value_type;
    if constexpr (detail::Swappable<T>)
      if (v.size() * sizeof(T) >= kLeastSwapBytes) [[unlikely]]  // small ones are those that a jump would delay
        if (auto *end = put_swapped(at_, v.data(), v.size()); end != nullptr) {
          at_ = end;
          return;
        }
    if constexpr (detail::Number<T>)
      for (const T element : v) put_number(element);
    else
      for (auto &element : v) put(const_cast<T &>(element));
  }
  /// Returns where they end; null: they are to be put one by one. Static, so that at_ can be kept in a register.
  template <class T>
  [[gnu::noinline]] static std::byte *put_swapped(std::byte *at, const T *elements, std::size_t count) {
    const auto *pattern = detail::pattern_of<T>();
    if (pattern == nullptr) return nullptr;
    swap_copy(at, elements, count * sizeof(T), *pattern);
    return at + count * sizeof(T);
  }

  std::byte *at_;
};

/// Reads from bytes that may be anything. After the first fault every field reads as zero or empty.
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::span<const std::byte> bytes) : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}
  template <class... Fields> void operator()(Fields &...fields) {
    if constexpr (detail::AllFixed<Fields...>) {
      if (!take_all(fields...)) get_each(fields...);
    } else {
      (get(fields), ...);
    }
  }

  bool ok() const { return fault_ == nullptr; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  /// Demands that nothing is left; ok, or kBadMessage that says what is wrong at which byte.
  nessie::Status finish() {
    if (ok() && at_ == end_) [[likely]]
      return {};
    return finish_badly();
  }
  void fail(const char *fault);

 private:
  nessie::Status finish_badly();
  std::uint32_t get_count(std::size_t element_bytes) {
    const auto count = get_number<std::uint32_t>();
    if (count <= left() / element_bytes) [[likely]]
      return count;
    fail("a count is larger than the rest of the message");
    return 0;
  }
  /// Null after a fault.
  const std::byte *get_bytes(std::size_t size) {
    const auto pad = detail::padding(size);
    if (left() < size + pad) {
      fail("the message ends within bytes");
      return nullptr;
    }
    const auto *bytes = at_;
    if (pad != 0 && !is_zero(bytes + size, pad)) {
      fail("padding is not zero");
      return nullptr;
    }
    at_ += size + pad;
    return bytes;
  }
  static bool is_zero(const std::byte *bytes, std::size_t count) {
    return std::all_of(bytes, bytes + count, [](std::byte b) { return b == std::byte{0}; });
  }

  // --- fields of a fixed size, whose bytes are known to be there: false, and nothing is read, if a value is not allowed

  template <class... Fields> bool take_all(Fields &...fields) {
    constexpr std::size_t kBytes = (detail::kFixedBytes<Fields> + ...);
    if (left() < kBytes) return false;
    const std::byte *at = at_;
    if (!(take(at, fields) && ...)) return false;
    at_ = at;
    return true;
  }
  template <class T> static bool take(const std::byte *&at, T &v) {
    using namespace detail;
    if constexpr (std::same_as<T, bool>) {
      const auto word = take_number<std::uint32_t>(at);
      v = word == 1;
      return word <= 1;
    } else if constexpr (std::is_enum_v<T> && Word<T>) {
      return set_enum(v, take_number<std::int32_t>(at)) == nullptr;
    } else if constexpr (kIsArray<T>) {
      return take_array(at, v);
    } else {
      v = take_number<T>(at);
      return true;
    }
  }
  template <class T> static T take_number(const std::byte *&at) {
    typename detail::WordOf<T>::type word;
    std::memcpy(&word, at, sizeof word);
    at += sizeof word;
    return detail::from_wire<T>(word);
  }
  template <class T, std::size_t N> static bool take_array(const std::byte *&at, std::array<T, N> &v) {
    if constexpr (std::same_as<T, std::byte>) {
      std::memcpy(v.data(), at, N);
      at += N;
      const auto *padding = std::exchange(at, at + detail::padding(N));
      return is_zero(padding, detail::padding(N));
    } else if constexpr (detail::Number<T> && N * sizeof(T) >= kLeastSwapBytes) {
      swap_copy(v.data(), at, N * sizeof(T), *detail::pattern_of<T>());
      at += N * sizeof(T);
      return true;
    } else {
      return std::all_of(v.begin(), v.end(), [&at](T &element) { return take(at, element); });
    }
  }
  /// Null, or what is wrong with it.
  template <class T> static const char *set_enum(T &v, std::int32_t word) {
    using Base = std::underlying_type_t<T>;
    v = static_cast<T>(static_cast<Base>(word));
    if (static_cast<std::int32_t>(static_cast<Base>(v)) != word) return "an enum is out of range";
    if constexpr (detail::NamedEnum<T>)
      if (!xdr_has_name(v)) return "an enum has a value without a name";
    return nullptr;
  }

  // --- fields of any kind ---------------------------------------------------------------------------------------------

  /// Says which of them is at fault. Apart, so that what is without fault stays short.
  template <class... Fields> [[gnu::noinline]] void get_each(Fields &...fields) { (get(fields), ...); }
  template <class T> void get(T &v) {
    using namespace detail;
    if constexpr (std::same_as<T, bool>)
      v = get_flag();
    else if constexpr (std::is_enum_v<T> && Word<T>)
      get_enum(v);
    else if constexpr (Word<T> || DoubleWord<T>)
      v = get_number<T>();
    else if constexpr (OwnedBytes<T> || BorrowedBytes<T>)
      get_opaque(v);
    else if constexpr (kIsArray<T>)
      get_array(v);
    else if constexpr (Sequence<T>)
      get_sequence(v);
    else if constexpr (Elements<T>)
      get_elements(v);
    else if constexpr (kIsOptional<T>)
      get_optional(v);
    else
      get_struct(v);
  }
  template <class T> T get_number() {
    typename detail::WordOf<T>::type word;
    if (left() < sizeof word) {
      fail("the message ends within a number");
      return T{};
    }
    std::memcpy(&word, at_, sizeof word);
    at_ += sizeof word;
    return detail::from_wire<T>(word);
  }
  bool get_flag() {
    auto word = get_number<std::uint32_t>();
    if (word > 1) fail("a flag is neither 0 nor 1");
    return word == 1;
  }
  template <class T> void get_enum(T &v) {
    const auto *fault = set_enum(v, get_number<std::int32_t>());
    if (ok() && fault != nullptr) fail(fault);
  }
  template <class T> void check_bound(std::size_t count) {
    if constexpr (detail::HasBound<T>)
      if (count > T::kMost) fail("a string or an array is longer than its bound");
  }
  template <class T> void get_opaque(T &v) {
    using Element = std::remove_cvref_t<decltype(*v.data())>;
    auto count = get_count(1);
    check_bound<T>(count);
    auto bytes = reinterpret_cast<const Element *>(get_bytes(count));
    if (!ok())
      v = T{};
    else if constexpr (detail::BorrowedBytes<T>)
      v = T(bytes, count);
    else
      assign(v, bytes, count);
  }
  template <class T, class Element> static void assign(T &v, const Element *bytes, std::size_t count) {
    if (count <= nessie::kShortCopy) return void(v.assign(bytes, bytes + count));
    v.clear();
    v.reserve(count);
    const auto piece = nessie::best_piece(v.data(), bytes, count);
    for (std::size_t some; count != 0; count -= some, bytes += some) {
      some = std::min(piece, count);
      v.insert(v.end(), bytes, bytes + some);
    }
  }
  template <class T, std::size_t N> void get_array(std::array<T, N> &v) {
    if constexpr (std::same_as<T, std::byte>) {
      if (auto bytes = get_bytes(N); ok()) std::memcpy(v.data(), bytes, N);
    } else {
      if constexpr (detail::Swappable<T> && N * sizeof(T) >= kLeastSwapBytes)
        if (const auto *pattern = pattern_for<T>(); pattern != nullptr && left() >= N * sizeof(T))
          return swap_in(v.data(), N * sizeof(T), *pattern);
      for (auto &element : v) get(element);
    }
  }
  template <class S> void get_sequence(S &v) {
    using T = typename S::value_type;
    auto count = get_count(detail::DoubleWord<T> ? 8 : 4);
    check_bound<S>(count);
    if (!ok()) return v.clear();
    if constexpr (detail::Swappable<T>)
      if (count * sizeof(T) >= kLeastSwapBytes && get_swapped(v, count)) [[unlikely]]
        return;
    if constexpr (detail::Number<T>) return get_numbers(v, count);
    v.clear();
    for (; count != 0 && ok(); --count) get(v.emplace_back());  // memory grows with the bytes actually read
  }
  template <class T> void get_elements(std::span<T> v) {
    if (get_count(detail::DoubleWord<T> ? 8 : 4) != v.size() && ok())
      fail("an array has another length than the memory for it");
    if (!ok()) return;
    if constexpr (detail::Swappable<T>)
      if (const auto *pattern = pattern_for<T>(); pattern != nullptr && left() >= v.size_bytes())
        return swap_in(v.data(), v.size_bytes(), *pattern);
    for (auto &element : v) get(element);
  }
  template <class S> void get_numbers(S &v, std::size_t count) {
    v.resize(count);
    const std::byte *at = at_;
    for (auto &number : v) number = take_number<typename S::value_type>(at);
    at_ = at;
  }
  /// False, and nothing is read: elements must be read one by one.
  template <class S> [[gnu::noinline]] bool get_swapped(S &v, std::size_t count) {
    using T = typename S::value_type;
    const auto *pattern = pattern_for<T>();
    if (pattern == nullptr) return false;
    if (count > left() / sizeof(T)) {
      fail("a count is larger than the rest of the message");
      v.clear();
    } else if (count <= v.size()) {
      v.resize(count);
      swap_in(v.data(), count * sizeof(T), *pattern);  // over what was there
    } else {
      v.clear();
      v.reserve(count);
      append(v, count, *pattern);
    }
    return true;
  }
  /// By way of the first cache: elements made by resize() would be filled with zeros first.
  template <class S> void append(S &v, std::size_t count, const SwapPattern &pattern) {
    using T = typename S::value_type;
    constexpr std::size_t kMost = 4096 / sizeof(T);
    alignas(SwapPattern::kVectorBytes) std::byte block[kMost * sizeof(T)];
    const auto *elements = reinterpret_cast<const T *>(block);  // which need no constructor
    for (std::size_t some; count != 0; count -= some) {
      some = std::min(kMost, count);
      swap_in(block, some * sizeof(T), pattern);
      v.insert(v.end(), elements, elements + some);
    }
  }
  /// Null also for structs that would be nested too deep.
  template <class T> const SwapPattern *pattern_for() const {
    return detail::Number<T> || depth_ < kMaxDepth ? detail::pattern_of<T>() : nullptr;
  }
  /// The bytes are there.
  void swap_in(void *to, std::size_t size, const SwapPattern &pattern) {
    swap_copy(to, at_, size, pattern);
    at_ += size;
  }
  template <class T> void get_optional(T &v) {
    v.reset();
    if (get_flag() && ok()) get(v.emplace());
  }
  template <class T> void get_struct(T &v) {
    if (depth_ == kMaxDepth) fail("structs are nested too deep");
    if (!ok()) return;
    ++depth_;
    v.xdr(*this);
    --depth_;
  }

  const std::byte *begin_, *at_, *end_;
  const char *fault_ = nullptr;
  std::size_t fault_offset_ = 0;
  int depth_ = 0;
};

template <class T> std::size_t encoded_size(const T &value) {
  Sizer sizer;
  sizer(const_cast<T &>(value));  // xdr() is written once for reading and writing; Sizer and Writer only read
  return sizer.size();
}

/// Encodes into `bytes`, which is made as large as the value and keeps its capacity.
template <class T> void encode_into(const T &value, std::vector<std::byte> &bytes) {
  bytes.resize(encoded_size(value));
  Writer writer(bytes.data());
  writer(const_cast<T &>(value));
}

/// Encodes into a buffer of the caller's. Returns the bytes written; 0, with nothing written, if it is too small.
template <class T> std::size_t encode_to(const T &value, std::span<std::byte> buffer) {
  auto size = encoded_size(value);
  if (size > buffer.size()) return 0;
  Writer writer(buffer.data());
  writer(const_cast<T &>(value));
  return size;
}

/// As encode(), for values that may break a rule of their interface: kInvalidArgument, with the rule.
template <class T> nessie::Result<std::vector<std::byte>> encode_checked(const T &value) {
  Sizer sizer;
  sizer(const_cast<T &>(value));
  if (sizer.fault() != nullptr) return nessie::Error{nessie::Code::kInvalidArgument, sizer.fault()};
  std::vector<std::byte> bytes(sizer.size());
  Writer writer(bytes.data());
  writer(const_cast<T &>(value));
  return bytes;
}

template <class T> std::vector<std::byte> encode(const T &value) {
  std::vector<std::byte> bytes;
  encode_into(value, bytes);
  return bytes;
}

/// Decodes the whole of `bytes`. kBadMessage: they are not the encoding of one T; `value` is then unspecified.
template <class T> nessie::Status decode_into(std::span<const std::byte> bytes, T &value) {
  Reader reader(bytes);
  reader(value);
  return reader.finish();
}

template <class T> nessie::Result<T> decode(std::span<const std::byte> bytes) {
  T value{};
  if (auto status = decode_into(bytes, value); !status.ok()) return status.error();
  return value;
}

}  // namespace xdr
