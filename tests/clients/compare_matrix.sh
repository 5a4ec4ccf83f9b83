#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_matrix.sh DIRECTORY MATRIX NATIVE... -- STAGED...
#
# Runs the matrix program twice, by the commands NATIVE and STAGED (a launcher and its options), and compares what it
# printed and the files that it wrote. With SAME_TABLE, native PnetCDF gives ids to more files where it is staged: then
# only whether there is an id is compared.
set -u
directory=$1 matrix=$2
shift 2
rm -rf "$directory"
mkdir -p "$directory/native" "$directory/staged"
native=
while [ "$1" != -- ]; do native="$native $1"; shift; done
shift
$native "$matrix" "$directory/native" "$directory/native/out" || exit 1
"$@" "$matrix" "$directory/staged" "$directory/staged/out" 2> "$directory/stderr" || { cat "$directory/stderr"; exit 1; }
cat "$directory/stderr" >&2
status=0
grep "files are written by native PnetCDF, not staged" "$directory/stderr" && status=1
for output in "$directory"/native/out.*; do
  other=$directory/staged/${output##*/}
  [ -n "${SAME_TABLE-}" ] && sed -i 's/^  id = [0-9]*$/  id/' "$output" "$other"
  diff "$output" "$other" || status=1
done
for file in "$directory"/native/*.nc; do
  # Natively, what nobody wrote in these is left to chance where there are several processes.
  case ${file##*/} in again*|records*|nonblocking*|filetypes*) [ -e "$directory/native/out.1" ] && continue ;; esac
  cmp "$file" "$directory/staged/${file##*/}" || status=1
done
exit $status
