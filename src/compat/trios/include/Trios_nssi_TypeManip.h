/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of a type, 0 of void. */
#ifndef TRIOS_NSSI_TYPEMANIP_H
#define TRIOS_NSSI_TYPEMANIP_H

#include <stddef.h>

#ifdef __cplusplus
namespace Nessie {
template <class T> struct SizeOf { static const size_t value = sizeof(T); };
template <> struct SizeOf<void> { static const size_t value = 0; };
}  // namespace Nessie
#define NSSI_SIZEOF(type) (::Nessie::SizeOf<type>::value)
#else
#define NSSI_SIZEOF(type) (__extension__ sizeof(type))
#endif

#define NSSI_XDRPROC(type) ((xdrproc_t)(void (*)(void)) & xdr_##type)

#endif
