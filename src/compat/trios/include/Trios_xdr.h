/* SPDX-License-Identifier: BSD-3-Clause */
/* XDR, from libtirpc: what rpcgen's output needs. Compile with `pkg-config --cflags nessie-trios`. */
#ifndef TRIOS_XDR_H
#define TRIOS_XDR_H

#include "Trios_config.h"

#include <rpc/types.h>
#include <rpc/xdr.h>

#include <errno.h>
#include <stdint.h>
#include <sys/param.h>

#endif
