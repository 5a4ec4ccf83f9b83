/* SPDX-License-Identifier: BSD-3-Clause */
/* The one list of the numbers that transports have in C: in nnti/nnti.h, and in the headers of Nessie's first
 * implementation, Trios. Numbers are appended, never changed. Those below 8 are of Trios; 1 to 5 do not exist here.
 *
 * X(name of NNTI_TRANSPORT_<name>, number, name of NSSI_RPC_<name> in Trios) */
#ifndef NNTI_TRANSPORT_IDS_H
#define NNTI_TRANSPORT_IDS_H

#define NNTI_TRANSPORTS(X)                                                                                   \
  X(NULL, 0, NULL)                                                                                           \
  X(PORTALS, 1, PTL)                                                                                         \
  X(IB, 2, IB)                                                                                               \
  X(GEMINI, 3, GEMINI)                                                                                       \
  X(DCMF, 4, BGPDCMF)                                                                                        \
  X(PAMI, 5, BGQPAMI)                                                                                        \
  X(MPI, 6, MPI)        /* MPI messages, if it was built in */                                               \
  X(LOCAL, 7, LOCAL)    /* the same process or the same node: inproc and shm */                              \
  X(SHM, 8, SHM)        /* processes of one node */                                                          \
  X(OFI, 9, OFI)        /* libfabric: verbs, CXI, EFA, PSM, TCP */                                           \
  X(INPROC, 10, INPROC) /* endpoints of one process */                                                       \
  X(AUTO, 11, AUTO)     /* all that this machine has; the fastest that reaches it is chosen for each peer */ \
  X(UCX, 12, UCX)       /* UCX, if it was built in */                                                        \
  X(TCP, 13, TCP)       /* TCP, without a library */

#define NNTI_TRANSPORT_IDS_END 14 /* one more than the last number */

#endif
