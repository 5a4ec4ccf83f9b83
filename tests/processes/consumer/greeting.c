/* SPDX-License-Identifier: BSD-3-Clause */
/* greeting.x, as C programs use what rpcgen makes of it. */
#include <greeting.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  char text[] = "hello", bytes[64];
  greeting hello = {text, 2}, copy = {NULL, 0};
  XDR stream;
  xdrmem_create(&stream, bytes, sizeof bytes, XDR_ENCODE);
  if (!xdr_greeting(&stream, &hello)) return 1;
  const u_int size = xdr_getpos(&stream);
  xdrmem_create(&stream, bytes, size, XDR_DECODE);
  const int same = xdr_greeting(&stream, &copy) && strcmp(copy.text, text) == 0 && copy.times == 2;
  xdr_free((xdrproc_t)xdr_greeting, (char *)&copy);
  printf("%u bytes, %s\n", size, same ? "the same" : "others");
  return same ? 0 : 1;
}
