// SPDX-License-Identifier: BSD-3-Clause
// golden.h in C++.
#include <golden.h>

#include <cstdio>

extern "C" const char *golden_in_cpp() {
  static char text[100];
  point corner{};
  unsigned char bytes[16] = {0, 0, 0, 7};
  XDR stream;
  xdrmem_create(&stream, reinterpret_cast<char *>(bytes), sizeof bytes, XDR_DECODE);
  if (!xdr_point(&stream, &corner)) return "not decoded";
  std::snprintf(text, sizeof text, "MOST=%d NEGATIVE=%d GO=%d ADD=%d PASSAGE=%d x=%d", MOST, NEGATIVE, GO, ADD,
                GOLDEN_PASSAGE, corner.x);
  return text;
}
