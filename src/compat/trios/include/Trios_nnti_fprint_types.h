/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles and statuses as text, for people. Each line begins with `prefix`. */
#ifndef TRIOS_NNTI_FPRINT_TYPES_H
#define TRIOS_NNTI_FPRINT_TYPES_H

#include "Trios_nnti_xdr.h"

#include <stdio.h>

#ifdef __cplusplus
#include <ostream>

/* "NNTI_ETIMEDOUT", or "unknown NNTI result". */
const char *nnti_err_str(const int rc);

void fprint_NNTI_remote_addr(FILE *fp, const char *name, const char *prefix, const NNTI_remote_addr_t *addr);
void fprint_NNTI_remote_addr(std::ostream &out, const char *name, const char *prefix, const NNTI_remote_addr_t *addr);
void fprint_NNTI_peer(FILE *fp, const char *name, const char *prefix, const NNTI_peer_t *peer);
void fprint_NNTI_peer(std::ostream &out, const char *name, const char *prefix, const NNTI_peer_t *peer);
void fprint_NNTI_buffer(FILE *fp, const char *name, const char *prefix, const NNTI_buffer_t *buffer);
void fprint_NNTI_buffer(std::ostream &out, const char *name, const char *prefix, const NNTI_buffer_t *buffer);
void fprint_NNTI_status(FILE *fp, const char *name, const char *prefix, const NNTI_status_t *status);
void fprint_NNTI_status(std::ostream &out, const char *name, const char *prefix, const NNTI_status_t *status);
#else
const char *nnti_err_str(const int rc);
#endif

#endif
