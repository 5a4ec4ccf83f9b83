/* SPDX-License-Identifier: BSD-3-Clause */
/* How a program asks AddressSanitizer not to mind what MPI never frees. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
