/* SPDX-License-Identifier: BSD-3-Clause */
/* Design notes. Who waits for a file asks at its server's door, and looks at the board meanwhile: a file that has left
 * it is whole, whether the server answers or not. The server may have so many visitors that it does not hear this one
 * yet; as long as it works, which the board shows as well, there is hope. It is given up when it has shown no sign of
 * life for the time that the board says, and is not waited for again for as long: `ls -l` of a thousand files waits
 * once. One that has died is waited for as long, if another one is to go on with what it had.
 *
 * Two things may be missing that a visit takes and opening or asking for a size does not. Without a descriptor left, a
 * child that shares our memory, but not our descriptors, goes to the door. From another network name space nobody comes
 * to it: then there is the board alone, and it does not tell whether the server knows that anybody waits. A file that
 * was closed leaves it by itself; for one that somebody holds open we wait in vain, at most until the server is given
 * up. */
#define _GNU_SOURCE
#include "door.h"

#include "boards.h"
#include "ranks.h"
#include "shim.h"

#include <base/say.h>
#include <interpose/embedded/embedded_abi.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMomentMs = 20, kStackBytes = 64 * 1024, kManyDescriptors = 1 << 20 };

/* A file that is waited for, of one server; zeros: all of its files. */
typedef struct {
  int server;
  const nessie_board *board;
  nessie_board_place file;
  uint32_t alive; /* as it was when the server showed that it works */
  int64_t end_ms; /* when it is given up */
  bool heard;     /* whether the server can know that somebody waits */
  bool in_child;
} Visit;

typedef enum { kOver, kAgain, kNoDescriptor, kNoWay } Answer;

static _Atomic int64_t given_up_until_ms[NESSIE_MOST_SERVERS];

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void give_up(const Visit *visit) {
  static const char text[] =
      "nessie: a staging server gave no sign of life (NESSIE_STAGING_TIMEOUT); a file may be read before it is whole\n";
  static const char text_without[] =
      "nessie: a staging server cannot be reached from here; a file may be read before it is whole\n";
  atomic_store(&given_up_until_ms[visit->server], now_ms() + (int64_t)visit->board->patience_ms);
  if (visit->heard)
    nessie_say(nessie_shim_speech(), text, sizeof text - 1);
  else
    nessie_say(nessie_shim_speech(), text_without, sizeof text_without - 1);
}

/* Whether there is nothing to wait for any more: the file is whole, or the server is given up. */
static bool is_over(Visit *visit) {
  if (!nessie_is_on(visit->board, visit->file)) return true;
  const uint32_t alive = nessie_look(&visit->board->alive);
  if (visit->heard && alive != visit->alive) {
    visit->alive = alive;
    visit->end_ms = now_ms() + (int64_t)visit->board->patience_ms;
  }
  if (now_ms() < visit->end_ms) return false;
  give_up(visit);
  return true;
}

/* --- at the door -------------------------------------------------------------------------------------------------------- */

/* Whether the server's abstract sockets are ours: in another network name space nobody answers at their names. */
static bool is_in_its_network(const nessie_board *board) {
  struct statx status;
  if (board->network == 0 || syscall(SYS_statx, AT_FDCWD, "/proc/self/ns/net", 0, STATX_INO, &status) != 0) return true;
  return status.stx_ino == board->network;
}

static bool connect_to(const nessie_board *board, int fd) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strnlen(board->door, sizeof board->door);
  memcpy(address.sun_path + 1, board->door, length);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  return connect(fd, (const struct sockaddr *)&address, size) == 0;
}

static Answer why_not_connected(const nessie_board *board) {
  if (errno == EAGAIN || errno == EINTR) return kAgain; /* many are before us */
  if (errno != ECONNREFUSED || !is_in_its_network(board)) return kNoWay;
  return nessie_look(&board->kept) != 0 ? kAgain
                                        : kOver; /* it has ended; nobody has what it had, or another one soon */
}

static Answer wait_for_answer(Visit *visit, int fd) {
  struct pollfd event = {fd, POLLIN, 0};
  char word = 0;
  if (send(fd, &visit->file, sizeof visit->file, MSG_NOSIGNAL) != (ssize_t)sizeof visit->file) return kAgain;
  while (!is_over(visit)) {
    if (poll(&event, 1, kMomentMs) <= 0) continue;
    return recv(fd, &word, 1, MSG_DONTWAIT) == 1 && word == NESSIE_DOOR_SETTLED ? kOver : kAgain;
  }
  return kOver;
}

