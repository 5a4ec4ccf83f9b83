# SPDX-License-Identifier: BSD-3-Clause
# with_own_memory.sh COMMAND...: has it find an empty /dev/shm, in which it leaves nothing behind for others. In a mount
# name space of its own.
mount -t tmpfs tmpfs /dev/shm && exec "$@"
