/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a value of drawing.x as bytes (XDR, RFC 4506), which are the same in every language, and reads it again.
 *
 *   $ build/idl_draw_c
 *   00000003 74776F00 00000001 00000001 00000002 00000001 3FE00000 00000000
 *   00000001 00000000 00000000 00000002 00000002 68690000 00000000
 *   two: a circle of radius 0.5 at (1, 2), hi at (0, 0)
 *   cut off: refused
 */
#include <drawing.h>

#include <stdio.h>

static void print_hexadecimal(const unsigned char *bytes, u_int size) {
  for (u_int i = 0; i < size; ++i) {
    const int ends_line = i % 32 == 31 || i + 1 == size;
    printf("%02X%s", bytes[i], ends_line ? "\n" : i % 4 == 3 ? " " : "");
  }
}

static void print(const element *it) {
  if (it->what.is == CIRCLE)
    printf("a circle of radius %.1f", it->what.shape_u.radius);
  else
    printf("%s", it->what.shape_u.text);
  printf(" at (%d, %d)%s", it->at.x, it->at.y, it->next != NULL ? ", " : "\n");
}

int main(void) {
  char title[] = "two", text[] = "hi";
  element label = {.what = {.is = LABEL, .shape_u.text = text}};
  element circle = {.at = {1, 2}, .what = {.is = CIRCLE, .shape_u.radius = 0.5}, .next = &label};
  drawing two = {title, &circle}, copy = {NULL, NULL}, half = {NULL, NULL};
  char bytes[256];
  XDR stream; /* any of libtirpc's */
  xdrmem_create(&stream, bytes, sizeof bytes, XDR_ENCODE);
  if (!xdr_drawing(&stream, &two)) return 1; /* a value that breaks a rule of the interface, or too little room */
  const u_int size = xdr_getpos(&stream);
  print_hexadecimal((const unsigned char *)bytes, size);

  xdrmem_create(&stream, bytes, size, XDR_DECODE);
  if (!xdr_drawing(&stream, &copy)) return 1;
  printf("%s: ", copy.title);
  for (const element *it = copy.first; it != NULL; it = it->next) print(it);
  xdr_free((xdrproc_t)xdr_drawing, (char *)&copy);

  xdrmem_create(&stream, bytes, size - 4, XDR_DECODE); /* whatever is wrong with bytes from elsewhere, it is told */
  printf("cut off: %s\n", xdr_drawing(&stream, &half) ? "read" : "refused");
  xdr_free((xdrproc_t)xdr_drawing, (char *)&half); /* also after a failure */
  return 0;
}
