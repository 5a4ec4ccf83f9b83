/* SPDX-License-Identifier: BSD-3-Clause */
#include <farewell.h>

#include <stdio.h>

int main(void) {
  double days[2] = {1, 2};
  farewell goodbye = {GOODBYE, {2, days}};
  printf("%lu bytes\n", xdr_sizeof((xdrproc_t)xdr_farewell, &goodbye));
  return 0;
}
