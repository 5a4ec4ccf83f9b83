/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, and the shared space, in C: what nessie/streams.hpp is in C++. That header says what each does, promises and
 * refuses; here is what differs. Library: nessie_streams_c (Nessie::streams_c, pkg-config nessie-streams).
 *
 *   A writer:  nessie_stream *out;   int32_t state;
 *              nessie_stream_open("flow", NESSIE_STREAM_WRITE, rank, size, NULL, 30000, &out);
 *              nessie_stream_define(out, &(nessie_stream_variable){
 *                .name = "T", .type = NESSIE_STREAM_DOUBLE, .ndims = 2, .shape = (int64_t[]){ny, nx}});
 *              nessie_stream_begin_step(out, 60000, &state);
 *              nessie_stream_put(out, "T", 2, start, count, data);
 *              nessie_stream_end_step(out, 60000);
 *              nessie_stream_close(out, 30000);
 *   A reader:  nessie_stream_open("flow", NESSIE_STREAM_READ, 0, 1, NULL, 30000, &in);
 *              while (nessie_stream_begin_step(in, 60000, &state) == NESSIE_OK && state == NESSIE_STREAM_STEP_OK) {
 *                nessie_stream_get(in, "T", 2, start, count, data, sizeof data, 30000);
 *                nessie_stream_end_step(in, 0);
 *              }
 *
 * Errors: functions return NESSIE_OK or another nessie_code (nessie/codes.h), in the cases that streams.hpp gives;
 *   nessie_stream_last_error() has a sentence that says more. A function that fails leaves its outputs untouched.
 *   Besides:
 *     NESSIE_INVALID_ARGUMENT  a null pointer, a handle that is closed or of another kind, a number out of its range, a
 *                              writer's function with a reader, or the other way round; nothing was changed
 *     NESSIE_NO_MEMORY         nothing was changed
 *   Functions that return no code return 0, or null, for a handle that is not open. A closed handle is recognised until
 *   its memory serves a new one.
 * Threads: different handles may be used by different threads at once, one handle by one thread at a time.
 * Times: in milliseconds. A timeout of -1: no limit of its own; 0: without waiting.
 * Boxes: elements start[d] to start[d] + count[d] - 1 of each dimension d < ndims; of a scalar ndims is 0, and both may
 *   be null. In memory the last dimension is the fastest. */
#ifndef NESSIE_STREAMS_H
#define NESSIE_STREAMS_H

#include <nessie/codes.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nessie_stream nessie_stream; /* one rank that writes, or reads; closed by nessie_stream_close() */
typedef struct nessie_space nessie_space;   /* closed by nessie_space_close() */

/* A sentence about the last function of this header that failed in this thread, which says what to do; valid until the
 * next one fails in this thread; "" before any has. nssi_rt_last_scope() and its like (nssi/runtime.h) say more of it.
 */
const char *nessie_stream_last_error(void);

/* --- what arrays are ----------------------------------------------------------------------------------------------- */

/* Of elements, numbered as netCDF numbers its external types. CHAR is text, in bytes. */
enum nessie_stream_type {
  NESSIE_STREAM_INT8 = 1,
  NESSIE_STREAM_CHAR = 2,
  NESSIE_STREAM_INT16 = 3,
  NESSIE_STREAM_INT32 = 4,
  NESSIE_STREAM_FLOAT = 5,
  NESSIE_STREAM_DOUBLE = 6,
  NESSIE_STREAM_UINT8 = 7,
  NESSIE_STREAM_UINT16 = 8,
  NESSIE_STREAM_UINT32 = 9,
  NESSIE_STREAM_INT64 = 10,
  NESSIE_STREAM_UINT64 = 11
};
/* Bytes of an element; 0: it is none of these. */
uint64_t nessie_stream_type_size(int32_t type);
/* "double"; "": it is none of these. */
const char *nessie_stream_type_name(int32_t type);

#define NESSIE_STREAM_MOST_DIMENSIONS 16

typedef struct nessie_stream_variable {
  const char *name;
  int32_t type;         /* enum nessie_stream_type */
  int32_t ndims;        /* 0: a scalar */
  const int64_t *shape; /* global */
  const void *fill;     /* one element, for elements that nobody has put; null: there is none */
  int32_t is_constant;  /* 1: put in one step, its value holds until it is put again */
} nessie_stream_variable;

typedef struct nessie_stream_attribute {
  const char *variable; /* null or "": of the stream */
  const char *name;
  int32_t type;   /* enum nessie_stream_type */
  uint64_t count; /* elements; of text, bytes, without a zero at its end */
  const void *value;
} nessie_stream_attribute;

/* --- opening, and closing ------------------------------------------------------------------------------------------ */

enum nessie_stream_mode { NESSIE_STREAM_WRITE = 1, NESSIE_STREAM_READ = 2 };

