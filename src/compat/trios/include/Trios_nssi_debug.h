/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIOS_NSSI_DEBUG_H
#define TRIOS_NSSI_DEBUG_H

#include "Trios_logger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Programs set and read them; Nessie's own messages follow NESSIE_LOG. */
extern log_level rpc_debug_level;
extern log_level nnti_debug_level;

#ifdef __cplusplus
}
#endif
#endif
