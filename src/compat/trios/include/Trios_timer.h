/* SPDX-License-Identifier: BSD-3-Clause */
/* Time since some moment in the past, which does not jump. */
#ifndef TRIOS_TIMER_H
#define TRIOS_TIMER_H

#include "Trios_logger.h"

#include <stdio.h>

#ifdef __cplusplus
#include <ostream>
#include <string>
#include <vector>

namespace Trios {

double GetTime();
long GetTimeMS();
long GetTimeNS();
long GetTimeUS();

/* Writes `header` and numbered descriptions as lines that begin with '%', then the timings in one line. 0, or errno. */
int WriteTimings(const std::string &fname, const std::string &header, const std::vector<std::string> &timing_desc,
                 const std::vector<double> &timings, const bool write_header = true);
int WriteTimings(std::ostream &out, const std::string &header, const std::vector<std::string> &timing_desc,
                 const std::vector<double> &timings, const bool write_header = true);

} /* namespace Trios */

extern "C" {
#endif

extern log_level timer_debug_level;

double trios_get_time(void); /* seconds */
long trios_get_time_ns(void);
long trios_get_time_ms(void);
long trios_get_time_us(void);
/* 0 if the clock goes on. */
int trios_timer_test(void);
const char *trios_timer_getimpl(void);

#ifdef TRIOS_USE_TIMERS
#define trios_declare_timer(timer_var) double timer_var;
#define trios_start_timer(timer) \
  { timer = trios_get_time(); }
#define trios_stop_timer(name, timer)                             \
  {                                                               \
    timer = trios_get_time() - timer;                             \
    log_info(timer_debug_level, "%s Time = %10.8f", name, timer); \
  }
#define trios_start_delay_timer(timer) trios_start_timer(timer)
#define trios_stop_delay_timer(timer) \
  { timer = trios_get_time() - timer; }
#define trios_log_delay_timer(name, timer) \
  { log_info(timer_debug_level, "%s Time = %10.8f", name, timer); }
#else
#define trios_declare_timer(timer_var)
#define trios_start_timer(timer) \
  {}
#define trios_stop_timer(name, timer) \
  {}
#define trios_start_delay_timer(timer) \
  {}
#define trios_stop_delay_timer(timer) \
  {}
#define trios_log_delay_timer(name, timer) \
  {}
#endif

#ifdef __cplusplus
}
#endif
#endif
