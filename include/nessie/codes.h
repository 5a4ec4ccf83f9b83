/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of error codes. C, C++, the wire, Fortran and Python read it; codes are appended, never renumbered.
 *
 * X(name, number, the result of NESSIE_RESULTS that says so in the papers' C interfaces, what the caller does next) */
#ifndef NESSIE_CODES_H
#define NESSIE_CODES_H

#define NESSIE_CODES(X)                                                                                           \
  X(OK, 0, OK, "go on")                                                                                           \
  X(TIMED_OUT, 1, ETIMEDOUT, "the deadline passed; the peer may have acted, or may still act")                    \
  X(PEER_LOST, 2, EPEERLOST, "the peer died or its connection broke; reconnect or give up on it")                 \
  X(REFUSED, 3, EPERM, "the peer does not grant this: wrong credential, or a right that the buffer lacks")        \
  X(INVALID_ARGUMENT, 4, EINVAL, "correct the call; nothing was changed")                                         \
  X(OUT_OF_RANGE, 5, EINVAL, "correct offset or length; nothing was moved")                                       \
  X(NOT_FOUND, 6, ENOENT, "it does not exist, or does not exist any more")                                        \
  X(EXISTS, 7, EEXIST, "choose another name, or use the one that exists")                                         \
  X(UNSUPPORTED, 8, ENOTSUP, "this machine, transport or version cannot do it; choose another way")               \
  X(NO_MEMORY, 9, ENOMEM, "free memory or raise the limit")                                                       \
  X(BUSY, 10, EAGAIN, "try again later")                                                                          \
  X(BAD_MESSAGE, 11, EDECODE, "what the peer sent cannot be decoded; versions differ, or the peer is faulty")     \
  X(IO, 12, EIO, "the storage or the network failed; the cause tells how")                                        \
  X(CANCELLED, 13, ECANCELED, "the operation was cancelled before it took effect")                                \
  X(NO_RESULT, 14, EBADRPC, "the service's handler ended without a result; report it to the service's developer") \
  X(INTERNAL, 15, EIO, "a fault in Nessie; please report it")                                                     \
  X(TOO_LARGE, 16, EMSGSIZE, "the message is larger than its destination; send less, or have the peer make room") \
  X(INTERRUPTED, 17, EINTR, "somebody interrupted the wait; what was waited for goes on")                         \
  X(UNAVAILABLE, 18, EAGAIN, "the service is being stopped; go to another instance, or try again later")

/* The results of the papers' C interfaces: NNTI_<name> and NSSI_<name>, numbered as Nessie's first implementation,
 * Trios, numbered them.
 *
 * X(name, number, NSSI's number in Trios): of NNTI and NSSI. N(…): of NNTI alone; what NSSI says instead. */
#define NESSIE_RESULTS(X, N) \
  X(OK, 0, 0)                \
  X(EIO, 1001, 1001)         \
  X(EMSGSIZE, 1002, 1002)    \
  X(ECANCELED, 1003, 1003)   \
  X(ETIMEDOUT, 1004, 1004)   \
  X(EINVAL, 1005, 1005)      \
  X(ENOMEM, 1006, 1006)      \
  X(ENOENT, 1007, 1007)      \
  X(ENOTSUP, 1008, 1008)     \
  X(EEXIST, 1009, 1009)      \
  X(EBADRPC, 1010, 1010)     \
  X(ENOTINIT, 1011, 1011)    \
  X(EPERM, 1012, 1012)       \
  N(EINTR, 1013, 1003)       \
  X(EWOULDBLOCK, 1014, 1015) \
  X(EAGAIN, 1015, 1016)      \
  N(EDROPPED, 1016, 1016)    \
  X(EDECODE, 1017, 1013)     \
  X(EENCODE, 1018, 1014)     \
  X(EPEERLOST, 1019, 1019)

/* For enumerations of it. */
#define NESSIE_NNTI_RESULT(name, number, number_in_trios) NNTI_##name = number,
#define NESSIE_NO_RESULT(name, number, number_in_trios)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nessie_code {
#define NESSIE_CODE_ENTRY(name, number, result, next) NESSIE_##name = number,
  NESSIE_CODES(NESSIE_CODE_ENTRY)
#undef NESSIE_CODE_ENTRY
} nessie_code;

/* Returns the name of `code` ("TIMED_OUT"), or "UNKNOWN". The string lives for ever. */
const char *nessie_code_name(int code);

/* Returns the sentence of the table: what a caller does next. The string lives for ever. */
const char *nessie_code_advice(int code);

#ifdef __cplusplus
}
#endif
#endif