/* What a step outlives once nessie_stream_end_step() has returned. 0: as the setting `streams.durability` says. */
enum nessie_stream_durability { NESSIE_STREAM_MEMORY = 1, NESSIE_STREAM_LOGGED = 2 };

/* Which steps a reader sees: all; or the newest that there is each time. */
enum nessie_stream_reading { NESSIE_STREAM_EVERY = 0, NESSIE_STREAM_VIEW = 1 };

/* Where it begins: with the oldest step that the servers have; the last complete one; the first that is complete after
 * now; step `first`. */
enum nessie_stream_from {
  NESSIE_STREAM_FROM_OLDEST = 0,
  NESSIE_STREAM_FROM_LATEST = 1,
  NESSIE_STREAM_FROM_NEXT = 2,
  NESSIE_STREAM_FROM_NUMBER = 3
};

/* All zeros: the defaults. WriterOptions and ReaderOptions in streams.hpp say what each means. */
typedef struct nessie_stream_options {
  const char *at; /* where the servers are; null or "": as the setting `streams.at` says, or those of this node */
  /* A writer's. */
  int32_t durability;    /* enum nessie_stream_durability */
  int32_t append;        /* 1: goes on after the last complete step of the stream of this name */
  int32_t await_readers; /* groups of readers that must be there before the first step begins */
  /* A reader's. */
  int32_t reading;          /* enum nessie_stream_reading */
  int32_t from;             /* enum nessie_stream_from */
  uint64_t first;           /* with NESSIE_STREAM_FROM_NUMBER */
  const char *subscription; /* names the group, for which steps are held while nobody is there; null or "": no name */
  uint64_t group;           /* tells groups of several ranks without a name apart */
} nessie_stream_options;

/* Opens rank `rank` of `size` of those who write the stream, or of a group that reads it. `mode`: enum
 * nessie_stream_mode. `options`: null for the defaults; not used after the function has returned. Errors as
 * Writer::open and Reader::open. */
int nessie_stream_open(const char *name, int32_t mode, int32_t rank, int32_t size, const nessie_stream_options *options,
                       int32_t timeout_ms, nessie_stream **stream);

/* Says that this rank writes no more, or leaves as a reader, and closes the handle. After an error the handle is open
 * still: it can be called again, or nessie_stream_drop(). */
int nessie_stream_close(nessie_stream *stream, int32_t timeout_ms);
/* As nessie_stream_close(), and lets go of the reader's subscription. */
int nessie_stream_unsubscribe(nessie_stream *stream, int32_t timeout_ms);
/* Closes the handle without waiting for anybody. To others it is as if a writer's process had been killed; a reader
 * holds nothing any more. */
int nessie_stream_drop(nessie_stream *stream);

/* --- steps --------------------------------------------------------------------------------------------------------- */

/* How nessie_stream_begin_step() ended. */
enum nessie_stream_state {
  NESSIE_STREAM_STEP_OK = 0,
  NESSIE_STREAM_NOT_YET = 1, /* not by the deadline; nothing has changed */
  NESSIE_STREAM_END = 2      /* of a reader: all writers have closed, and all steps were seen */
};

/* Begins the next step, `state`: enum nessie_stream_state. Errors as Writer::begin_step and Reader::begin_step. */
int nessie_stream_begin_step(nessie_stream *stream, int32_t timeout_ms, int32_t *state);
/* Ends it. Errors as Writer::end_step; a reader's does not wait. */
int nessie_stream_end_step(nessie_stream *stream, int32_t timeout_ms);

/* The number of the step that is open, from 0 on; otherwise a writer's next one, or a reader's last one. */
uint64_t nessie_stream_step(const nessie_stream *stream);
/* How many steps a reader has not seen between this one and the one before. */
uint64_t nessie_stream_missed(const nessie_stream *stream);

/* --- writing ------------------------------------------------------------------------------------------------------- */

/* Describes an array, or describes it anew with another shape; what is pointed to is copied. Errors as
 * Writer::define. */
int nessie_stream_define(nessie_stream *stream, const nessie_stream_variable *variable);
/* Errors as Writer::set_attribute. */
int nessie_stream_set_attribute(nessie_stream *stream, const nessie_stream_attribute *attribute);

/* Puts a box: copies it, so `data` is free on return. Errors of the three as Writer::put. */
int nessie_stream_put(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                      const int64_t *count, const void *data);
/* Memory to compute the box into, aligned to 64 bytes, until nessie_stream_end_step(); what it holds is unspecified.
 * Null for a box of no elements. */
int nessie_stream_span(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                       const int64_t *count, void **memory);
/* As nessie_stream_put(), but `data` is borrowed until nessie_stream_end_step() has returned NESSIE_OK, or the handle
 * is closed: a server of another node pulls it from where it is; for one of this node it is copied at once. */
