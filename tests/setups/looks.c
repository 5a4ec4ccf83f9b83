/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts data into a file and, before it is closed, has a child look at it, in each way that programs have: of starting
 * other programs, of walking through folders, without a descriptor left, through a descriptor that was open before the
 * data; or set its times. Arguments: COUNT_BYTES, a
 * program that is linked statically and can be found by PATH; SCRIPT, for which COUNT_BYTES is the interpreter. */
#define _GNU_SOURCE
#include "setups.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

enum { kElements = 1 << 20, kFewDescriptors = 64 };

extern char **environ;

static const char *counter, *script, *file;
static int older; /* the file's, from before the data were put */

static void say(long long bytes) { printf("%lld\n", bytes); }

static char **arguments(void) {
  static char *argv[3];
  argv[0] = (char *)"count_bytes";
  argv[1] = (char *)file;
  return argv;
}

static void by_execlp(void) { execlp("count_bytes", "count_bytes", file, (char *)NULL); }
static void by_execvp(void) { execvp("count_bytes", arguments()); }
static void by_execl(void) { execl(counter, "count_bytes", file, (char *)NULL); }
static void by_execv(void) { execv(counter, arguments()); }
static void by_script(void) { execl(script, script, (char *)NULL); }
static void by_fexecve(void) { fexecve(open(counter, O_RDONLY), arguments(), environ); }
static void by_execveat(void) { execveat(AT_FDCWD, counter, arguments(), environ, 0); }
static void by_execveat_open(void) { execveat(open(counter, O_PATH), "", arguments(), environ, AT_EMPTY_PATH); }

/* The name is no address of anything. */
static void by_execveat_of_nothing(void) {
  const char *volatile nothing = NULL;
  say(execveat(AT_FDCWD, nothing, arguments(), environ, AT_EMPTY_PATH) == -1 && errno == EFAULT);
}

static void by_spawnp(void) {
  pid_t child;
  if (posix_spawnp(&child, "count_bytes", NULL, NULL, arguments(), environ) == 0) waitpid(child, NULL, 0);
}

static void by_spawn_that_opens(void) {
  pid_t child;
  posix_spawn_file_actions_t actions;
  char *argv[] = {(char *)"sh", (char *)"-c", (char *)"dd bs=1M 2>/dev/null | wc -c", NULL};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, file, O_RDONLY, 0);
  if (posix_spawn(&child, "/bin/sh", &actions, NULL, argv, environ) == 0) waitpid(child, NULL, 0);
}

/* A command of a shell that counts the file's bytes. */
static const char *count_command(void) {
  static char command[256];
  snprintf(command, sizeof command, "wc -c < %s", file);
  return command;
}

static void by_system_without_us(void) {
  unsetenv("LD_PRELOAD");
  if (system(count_command()) != 0) puts("failed");
}

static void by_system_without_boards(void) {
  unsetenv("NESSIE_BOARDS");
  if (system(count_command()) != 0) puts("failed");
}

static void by_popen_without_us(void) {
  char line[64] = "nothing\n";
  unsetenv("LD_PRELOAD");
  FILE *pipe = popen(count_command(), "r");
  if (pipe == NULL || fgets(line, sizeof line, pipe) == NULL || pclose(pipe) != 0) puts("failed");
  printf("%s", line);
}

static int visit(const char *path, const struct stat *status, int flag) {
  if (flag == FTW_F && strcmp(path + 2, file) == 0) say(status->st_size);
  return 0;
}
static int visit_n(const char *path, const struct stat *status, int flag, struct FTW *at) {
  (void)at;
  return visit(path, status, flag);
}
static void by_ftw(void) { ftw(".", visit, 5); }
static void by_nftw(void) { nftw(".", visit_n, 5, FTW_PHYS); }
static void by_nftw_from_within(void) { nftw(".", visit_n, 5, FTW_PHYS | FTW_CHDIR); }

