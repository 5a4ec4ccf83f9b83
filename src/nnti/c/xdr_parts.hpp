// SPDX-License-Identifier: BSD-3-Clause
// What XDR procedures of handles are made of. Everything is decoded aside, so that a value is changed only by a
// decoding that succeeds; the bytes are a peer's and may be anything.
#pragma once

#include <rpc/types.h>
#include <rpc/xdr.h>

#include <cstdint>
#include <cstring>

namespace nnti::parts {

inline bool u32(XDR *xdrs, std::uint32_t &value) { return xdr_uint32_t(xdrs, &value); }
inline bool u64(XDR *xdrs, std::uint64_t &value) { return xdr_uint64_t(xdrs, &value); }

/// An enumerator between `least` and `most`.
template <class Enum> bool enumerator(XDR *xdrs, Enum &value, std::uint32_t least, std::uint32_t most) {
  auto number = static_cast<std::uint32_t>(value);
  if (!u32(xdrs, number) || number < least || number > most) return false;
  value = static_cast<Enum>(number);
  return true;
}

/// An XDR string in a fixed array; nothing is allocated.
template <std::size_t N> bool text(XDR *xdrs, char (&value)[N]) {
  auto length = static_cast<std::uint32_t>(xdrs->x_op == XDR_ENCODE ? strnlen(value, N - 1) : 0);
  if (!u32(xdrs, length) || length >= N || !xdr_opaque(xdrs, value, length)) return false;
  if (xdrs->x_op == XDR_DECODE) std::memset(value + length, 0, N - length);
  return true;
}

template <class T> void free_nothing(T &) {}

template <class T> bool_t whole(XDR *xdrs, T *value, bool (*code)(XDR *, T &), void (*release)(T &) = free_nothing<T>) {
  if (xdrs == nullptr || value == nullptr) return FALSE;
  if (xdrs->x_op == XDR_FREE) return release(*value), TRUE;
  T copy = xdrs->x_op == XDR_ENCODE ? *value : T{};
  if (!code(xdrs, copy)) {
    if (xdrs->x_op == XDR_DECODE) release(copy);
    return FALSE;
  }
  if (xdrs->x_op == XDR_DECODE) *value = copy;
  return TRUE;
}

}  // namespace nnti::parts
