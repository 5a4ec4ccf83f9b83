/* SPDX-License-Identifier: BSD-3-Clause */
/* Codes, services and headers as text, for people. Each line begins with `prefix`. */
#ifndef TRIOS_NSSI_FPRINT_TYPES_H
#define TRIOS_NSSI_FPRINT_TYPES_H

#include "Trios_nnti_fprint_types.h"
#include "Trios_nssi_types.h"

#include <stdio.h>

#ifdef __cplusplus
#include <ostream>

void fprint_nssi_return_code(std::ostream &out, const char *name, const char *prefix, const int rc);
void fprint_nssi_rpc_encode(std::ostream &out, const char *name, const char *prefix, const nssi_rpc_encode *encode);
void fprint_nssi_service(std::ostream &out, const char *name, const char *prefix, const nssi_service *svc);
void fprint_nssi_request_header(std::ostream &out, const char *name, const char *prefix,
                                const nssi_request_header *header);
void fprint_nssi_result_header(std::ostream &out, const char *name, const char *prefix,
                               const nssi_result_header *header);
void fprint_nssi_ssize(std::ostream &out, const char *name, const char *prefix, const nssi_ssize *size);

extern "C" {
#endif

/* "NSSI_ETIMEDOUT", or "unknown NSSI code". The string lives for ever. */
const char *nssi_err_str(const int rc) TRIOS_SYMBOL(nssi_err_str);
void fprint_nssi_return_code(FILE *fp, const char *name, const char *prefix, const int rc);
void fprint_nssi_rpc_encode(FILE *fp, const char *name, const char *prefix, const nssi_rpc_encode *encode);
void fprint_nssi_service(FILE *fp, const char *name, const char *prefix, const nssi_service *svc);
void fprint_nssi_request_header(FILE *fp, const char *name, const char *prefix, const nssi_request_header *header);
void fprint_nssi_result_header(FILE *fp, const char *name, const char *prefix, const nssi_result_header *header);
void fprint_nssi_ssize(FILE *fp, const char *name, const char *prefix, const nssi_ssize *size);

#ifdef __cplusplus
}
#endif
#endif
