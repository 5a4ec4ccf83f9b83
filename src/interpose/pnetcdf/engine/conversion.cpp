// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/conversion.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace interpose {

namespace {

// --- what native PnetCDF stores for a value that does not fit ------------------------------------------------------------

template <class T> constexpr T default_fill();
template <> constexpr signed char default_fill() { return NC_FILL_BYTE; }
template <> constexpr unsigned char default_fill() { return NC_FILL_UBYTE; }
template <> constexpr short default_fill() { return NC_FILL_SHORT; }
template <> constexpr unsigned short default_fill() { return NC_FILL_USHORT; }
template <> constexpr int default_fill() { return NC_FILL_INT; }
template <> constexpr unsigned int default_fill() { return NC_FILL_UINT; }
template <> constexpr long default_fill() { return NC_FILL_INT; }
template <> constexpr float default_fill() { return NC_FILL_FLOAT; }
template <> constexpr double default_fill() { return NC_FILL_DOUBLE; }
template <> constexpr long long default_fill() { return NC_FILL_INT64; }
template <> constexpr unsigned long long default_fill() { return NC_FILL_UINT64; }

// --- one element ---------------------------------------------------------------------------------------------------------

template <std::integral To, std::integral From> bool fits(From value) { return std::in_range<To>(value); }

/// As native PnetCDF compares: in double, the limits rounded to double. A NaN fits.
template <class To, std::floating_point From> bool fits(From value) {
  if constexpr (std::is_same_v<To, double>) return true;
  constexpr auto highest = static_cast<double>(std::numeric_limits<To>::max());
  constexpr auto lowest = static_cast<double>(std::numeric_limits<To>::lowest());
  return !(static_cast<double>(value) > highest || static_cast<double>(value) < lowest);
}

template <std::floating_point To, std::integral From> bool fits(From) { return true; }

/// A cast that is defined for every value that fits() lets pass: the limits of 64-bit integers are not doubles, and a
/// NaN has no integer; they become what the processor's conversion makes of them.
template <class To, class From> To cast(From value) {
  if constexpr (std::floating_point<From> && std::integral<To>) {
    if (!(static_cast<double>(value) < static_cast<double>(std::numeric_limits<To>::max()))) {
      if (std::isnan(value)) return sizeof(To) == 8 || std::is_same_v<To, int> ? std::numeric_limits<To>::min() : To{0};
      return std::numeric_limits<To>::max();
    }
  }
  return static_cast<To>(value);
}

// --- arrays --------------------------------------------------------------------------------------------------------------

/// A value that need not be aligned: pieces lie in messages, and in the program's own buffer, one right behind the
/// other.
template <class T> struct [[gnu::packed, gnu::may_alias]] Anywhere { T value; };

template <class To, class From>
int convert(const Anywhere<From> *from, Anywhere<To> *to, std::size_t count, To substitute) {
  bool all_fit = true;
  for (std::size_t i = 0; i < count; ++i) {
    const From value = from[i].value;
    const bool ok = fits<To>(value);
    to[i].value = ok ? cast<To>(value) : substitute;
    all_fit &= ok;
  }
  return all_fit ? NC_NOERR : NC_ERANGE;
}

template <class T> struct Tag { using Type = T; };

template <class Function> int with_memory_type(Element element, Function function) {
  switch (element) {
    case Element::kSchar: return function(Tag<signed char>{});
    case Element::kUchar: return function(Tag<unsigned char>{});
    case Element::kShort: return function(Tag<short>{});
    case Element::kUshort: return function(Tag<unsigned short>{});
    case Element::kInt: return function(Tag<int>{});
    case Element::kUint: return function(Tag<unsigned int>{});
    case Element::kLong: return function(Tag<long>{});
    case Element::kFloat: return function(Tag<float>{});
    case Element::kDouble: return function(Tag<double>{});
    case Element::kLongLong: return function(Tag<long long>{});
    case Element::kUlongLong: return function(Tag<unsigned long long>{});
    case Element::kText: return NC_ECHAR;
    case Element::kOther: break;
  }
  return NC_EBADTYPE;
}

template <class Function> int with_external_type(nc_type type, Function function) {
  return type == NC_CHAR ? NC_ECHAR : with_memory_type(native_element(type), function);
}

}  // namespace

Element element_of(MPI_Datatype primitive) {
  if (primitive == MPI_CHAR) return Element::kText;
  if (primitive == MPI_SIGNED_CHAR) return Element::kSchar;
  if (primitive == MPI_UNSIGNED_CHAR) return Element::kUchar;
  if (primitive == MPI_SHORT) return Element::kShort;
  if (primitive == MPI_UNSIGNED_SHORT) return Element::kUshort;
  if (primitive == MPI_INT) return Element::kInt;
  if (primitive == MPI_UNSIGNED) return Element::kUint;
  if (primitive == MPI_LONG) return Element::kLong;
  if (primitive == MPI_FLOAT) return Element::kFloat;
  if (primitive == MPI_DOUBLE) return Element::kDouble;
  if (primitive == MPI_LONG_LONG_INT) return Element::kLongLong;
  if (primitive == MPI_UNSIGNED_LONG_LONG) return Element::kUlongLong;
  return Element::kOther;
}

Element native_element(nc_type type) {
  switch (type) {
    case NC_CHAR: return Element::kText;
    case NC_BYTE: return Element::kSchar;
    case NC_UBYTE: return Element::kUchar;
    case NC_SHORT: return Element::kShort;
    case NC_USHORT: return Element::kUshort;
    case NC_INT: return Element::kInt;
    case NC_UINT: return Element::kUint;
    case NC_FLOAT: return Element::kFloat;
    case NC_DOUBLE: return Element::kDouble;
    case NC_INT64: return Element::kLongLong;
    case NC_UINT64: return Element::kUlongLong;
    default: return Element::kOther;
  }
}

std::size_t size_of(Element element) {
  switch (element) {
    case Element::kText:
    case Element::kSchar:
    case Element::kUchar:
    case Element::kOther: return 1;
    case Element::kShort:
    case Element::kUshort: return 2;
    case Element::kInt:
    case Element::kUint:
    case Element::kFloat: return 4;
    default: return 8;
  }
}

bool needs_conversion(int format, nc_type external, Element memory) {
  if (format < 5 && external == NC_BYTE && memory == Element::kUchar) return false;
  static_assert(sizeof(long) == sizeof(long long));
  if (memory == Element::kLong) memory = Element::kLongLong;
  return native_element(external) != memory;
}

int to_external(Element from, const void *memory, nc_type to, void *external, std::size_t count, const void *fill) {
  return with_external_type(to, [&]<class To>(Tag<To>) {
    return with_memory_type(from, [&]<class From>(Tag<From>) {
      const To substitute = static_cast<const Anywhere<To> *>(fill)->value;
      return convert(static_cast<const Anywhere<From> *>(memory), static_cast<Anywhere<To> *>(external), count,
                     substitute);
    });
  });
}

int from_external(nc_type from, const void *external, Element to, void *memory, std::size_t count) {
  return with_external_type(from, [&]<class From>(Tag<From>) {
    return with_memory_type(to, [&]<class To>(Tag<To>) {
      return convert(static_cast<const Anywhere<From> *>(external), static_cast<Anywhere<To> *>(memory), count,
                     default_fill<To>());
    });
  });
}

}  // namespace interpose
