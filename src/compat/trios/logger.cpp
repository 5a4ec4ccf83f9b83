// SPDX-License-Identifier: BSD-3-Clause
#include <Trios_logger.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <mutex>

namespace {

/// Never destroyed: a thread may log while the process exits.
std::recursive_mutex &lock() {
  static auto *the_lock = new std::recursive_mutex;
  return *the_lock;
}

FILE *log_file = nullptr;  // null: stderr
bool owned = false, initialised = false;

void close_log() {
  if (owned) std::fclose(log_file);
  log_file = nullptr;
  owned = false;
}

FILE *target() { return log_file ? log_file : stderr; }

}  // namespace

extern "C" {

log_level default_log_level = LOG_WARN;

int logger_init(const log_level debug_level, const char *file) {
  std::lock_guard guard(lock());
  FILE *opened = nullptr;
  const bool is_stdout = file != nullptr && std::strcmp(file, "stdout") == 0;
  const bool is_file = file != nullptr && *file != '\0' && !is_stdout && std::strcmp(file, "stderr") != 0;
  if (is_file && (opened = std::fopen(file, "w")) == nullptr) return errno;
  close_log();
  log_file = is_stdout ? stdout : opened;
  owned = is_file;
  if (debug_level != LOG_UNDEFINED) default_log_level = debug_level;
  initialised = true;
  return 0;
}

int logger_fini(void) {
  std::lock_guard guard(lock());
  close_log();
  initialised = false;
  return 0;
}

int logger_not_initialized(void) {
  std::lock_guard guard(lock());
  return !initialised;
}

void logger_set_file(FILE *file) {
  std::lock_guard guard(lock());
  close_log();
  log_file = file;
  initialised = true;
}

FILE *logger_get_file(void) {
  std::lock_guard guard(lock());
  return target();
}

void logger_set_default_level(const log_level newlevel) { default_log_level = newlevel; }
log_level logger_get_default_level(void) { return default_log_level; }
void logger_mutex_lock(void) { lock().lock(); }
void logger_mutex_unlock(void) { lock().unlock(); }

void log_output(const char *prefix, const char *func_name, const char *file_name, const int line_no, const char *msg,
                ...) {
  const char *slash = std::strrchr(file_name, '/');
  va_list arguments;
  va_start(arguments, msg);
  {
    std::lock_guard guard(lock());
    std::fprintf(target(), "%s [%s:%s:%d]:  ", prefix, func_name, slash ? slash + 1 : file_name, line_no);
    std::vfprintf(target(), msg, arguments);
    std::fputc('\n', target());
    std::fflush(target());
  }
  va_end(arguments);
}

}  // extern "C"
