// SPDX-License-Identifier: BSD-3-Clause
// Finds out which structs are plain: in memory they differ from their XDR by nothing but the order of bytes within each
// number, so that arrays of them can be swapped in bulk.
//
// Design notes. A struct's xdr() is asked once, with an archive that, instead of reading fields, notes where in the
// struct they are. It is plain if they are numbers (bool and enums have values that must be refused) and cover it from
// its first byte to its last, in order. An array's xdr() is then not called for each element; it must not matter:
//   - xdr() that mentions fail() anywhere checks values: Refuses<T> learns that from being instantiated.
//   - xdr() that names other fields for other values: it is asked with several values in the fields.
#pragma once

#include <xdr/swap.hpp>
#include <xdr/traits.hpp>

namespace xdr::detail {

/// Whether T's xdr() can refuse values. The program learns it as it starts, if the compiler had to make learnt for
/// FieldFinder<T>::fail(), called or not.
template <class T> struct Refuses {
  static inline bool some = false;
  static inline const bool learnt = some = true;
};

/// The archive. A T is given values all bytes of whose numbers are `fill`.
template <class T> class FieldFinder {
 public:
  static constexpr bool kReads = true;
  FieldFinder(const T &whole, int fill) : begin_(reinterpret_cast<const char *>(&whole)), fill_(fill) {}
  template <class... Fields> void operator()(Fields &...fields) { (find(fields), ...); }
  void fail(const char *) { plain_ = plain_ && !Refuses<T>::learnt; }

  bool is_plain() const { return plain_ && next_ == sizeof(T) && (wide_ == 0 || sizeof(T) % 8 == 0); }
  /// As SwapPattern takes it.
  std::uint32_t wide() const { return wide_; }

 private:
  template <class Field> void find(Field &field) {
    if constexpr (Number<Field>)
      find_number(field);
    else if constexpr (kIsArray<Field>)
      for (auto &element : field) find(element);
    else if constexpr (std::is_class_v<Field> && requires { field.xdr(*this); })
      field.xdr(*this);
    else
      plain_ = false;
  }
  template <class Field> void find_number(Field &field) {
    const auto at = static_cast<std::size_t>(reinterpret_cast<const char *>(&field) - begin_);
    plain_ = plain_ && at == next_ && at + sizeof field <= sizeof(T) && at % sizeof field == 0;
    if (!plain_) return;
    if (sizeof field == SwapPattern::kSlotBytes) wide_ |= std::uint32_t{1} << (at / SwapPattern::kSlotBytes);
    next_ += sizeof field;
    std::memset(&field, fill_, sizeof field);
  }

  const char *begin_;
  int fill_;
  std::size_t next_ = 0;  ///< where the next field must be
  std::uint32_t wide_ = 0;
  bool plain_ = true;
};

/// What may be plain.
template <class T>
concept PlainCandidate =
    !Number<T> && std::is_class_v<T> && std::is_trivially_copyable_v<T> && std::default_initializable<T> &&
    sizeof(T) % 4 == 0 && sizeof(T) <= SwapPattern::kMostSlots * SwapPattern::kSlotBytes &&
    (kIsArray<T> || requires(T value, FieldFinder<T> finder) { value.xdr(finder); });

/// What an array of which may be swapped in bulk.
template <class T>
concept Swappable = Number<T> || PlainCandidate<T>;

/// What was found out about T.
template <PlainCandidate T> class Layout {
 public:
  Layout() {
    const auto first = look(0);
    plain_ = first.is_plain();
    wide_ = first.wide();
    for (int fill : {0x01, 0xff}) {
      const auto other = look(fill);
      plain_ = plain_ && other.is_plain() && other.wide() == wide_;
    }
    if (plain_ && wide_ != 0) mixed_ = SwapPattern(kSlots, wide_);
  }
  /// Null: it is not plain.
  const SwapPattern *pattern() const {
    if (!plain_ || Refuses<T>::some) return nullptr;
    if (wide_ == 0) return &kWordsPattern;
    return wide_ == kAllWide ? &kDoubleWordsPattern : &mixed_;
  }

 private:
  static constexpr std::size_t kSlots = (sizeof(T) + 4) / SwapPattern::kSlotBytes;
  static constexpr std::uint32_t kAllWide = ~std::uint32_t{0} >> (SwapPattern::kMostSlots - kSlots);

  static FieldFinder<T> look(int fill) {
    T value{};
    FieldFinder<T> finder(value, fill);
    finder(value);
    return finder;
  }

  bool plain_ = false;
  std::uint32_t wide_ = 0;
  SwapPattern mixed_{1, 0};
};

/// How an array of T is swapped in bulk; null: it cannot be.
template <Swappable T> const SwapPattern *pattern_of() {
  if constexpr (Number<T>) {
    return sizeof(T) == 4 ? &kWordsPattern : &kDoubleWordsPattern;
  } else {
    static const Layout<T> layout;
    return layout.pattern();
  }
}

}  // namespace xdr::detail
