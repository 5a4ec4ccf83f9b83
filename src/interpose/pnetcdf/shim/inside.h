/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function of this library that stands in front of another needs to be one. */
#ifndef NESSIE_PNETCDF_INSIDE_H
#define NESSIE_PNETCDF_INSIDE_H

#define NESSIE_EXPORT __attribute__((visibility("default")))

/* Whether the engine runs on this thread (shim.c). */
int nessie_shim_is_inside(void);

#endif
