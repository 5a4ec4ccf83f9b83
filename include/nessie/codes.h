/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of error codes. C, C++, the wire, Fortran and Python read it; codes are appended, never renumbered.
 *
 * X(name, number, what the caller does next) */
#ifndef NESSIE_CODES_H
#define NESSIE_CODES_H

#define NESSIE_CODES(X)                                                                                  \
  X(OK, 0, "go on")                                                                                      \
  X(TIMED_OUT, 1, "the deadline passed; the peer may have acted, or may still act")                      \
  X(PEER_LOST, 2, "the peer died or its connection broke; reconnect or give up on it")                   \
  X(REFUSED, 3, "the peer does not grant this: wrong credential, or a right that the buffer lacks")      \
  X(INVALID_ARGUMENT, 4, "correct the call; nothing was changed")                                        \
  X(OUT_OF_RANGE, 5, "correct offset or length; nothing was moved")                                      \
  X(NOT_FOUND, 6, "it does not exist, or does not exist any more")                                       \
  X(EXISTS, 7, "choose another name, or use the one that exists")                                        \
  X(UNSUPPORTED, 8, "this machine, transport or version cannot do it; choose another way")               \
  X(NO_MEMORY, 9, "free memory or raise the limit")                                                      \
  X(BUSY, 10, "try again later")                                                                         \
  X(BAD_MESSAGE, 11, "what the peer sent cannot be decoded; versions differ, or the peer is faulty")     \
  X(IO, 12, "the storage or the network failed; the cause tells how")                                    \
  X(CANCELLED, 13, "the operation was cancelled before it took effect")                                  \
  X(NO_RESULT, 14, "the service's handler ended without a result; report it to the service's developer") \
  X(INTERNAL, 15, "a fault in Nessie; please report it")                                                 \
  X(TOO_LARGE, 16, "the message is larger than its destination; send less, or have the peer make room")  \
  X(INTERRUPTED, 17, "somebody interrupted the wait; what was waited for goes on")                       \
  X(UNAVAILABLE, 18, "the service is being stopped; go to another instance, or try again later")

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nessie_code {
#define NESSIE_CODE_ENTRY(name, number, next) NESSIE_##name = number,
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
