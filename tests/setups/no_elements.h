/* SPDX-License-Identifier: BSD-3-Clause */
/* What is not staged, for tests of native handles. */
#ifndef NESSIE_SETUPS_NO_ELEMENTS_H
#define NESSIE_SETUPS_NO_ELEMENTS_H

#include "setups.h"

/* A filetype of integers that lie across those of a variable, at this byte. */
static inline MPI_Datatype integers_across(MPI_Aint begin, int count) {
  MPI_Datatype type;
  MPI_Type_create_hindexed(1, &count, &begin, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

/* Collective: the file of `ncid`, in whose variable 0 there are two integers, is native from now on. */
static inline int hand_back(int ncid) {
  int across = 0;
  MPI_Datatype type = integers_across(2, 1);
  const int error = ncmpi_get_vard_all(ncid, 0, type, &across, 1, MPI_INT);
  MPI_Type_free(&type);
  return error;
}

#endif
