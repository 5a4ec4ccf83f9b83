/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that is unloaded while a part of its data is registered. */
char nnti_test_module_block[1 << 16];
