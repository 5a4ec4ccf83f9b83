/* SPDX-License-Identifier: BSD-3-Clause */
/* Trios' logger: lines "LEVEL [function:file:line]:  text" to a file, or to stderr. Any thread. */
#ifndef TRIOS_LOGGER_H
#define TRIOS_LOGGER_H

#ifdef __GNUC__
#pragma GCC system_header /* the macros compare enumerators of different kinds, and end in an empty argument list */
#endif

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FALSE
#define FALSE (0)
#endif
#ifndef TRUE
#define TRUE (1)
#endif

/* syslog.h has a LOG_INFO and a LOG_DEBUG of its own, as macros: include it first, or not at all. */
#undef LOG_INFO
#undef LOG_DEBUG
typedef enum log_level {
  LOG_UNDEFINED = -1, /* as the default level says */
  LOG_OFF = 0,
  LOG_FATAL = 1,
  LOG_ERROR = 2,
  LOG_WARN = 3,
  LOG_INFO = 4,
  LOG_DEBUG = 5,
  LOG_ALL = 6
} log_level;

extern log_level default_log_level; /* LOG_WARN */

/* Sets the default level; `file` NULL or "": stderr; "stdout". Returns 0, or errno if the file cannot be opened. */
int logger_init(const log_level debug_level, const char *file);
/* Closes the file; what is logged afterwards goes to stderr. */
int logger_fini(void);
int logger_not_initialized(void);
void logger_set_file(FILE *file);
FILE *logger_get_file(void);
void logger_set_default_level(const log_level newlevel);
log_level logger_get_default_level(void);
/* For several lines that shall stay together. */
void logger_mutex_lock(void);
void logger_mutex_unlock(void);
void log_output(const char *prefix, const char *func_name, const char *file_name, const int line_no, const char *msg,
                ...)
#ifdef __GNUC__
    __attribute__((format(printf, 5, 6)))
#endif
    ;

#define TRIOS_LOGS(level, wanted) (((level) == LOG_UNDEFINED ? default_log_level : (level)) >= (wanted))
#define logging_fatal(level) TRIOS_LOGS(level, LOG_FATAL)
#define logging_error(level) TRIOS_LOGS(level, LOG_ERROR)
#define logging_warn(level) TRIOS_LOGS(level, LOG_WARN)
#define logging_info(level) TRIOS_LOGS(level, LOG_INFO)
#define logging_debug(level) TRIOS_LOGS(level, LOG_DEBUG)

#define TRIOS_LOG(level, wanted, name, ...) \
  if (TRIOS_LOGS(level, wanted)) log_output(name, __FUNCTION__, __FILE__, __LINE__, ##__VA_ARGS__)
#define log_fatal(level, ...) TRIOS_LOG(level, LOG_FATAL, "FATAL", ##__VA_ARGS__)
#define log_error(level, ...) TRIOS_LOG(level, LOG_ERROR, "ERROR", ##__VA_ARGS__)
#define log_warn(level, ...) TRIOS_LOG(level, LOG_WARN, "WARN", ##__VA_ARGS__)
#define log_info(level, ...) TRIOS_LOG(level, LOG_INFO, "INFO", ##__VA_ARGS__)
#define log_debug(level, ...) TRIOS_LOG(level, LOG_DEBUG, "DEBUG", ##__VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
