#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_matrix.sh DIRECTORY MATRIX NATIVE... -- STAGED...
#
# Runs the matrix program twice, by the commands NATIVE and STAGED (a launcher and its options), and compares what it
# printed and the files that it wrote.
set -u
directory=$1 matrix=$2
shift 2
rm -rf "$directory"
mkdir -p "$directory/native" "$directory/staged"
native=
while [ "$1" != -- ]; do native="$native $1"; shift; done
shift
$native "$matrix" "$directory/native" "$directory/native/out" || exit 1
"$@" "$matrix" "$directory/staged" "$directory/staged/out" || exit 1
status=0
for output in "$directory"/native/out.*; do
  diff "$output" "$directory/staged/${output##*/}" || status=1
done
for file in "$directory"/native/*.nc; do
  # Natively, what nobody wrote in these is left to chance where there are several processes.
  case ${file##*/} in again*|records*|nonblocking*) [ -e "$directory/native/out.1" ] && continue ;; esac
  cmp "$file" "$directory/staged/${file##*/}" || status=1
done
exit $status
