/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked statically: nothing can be preloaded into it. FILE: prints how many bytes it has. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char bytes[65536];
  long long sum = 0;
  ssize_t got;
  const int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
  while ((got = read(fd, bytes, sizeof bytes)) > 0) sum += got;
  printf("%lld\n", sum);
  return fd < 0;
}
