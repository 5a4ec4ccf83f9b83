// SPDX-License-Identifier: BSD-3-Clause
// Trios_trace.h: groups, events, intervals and counters, as lines of text:
//   time-in-ns  group  kind  event  process  value  data
#include <Trios_timer.h>
#include <Trios_trace.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Group {
  std::string name;
  int parent = -1;
  bool enabled = false;
  std::map<int, int> counters;
  std::map<int, long> started;  ///< intervals, by process
};

/// Never destroyed: a thread may trace while the process exits.
struct Trace {
  std::mutex mutex;
  FILE *file = nullptr;
  bool enable_new = false;
  std::vector<Group> groups;

  Group *find(int gid) {
    return gid < 0 || static_cast<std::size_t>(gid) >= groups.size() ? nullptr : &groups[static_cast<std::size_t>(gid)];
  }
  int find(const std::string &name) const {
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (groups[i].name == name) return static_cast<int>(i);
    return -1;
  }
};

Trace &trace() {
  static auto *the_trace = new Trace;
  return *the_trace;
}

int add_group(const char *name, int parent, int *gid) {
  if (name == nullptr || gid == nullptr) return -1;
  std::lock_guard guard(trace().mutex);
  if (parent >= 0 && trace().find(parent) == nullptr) return -1;
  *gid = trace().find(std::string(name));
  if (*gid >= 0) return 0;
  const bool enabled = trace().enable_new || (parent >= 0 && trace().find(parent)->enabled);
  trace().groups.push_back({name, parent, enabled, {}, {}});
  *gid = static_cast<int>(trace().groups.size() - 1);
  return 0;
}

/// Children come after their parents.
int enable(int gid, bool enabled) {
  std::lock_guard guard(trace().mutex);
  if (trace().find(gid) == nullptr) return -1;
  std::vector<bool> chosen(trace().groups.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    auto &group = trace().groups[i];
    chosen[i] = static_cast<int>(i) == gid || (group.parent >= 0 && chosen[static_cast<std::size_t>(group.parent)]);
    if (chosen[i]) group.enabled = enabled;
  }
  return 0;
}

int enable_all(bool enabled) {
  std::lock_guard guard(trace().mutex);
  trace().enable_new = enabled;
  for (auto &group : trace().groups) group.enabled = enabled;
  return 0;
}

/// Non-zero if successful. A group that is not enabled writes nothing, which is a success.
int write_line(Group &group, const char *kind, int event, int pid, long value, const char *data) {
  if (!group.enabled || trace().file == nullptr) return 1;
  return std::fprintf(trace().file, "%ld\t%s\t%s\t%d\t%d\t%ld\t%s\n", trios_get_time_ns(), group.name.c_str(), kind,
                      event, pid, value, data ? data : "") > 0;
}

template <class Use> int with_group(int gid, Use use) {
  std::lock_guard guard(trace().mutex);
  Group *group = trace().find(gid);
  return group ? use(*group) : 0;
}

template <class Change> int count(int gid, int cid, int pid, const char *data, Change change) {
  return with_group(gid, [&](Group &group) {
    int &value = group.counters[cid];
    change(value);
    return write_line(group, "count", cid, pid, value, data);
  });
}

int start_interval(int gid, int pid) {
  return with_group(gid, [&](Group &group) {
    group.started[pid] = trios_get_time_ns();
    return 1;
  });
}

int end_interval(int gid, const char *kind, int event, int pid, const char *data, long processed) {
  return with_group(gid, [&](Group &group) {
    auto started = group.started.extract(pid);
    if (started.empty()) return 0;
    const long duration = trios_get_time_ns() - started.mapped();
    const std::string text =
        "duration_ns=" + std::to_string(duration) + (data && *data ? std::string(" ") + data : std::string());
    return write_line(group, kind, event, pid, processed, text.c_str());
  });
}

