#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare_overwrites.sh DIRECTORY PROGRAM SEEDS NATIVE... -- STAGED...
#
# Runs the program for each of the SEEDS (words in one argument) by the commands NATIVE and STAGED; it must find everything
# right, and print and leave the same.
set -u
directory=$1 program=$2 seeds=$3
shift 3
rm -rf "$directory"
mkdir -p "$directory/native" "$directory/staged"
native=
while [ "$1" != -- ]; do native="$native $1"; shift; done
shift
status=0
for seed in $seeds; do
  $native "$program" "$directory/native/$seed." "$seed" > "$directory/native/$seed.out" || exit 1
  "$@" "$program" "$directory/staged/$seed." "$seed" > "$directory/staged/$seed.out" 2> "$directory/staged/$seed.err" || status=1
  cat "$directory/staged/$seed.err" >&2
  grep -q 'not staged' "$directory/staged/$seed.err" && status=1
  diff "$directory/native/$seed.out" "$directory/staged/$seed.out" || status=1
  for file in "$directory"/native/"$seed".*.nc; do
    cmp "$file" "$directory/staged/${file##*/}" || status=1
  done
done
exit $status