static void by_fts(void) {
  char *paths[] = {(char *)".", NULL};
  FTS *walk = fts_open(paths, FTS_PHYSICAL, NULL);
  for (FTSENT *entry; (entry = fts_read(walk)) != NULL;)
    if (strcmp(entry->fts_name, file) == 0) say(entry->fts_statp->st_size);
  fts_close(walk);
}

static void by_fts_children(void) {
  char *paths[] = {(char *)".", NULL};
  FTS *walk = fts_open(paths, FTS_PHYSICAL, NULL);
  (void)fts_read(walk);
  for (FTSENT *entry = fts_children(walk, 0); entry != NULL; entry = entry->fts_link)
    if (strcmp(entry->fts_name, file) == 0) say(entry->fts_statp->st_size);
  fts_close(walk);
}

/* Leaves `left` descriptors to the child. */
static void use_descriptors(int left) {
  const struct rlimit few = {kFewDescriptors, kFewDescriptors};
  setrlimit(RLIMIT_NOFILE, &few);
  int last[2] = {-1, -1};
  for (int fd; (fd = dup(0)) >= 0; last[0] = fd) last[1] = last[0];
  for (int i = 0; i < left; ++i) close(last[i]);
}

static void by_stat_without_descriptors(void) {
  struct stat status;
  use_descriptors(0);
  if (stat(file, &status) == 0) say(status.st_size);
}

static void by_open_of_the_last_descriptor(void) {
  use_descriptors(1);
  const int fd = open(file, O_RDONLY);
  say(lseek(fd, 0, SEEK_END));
}

static void by_exec_without_descriptors(void) {
  use_descriptors(1);
  execlp("count_bytes", "count_bytes", file, (char *)NULL);
}

/* Writes, too: what was put before lies below. */
static void by_reopening(void) {
  FILE *stream = fopen("/dev/null", "r");
  close(fileno(stream));
  if (syscall(SYS_openat, AT_FDCWD, file, O_RDWR) != fileno(stream)) puts("failed");
  stream = freopen(NULL, "w", stream);
  say(fputs("short\n", stream));
  fclose(stream);
}

int __open64(const char *path, int flags, ...);
FILE *_IO_fopen(const char *path, const char *mode);

static void by_another_name_of_open(void) { say(syscall(SYS_lseek, __open64(file, O_RDONLY), 0, SEEK_END)); }
static void by_another_name_of_fopen(void) { say(syscall(SYS_lseek, fileno(_IO_fopen(file, "r")), 0, SEEK_END)); }

static void by_handle(void) {
  union {
    struct file_handle handle;
    char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } of = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
  int mount;
  if (name_to_handle_at(AT_FDCWD, file, &of.handle, &mount, 0) != 0) return say(-1);
  say(syscall(SYS_lseek, open_by_handle_at(older, &of.handle, O_RDONLY), 0, SEEK_END));
}

static void by_lseek(void) { say(lseek(older, 0, SEEK_END)); }
static void by_lseek64(void) { say(lseek64(older, 0, SEEK_END)); }

static void by_fseek(void) {
  FILE *stream = fdopen(older, "r");
  say(fseek(stream, 0, SEEK_END));
  say(ftell(stream));
}

static void by_copy_file_range(void) {
  off64_t from = 0;
  say(copy_file_range(older, &from, open("copied.nc", O_CREAT | O_WRONLY, 0644), NULL, 1 << 30, 0));
}

static void by_sendfile(void) {
  off_t from = 0;
  say(sendfile(open("sent.nc", O_CREAT | O_WRONLY, 0644), older, &from, 1 << 30));
}

/* Without any function that this library could stand in front of. */
static void say_what_is_there(void) {
  struct statx status;
  if (syscall(SYS_statx, older, "", AT_EMPTY_PATH, STATX_SIZE, &status) == 0) say((long long)status.stx_size);
}

static void by_fsync(void) {
  say(fsync(older));
  say_what_is_there();
}

static void by_syncfs(void) {
  say(syncfs(older));
  say_what_is_there();
}

