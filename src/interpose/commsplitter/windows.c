/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI 4 names a window's shared memory after the node, the job and its communicator's number. Communicators that
 * have no process in common may have the same number, as those of two programs do: each program gets a folder of its
 * own. */
#include "splitter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(OPEN_MPI)

static char folder[256];

static bool name_folder(void) {
  const char *job = getenv("PMIX_NAMESPACE"), *rank = getenv("OMPI_COMM_WORLD_RANK"),
             *number = getenv("OMPI_MCA_orte_app_num");
  const char *setting = getenv("NESSIE_COMMSPLITTER"), *programs = getenv("OMPI_NUM_APP_CTX");
  splitter_key key;
  if (job == NULL || rank == NULL || number == NULL || strchr(job, '/') != NULL) return false;
  if (setting == NULL && programs != NULL && strcmp(programs, "1") == 0) return false;
  if (splitter_read_key(setting, atoi(rank), atoi(number), &key) != NULL) return false;
  const char *memory = getenv("OMPI_MCA_btl_vader_backing_directory"); /* a run's own, which is removed with it */
  if (memory == NULL) memory = "/dev/shm";
  const int length =
      snprintf(folder, sizeof folder, "%s/nessie-split-%s-%llx%llx", memory, job, key.parts[0], key.parts[1]);
  return length > 0 && (size_t)length < sizeof folder;
}

/* As long as one of its processes lives nobody takes the folder for one that was left behind: `nessie clean` locks it
 * alone before it removes it. False: it has done so just now. */
static bool hold_folder(void) {
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) return true; /* another process of this program may have */
  const int held = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (held < 0) return errno != ENOENT;
  const bool is_there = flock(held, LOCK_SH) != 0 || fstat(held, &status) != 0 || status.st_nlink > 0;
  if (!is_there) close(held);
  return is_there;
}

void splitter_part_windows(void) {
  if (!name_folder()) return;
  while (!hold_folder()) continue;
  setenv("OMPI_MCA_osc_sm_backing_directory", folder, 0);
  setenv("OMPI_MCA_osc_rdma_backing_directory", folder, 0);
}

/* The last process of a node succeeds. */
void splitter_end_windows(void) {
  if (*folder != '\0') (void)rmdir(folder);
}

#else

void splitter_part_windows(void) {}
void splitter_end_windows(void) {}

#endif
