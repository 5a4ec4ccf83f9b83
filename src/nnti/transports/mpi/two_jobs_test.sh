#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two mpiexecs whose processes reach each other over the transport mpi; Open MPI 4 needs an ompi-server for that.
#   two_jobs_test.sh MPIEXEC PROGRAM
# Exit code 77: skipped.
set -euo pipefail

mpiexec=$1 program=$2
command -v ompi-server >/dev/null || { echo "skipped: there is no ompi-server (another MPI than Open MPI 4?)"; exit 77; }
folder=$(mktemp -d)
server=
cleanup() {
  if [[ $server ]]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$folder"
}
trap cleanup EXIT

wait_for() {
  for ((i = 0; i < 600; ++i)); do
    [[ -s $1 ]] && return
    sleep 0.1
  done
  echo "nobody wrote $1" >&2
  exit 1
}

timeout 120 ompi-server --no-daemonize -r "$folder/server" &
server=$!
wait_for "$folder/server"
run=(timeout 100 "$mpiexec" --ompi-server "file:$folder/server" -n 1 "$program")
"${run[@]}" accept "$folder/port" &
job=$!
wait_for "$folder/port"
"${run[@]}" connect "$folder/port"
wait "$job"