int nessie_stream_put_lent(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                           const int64_t *count, const void *data);

/* --- reading ------------------------------------------------------------------------------------------------------- */

/* What there is in the open step, with the shapes of this step: `count` of them. They live until the next
 * nessie_stream_begin_step(), or until the handle is closed. */
int nessie_stream_variables(nessie_stream *stream, const nessie_stream_variable **variables, uint64_t *count);
int nessie_stream_attributes(nessie_stream *stream, const nessie_stream_attribute **attributes, uint64_t *count);
/* One of them. With a writer, a variable as this rank has defined it, until it is defined again.
 *   NESSIE_NOT_FOUND  there is none */
int nessie_stream_find(nessie_stream *stream, const char *name, const nessie_stream_variable **variable);
/* `variable`: null or "" for an attribute of the stream.
 *   NESSIE_NOT_FOUND  there is none */
int nessie_stream_find_attribute(nessie_stream *stream, const char *variable, const char *name,
                                 const nessie_stream_attribute **attribute);

/* Gets a box into `destination`, which has room for `size_bytes`. Errors as Reader::get. */
int nessie_stream_get(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                      const int64_t *count, void *destination, uint64_t size_bytes, int32_t timeout_ms);

/* What a box has. */
typedef struct nessie_stream_figures_result {
  double minimum, maximum, mean;
  uint64_t elements; /* that count: neither NaN nor fill values */
} nessie_stream_figures_result;

/* Computed at the servers. Errors as Reader::figures. */
int nessie_stream_figures(nessie_stream *stream, const char *variable, int32_t ndims, const int64_t *start,
                          const int64_t *count, int32_t timeout_ms, nessie_stream_figures_result *figures);

/* Memory that servers on this node can reach at once: what is got into it is copied once, and quickly. Zeroed, aligned
 * to pages. Freed by nessie_stream_free(), in any thread; of null that is nothing. */
int nessie_stream_allocate(uint64_t size_bytes, void **memory);
int nessie_stream_free(void *memory);

/* --- who is there -------------------------------------------------------------------------------------------------- */

/* A group of readers, as the servers see it. */
typedef struct nessie_stream_reader_info {
  const char *subscription; /* "": it has no name */
  int32_t reading;          /* enum nessie_stream_reading */
  int32_t size, connected;  /* ranks */
  uint64_t ended;           /* steps from the stream's first on that it needs no more */
  uint64_t lag;             /* complete steps that it has not ended */
  uint64_t missed;
} nessie_stream_reader_info;

enum nessie_stream_status { NESSIE_STREAM_OPEN = 0, NESSIE_STREAM_ENDED = 1, NESSIE_STREAM_INTERRUPTED = 2 };

/* A stream, as the servers see it. */
typedef struct nessie_stream_info {
  const char *name;
  int32_t status;  /* enum nessie_stream_status; interrupted: a writer died */
  const char *why; /* of an interrupted one, or one whose file went native */
  int32_t is_file; /* 1: a staged file of an unmodified program's */
  int32_t writers, connected;
  int32_t durability;     /* enum nessie_stream_durability */
  uint64_t steps, oldest; /* that were complete; the first that the servers have */
  uint64_t memory_bytes, log_bytes;
  const nessie_stream_variable *variables; /* as of the last complete step */
  uint64_t variable_count;
  const nessie_stream_attribute *attributes;
  uint64_t attribute_count;
  const nessie_stream_reader_info *readers;
  uint64_t reader_count;
} nessie_stream_info;

/* Calls `use` for each stream of the servers, which it may read until it returns, in the caller's thread. `at`: as
 * nessie_stream_options.at; null: all of this user's on this node. Errors as list(). */
int nessie_stream_list(const char *at, int32_t timeout_ms, void (*use)(const nessie_stream_info *info, void *context),
                       void *context);

/* --- the shared space ---------------------------------------------------------------------------------------------- */

/* `at`: as nessie_stream_options.at. Errors of these as those of Space. */
int nessie_space_open(const char *at, int32_t timeout_ms, nessie_space **space);
int nessie_space_close(nessie_space *space);
int nessie_space_put(nessie_space *space, const char *name, uint64_t version, int32_t type, int32_t ndims,
                     const int64_t *start, const int64_t *count, const void *data, int32_t timeout_ms);
/* Waits until every element of the box was put in that version. */
int nessie_space_get(nessie_space *space, const char *name, uint64_t version, int32_t type, int32_t ndims,
                     const int64_t *start, const int64_t *count, void *destination, uint64_t size_bytes,
                     int32_t timeout_ms);
/* The newest version of which anything was put. */
int nessie_space_newest(nessie_space *space, const char *name, int32_t timeout_ms, uint64_t *version);

#ifdef __cplusplus
}
#endif

#endif
