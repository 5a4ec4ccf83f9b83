/* SPDX-License-Identifier: BSD-3-Clause */
/* Tracing: events, intervals and counters of groups that can be switched on, as lines of text in a file. Any thread.
 * Functions that write return non-zero if successful (a group that is off writes nothing, successfully); the others
 * return 0, or -1 or an errno. */
#ifndef TRIOS_TRACE_H
#define TRIOS_TRACE_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Both are written as text. */
enum trace_ftype { TRACE_UNDEFINED_FTYPE = -1, TRACE_SDDF_BINARY, TRACE_SDDF_ASCII };
#define TRACE_DEFAULT_FTYPE TRACE_SDDF_BINARY

int trace_init(const char *trace_fname, const int trace_ftype);
/* A new file, in which only the groups of the list `enable` are traced. */
int trace_reset(const char *trace_fname, const int trace_ftype, const char *enable);
int trace_fini(void);
/* Passed over. */
int trace_set_buffer_size(const unsigned long int bufsize);

int trace_register_group(const char *name, int *gid);
int trace_register_subgroup(const char *name, int parent_id, int *gid);
int trace_get_gid(const char *name);
const char *trace_get_gname(const int gid);

int tracing_enabled(const int gid);
int trace_enable(const char *csl); /* names, joined by ',' */
int trace_enable_gid(const int gid);
int trace_disable(const int gid);
int trace_enable_all(void); /* those to come, too */
int trace_disable_all(void);

int trace_event(const int gid, const int eventID, const int pid, const char *data);
/* One interval of a group and process at a time. */
int trace_start_interval(const int gid, const int pid);
int trace_end_interval(const int gid, const int event_id, const int pid, const char *data);
int trace_start_tput_interval(const int gid, const int pid);
int trace_end_tput_interval(const int gid, const int event_id, const int pid, const long num_processed,
                            const char *data);

int trace_get_count(const int gid, const int cid);
int trace_inc_count(const int gid, const int cid, const int pid, const char *data);
int trace_dec_count(const int gid, const int cid, const int pid, const char *data);
int trace_set_count(const int gid, const int cid, const int pid, const char *data, const int newval);
int trace_reset_count(const int gid, const int cid, const int pid, const char *data);
int trace_put_all_counts(const int gid, const int pid, const char *data);

#ifdef __cplusplus
}
#endif
#endif