static Answer ask(Visit *visit) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno == EMFILE && !visit->in_child ? kNoDescriptor : kNoWay;
  const Answer answer = connect_to(visit->board, fd) ? wait_for_answer(visit, fd) : why_not_connected(visit->board);
  syscall(SYS_close, fd);
  return answer;
}

static void pause_a_moment(void) { (void)poll(NULL, 0, kMomentMs); }

static void watch_the_board(Visit *visit) {
  visit->heard = false;
  while (!is_over(visit)) pause_a_moment();
}

static void go(Visit *visit);

static int go_as_child(void *visit) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int fd = 0; fd < kManyDescriptors && syscall(SYS_close, fd) != 0; ++fd) {}
  ((Visit *)visit)->in_child = true;
  go(visit);
  return 0;
}

/* We sleep while the child goes; no signal handler runs in it, and our parent and other threads hear nothing of it. */
static bool send_child(Visit *visit) {
  sigset_t all, before;
  char *stack = mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return false;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t child = clone(go_as_child, stack + kStackBytes, CLONE_VM | CLONE_VFORK, visit);
  if (child > 0) (void)syscall(SYS_wait4, child, NULL, __WCLONE, NULL);
  sigprocmask(SIG_SETMASK, &before, NULL);
  munmap(stack, kStackBytes);
  return child > 0;
}

static void go(Visit *visit) {
  while (!is_over(visit)) {
    Answer answer = ask(visit);
    if (answer == kNoDescriptor && send_child(visit)) return;
    if (answer == kOver) return;
    if (answer != kAgain) return watch_the_board(visit);
    pause_a_moment();
  }
}

static void settle_at(int server, nessie_board_place file) {
  const nessie_board *board = nessie_board_at(server);
  const int64_t now = now_ms();
  if (now < atomic_load(&given_up_until_ms[server])) return;
  Visit visit = {server, board, file, nessie_look(&board->alive), now + (int64_t)board->patience_ms, true, false};
  go(&visit);
}

static bool settle(nessie_board_place file) {
  int before = 0;
  const int error = errno;
  bool any = false;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* asking for a size is no place where a thread may end */
  for (int i = 0; i < nessie_board_count(); ++i) {
    if (!nessie_is_on(nessie_board_at(i), file)) continue;
    settle_at(i, file);
    any = true;
  }
  pthread_setcancelstate(before, NULL);
  errno = error;
  return any;
}

bool nessie_settle(dev_t device, ino_t inode) { return settle((nessie_board_place){device, inode}); }

void nessie_settle_all(void) { (void)settle((nessie_board_place){0, 0}); }

NESSIE_EXPORT void nessie_pnetcdf_settle(void) { nessie_settle_all(); }

/* --- of what file ------------------------------------------------------------------------------------------------------- */

/* The kernel's own struct differs between machines; statx does not. */
static bool identify(int folder, const char *path, int flags, nessie_board_place *file) {
  struct statx status;
  const int error = errno;
  const bool known =
      syscall(SYS_statx, folder, path, flags, STATX_TYPE | STATX_INO, &status) == 0 && S_ISREG(status.stx_mode);
  errno = error;
  if (known) *file = (nessie_board_place){makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
  return known;
}

bool nessie_any_files(void) {
  nessie_come_as_rank();
  for (int i = 0; i < nessie_board_count(); ++i)
    if (nessie_look(&nessie_board_at(i)->files) != 0) return !nessie_shim_is_inside();
  return false;
}

void nessie_settle_named(int folder, const char *path, int flags) {
  nessie_board_place file;
  if (path != NULL && nessie_any_files() && identify(folder, path, flags, &file)) settle(file);
}

void nessie_settle_descriptor(int fd) {
  nessie_board_place file;
  if (fd >= 0 && nessie_any_files() && identify(fd, "", AT_EMPTY_PATH, &file)) settle(file);
}

void nessie_note_writer_of(int fd) {
  nessie_board_place file;
  if (fd >= 0 && nessie_notes_writers() && identify(fd, "", AT_EMPTY_PATH, &file)) nessie_note_writer(file);
}

void nessie_note_writer_of_named(const char *path) {
  nessie_board_place file;
  if (path != NULL && nessie_notes_writers() && identify(AT_FDCWD, path, 0, &file)) nessie_note_writer(file);
}
