/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIOS_NSSI_TYPES_XDR_H
#define TRIOS_NSSI_TYPES_XDR_H

#include "Trios_nssi_types.h"

#endif