void close_trace() {
  if (trace().file) std::fclose(trace().file);
  trace().file = nullptr;
}

}  // namespace

extern "C" {

int trace_init(const char *trace_fname, const int) {
  std::lock_guard guard(trace().mutex);
  if (trace().file) std::fflush(trace().file);  // or its rest would go into a new file of the same name
  FILE *file = trace_fname ? std::fopen(trace_fname, "w") : nullptr;
  if (trace_fname && file == nullptr) return errno;
  close_trace();
  trace().file = file;
  return 0;
}
int trace_reset(const char *trace_fname, const int trace_ftype, const char *csl) {
  const int opened = trace_init(trace_fname, trace_ftype);
  if (opened != 0) return opened;
  trace_disable_all();
  return trace_enable(csl);
}
int trace_fini(void) {
  std::lock_guard guard(trace().mutex);
  close_trace();
  return 0;
}
int trace_set_buffer_size(const unsigned long int) { return 0; }

int trace_register_group(const char *name, int *gid) { return add_group(name, -1, gid); }
int trace_register_subgroup(const char *name, int parent_id, int *gid) {
  return parent_id < 0 ? -1 : add_group(name, parent_id, gid);
}
int trace_get_gid(const char *name) {
  std::lock_guard guard(trace().mutex);
  return name ? trace().find(std::string(name)) : -1;
}
const char *trace_get_gname(const int gid) {
  std::lock_guard guard(trace().mutex);
  Group *group = trace().find(gid);
  return group ? group->name.c_str() : nullptr;
}
int tracing_enabled(const int gid) {
  return with_group(gid, [](const Group &group) { return static_cast<int>(group.enabled); });
}
int trace_enable(const char *csl) {
  const std::string list = csl ? csl : "";
  int result = 0;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (trace_enable_gid(trace_get_gid(list.substr(begin, end - begin).c_str())) != 0) result = -1;
    begin = end + 1;
  }
  return result;
}
int trace_enable_gid(const int gid) { return enable(gid, true); }
int trace_disable(const int gid) { return enable(gid, false); }
int trace_enable_all(void) { return enable_all(true); }
int trace_disable_all(void) { return enable_all(false); }

int trace_event(const int gid, const int eventID, const int pid, const char *data) {
  return with_group(gid, [&](Group &group) { return write_line(group, "event", eventID, pid, 0, data); });
}
int trace_start_interval(const int gid, const int pid) { return start_interval(gid, pid); }
int trace_end_interval(const int gid, const int event_id, const int pid, const char *data) {
  return end_interval(gid, "interval", event_id, pid, data, 0);
}
int trace_start_tput_interval(const int gid, const int pid) { return start_interval(gid, pid); }
int trace_end_tput_interval(const int gid, const int event_id, const int pid, const long num_processed,
                            const char *data) {
  return end_interval(gid, "tput", event_id, pid, data, num_processed);
}

int trace_get_count(const int gid, const int cid) {
  return with_group(gid, [&](Group &group) { return group.counters[cid]; });
}
int trace_inc_count(const int gid, const int cid, const int pid, const char *data) {
  return count(gid, cid, pid, data, [](int &value) { ++value; });
}
int trace_dec_count(const int gid, const int cid, const int pid, const char *data) {
  return count(gid, cid, pid, data, [](int &value) { --value; });
}
int trace_set_count(const int gid, const int cid, const int pid, const char *data, const int newval) {
  return count(gid, cid, pid, data, [=](int &value) { value = newval; });
}
int trace_reset_count(const int gid, const int cid, const int pid, const char *data) {
  return trace_set_count(gid, cid, pid, data, 0);
}
int trace_put_all_counts(const int gid, const int pid, const char *data) {
  return with_group(gid, [&](Group &group) {
    int written = 1;
    for (const auto &[cid, value] : group.counters)
      written = write_line(group, "count", cid, pid, value, data) && written;
    return written;
  });
}

}  // extern "C"