/* What was put before is cut off, made zero, or followed by more. */
static void change_by_ftruncate(void) { say(ftruncate(older, 1000)); }
static void change_by_fallocate(void) {
  say(fallocate(older, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 1 << 20));
}
static void change_by_posix_fallocate(void) {
  say(posix_fallocate(older, 0, 5 << 20));
  say_what_is_there();
}

static const struct timeval kLongAgo[2] = {{1000000, 0}, {1000000, 0}};
static const struct timespec kLongAgoToo[2] = {{1000000, 0}, {1000000, 0}};

static void set_by_utime(void) {
  const struct utimbuf times = {1000000, 1000000};
  say(utime(file, &times));
}
static void set_by_utimes(void) { say(utimes(file, kLongAgo)); }
static void set_by_lutimes(void) { say(lutimes(file, kLongAgo)); }
static void set_by_futimesat(void) { say(futimesat(AT_FDCWD, file, kLongAgo)); }
static void set_by_futimesat_open(void) { say(futimesat(older, NULL, kLongAgo)); }
static void set_by_utimensat(void) { say(utimensat(AT_FDCWD, file, kLongAgoToo, 0)); }

static const struct {
  const char *name;
  void (*look)(void);
} ways[] = {{"execlp", by_execlp},
            {"execvp", by_execvp},
            {"execl", by_execl},
            {"execv", by_execv},
            {"script", by_script},
            {"fexecve", by_fexecve},
            {"execveat", by_execveat},
            {"execveat-open", by_execveat_open},
            {"execveat-nothing", by_execveat_of_nothing},
            {"spawnp", by_spawnp},
            {"spawn-that-opens", by_spawn_that_opens},
            {"system", by_system_without_us},
            {"system-boards", by_system_without_boards},
            {"popen", by_popen_without_us},
            {"ftw", by_ftw},
            {"nftw", by_nftw},
            {"nftw-from-within", by_nftw_from_within},
            {"fts", by_fts},
            {"fts-children", by_fts_children},
            {"stat", by_stat_without_descriptors},
            {"open", by_open_of_the_last_descriptor},
            {"exec", by_exec_without_descriptors},
            {"freopen", by_reopening},
            {"open64", by_another_name_of_open},
            {"IO-fopen", by_another_name_of_fopen},
            {"handle", by_handle},
            {"lseek", by_lseek},
            {"lseek64", by_lseek64},
            {"fseek", by_fseek},
            {"copy", by_copy_file_range},
            {"sendfile", by_sendfile},
            {"fsync", by_fsync},
            {"syncfs", by_syncfs},
            {"ftruncate", change_by_ftruncate},
            {"fallocate", change_by_fallocate},
            {"posix-fallocate", change_by_posix_fallocate},
            {"utime", set_by_utime},
            {"utimes", set_by_utimes},
            {"lutimes", set_by_lutimes},
            {"futimesat", set_by_futimesat},
            {"futimesat-open", set_by_futimesat_open},
            {"utimensat", set_by_utimensat}};

static void look_in_child(void (*look)(void)) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    look();
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
  static int data[kElements];
  char name[64];
  begin(&argc, &argv);
  counter = argv[1];
  script = argv[2];
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    int ncid, dim, var;
    snprintf(name, sizeof name, "%s.nc", ways[i].name);
    file = name;
    for (int j = 0; j < kElements; ++j) data[j] = (int)i * 7 + j;
    CHECK(ncmpi_create(MPI_COMM_WORLD, file, NC_CLOBBER, MPI_INFO_NULL, &ncid));
    CHECK(ncmpi_def_dim(ncid, "x", kElements, &dim));
    CHECK(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
    CHECK(ncmpi_enddef(ncid));
    older = open(file, O_RDWR);
    CHECK(ncmpi_put_var_int_all(ncid, var, data));
    printf("%s: ", ways[i].name);
    look_in_child(ways[i].look);
    close(older);
    CHECK(ncmpi_close(ncid));
    struct stat status;
    printf("%s\n", stat(file, &status) == 0 && status.st_mtime == 1000000 ? "set long ago" : "just written");
  }
  MPI_Finalize();
  return 0;
}
