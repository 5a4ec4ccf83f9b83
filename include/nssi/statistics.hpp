// SPDX-License-Identifier: BSD-3-Clause
// What a runtime has counted (Runtime::statistics()). docs/observing.md says how to read it.
#pragma once

#include <nssi/nssi.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nssi {

/// How long something took, each time. Quick operations are timed now and then; those that were stand for those that
/// were not, so that `count` is about how often it happened. A bucket's values differ by a fourth, or by a factor of
/// two.
struct TimeHistogram {
  struct Bucket {
    std::uint64_t up_to_ns = 0, count = 0;
  };
  std::uint64_t count = 0, sum_ns = 0;
  std::uint64_t max_ns = 0;     ///< of those that were timed
  std::vector<Bucket> buckets;  ///< those that are not empty, in their order
  /// The time within which that part of them (0.5: half) was done, to a fourth; 0 if there are none.
  std::uint64_t percentile_ns(double part) const;
};

struct ErrorCount {
  Code code{};
  std::uint64_t count = 0;
};

/// An operation that this process offers. All callers.
struct OperationStatistics {
  Interface interface;
  std::uint32_t provider = 0;
  OpCode op = 0;
  std::string name;
  std::uint64_t calls = 0;         ///< whose handlers have ended, or that ended without one
  std::vector<ErrorCount> errors;  ///< of those
  std::uint64_t dropped = 0;       ///< given up before they began; not among the calls
  std::uint64_t turned_away = 0;   ///< for want of room; those that were invited came again
  std::uint64_t sent_again = 0;    ///< requests that came once more, after a connection was lost; carried out once
  std::uint64_t args_bytes = 0, result_bytes = 0;
  std::uint64_t pulled_bytes = 0, pushed_bytes = 0;  ///< of the callers' buffers
  std::uint64_t viewed_bytes = 0;                    ///< of those that were read where they lie
  TimeHistogram queueing;                            ///< from a request's arrival until its handler begins
  TimeHistogram execution;                           ///< of the handler, with its transfers and what else it waits for
  TimeHistogram transfer;                            ///< of each transfer between here and the caller's memory
};

/// One instance of an interface that this process offers.
struct ServiceStatistics {
  Interface interface;
  std::uint32_t provider = 0;
  Limits limits;
  std::uint64_t requests = 0, bytes = 0;  ///< in progress
  std::uint64_t callers_waiting = 0;      ///< whose requests were turned away
};

/// Who calls this process. Callers that have gone are forgotten after a while.
struct CallerStatistics {
  std::string session;    ///< 16 hexadecimal digits: a digest of the random session that the caller uses
  std::string transport;  ///< of its connection; empty: there is none now
  std::uint64_t calls = 0, errors = 0;
  std::uint64_t in_bytes = 0;   ///< arguments, and what was pulled or read in place
  std::uint64_t out_bytes = 0;  ///< results, and what was pushed
  std::uint64_t in_progress = 0;
  TimeHistogram queueing, execution, transfer;  ///< as an operation's, of all that it calls; to a power of two
};

/// Calls that this process makes of one operation of one peer.
struct CallStatistics {
  std::string peer;  ///< its URL, where it is known
  Interface interface;
  std::uint32_t provider = 0;
  OpCode op = 0;
  std::uint64_t calls = 0;         ///< that are over
  std::vector<ErrorCount> errors;  ///< of those
  std::uint64_t sent_again = 0;    ///< because their connection was lost
  std::uint64_t held_back = 0;     ///< because the service had no room
  std::uint64_t args_bytes = 0, result_bytes = 0;
  TimeHistogram round_trip;  ///< from sending to the result
};

/// A number that a provider tells of itself.
struct ProviderFigure {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

/// A provider that `nessied` hosts in this process.
struct ProviderStatistics {
  std::string name, type;
  std::uint32_t number = 0;
  std::string pool;   ///< whose threads run its handlers; empty: the one that drives
  std::string state;  ///< what it says of itself; empty: nothing
  std::vector<ProviderFigure> figures = {};
};

/// Memory for data that one pool of the process has taken: an account of its budget.
struct MemoryStatistics {
  std::string name;
  std::uint64_t used_bytes = 0, high_bytes = 0;  ///< now, and at most until now
};

struct Statistics {
  bool is_counted = false;      ///< false: `nssi.statistics` is off, and only limits and callers are told
  std::uint64_t uptime_ns = 0;  ///< of the runtime
  std::string prometheus;       ///< where its endpoint listens; empty: nowhere
  std::uint64_t refused = 0;    ///< requests that no operation was found for, or that could not be decoded
  std::vector<OperationStatistics> operations;
  std::vector<ServiceStatistics> services;
  std::vector<CallerStatistics> callers;
  std::vector<CallStatistics> calls;
  // Of a process that `nessied` hosts:
  std::vector<MemoryStatistics> memory;
  std::vector<ProviderStatistics> providers;  ///< in the order in which they were started
};

/// One line of JSON, with the fields' names; a histogram's buckets as pairs, [up_to_ns, count]; errors by their names.
std::string to_json(const Statistics &statistics);

}  // namespace nssi
