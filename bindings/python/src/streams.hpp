// SPDX-License-Identifier: BSD-3-Clause
// nessie/streams.hpp as Python holds it. Whatever waits lets other threads of Python run, and comes up for air now and
// then, for signals.
#pragma once

#include "host.hpp"
#include "origin.hpp"
#include "view.hpp"

#include <nessie/streams.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

namespace nessie_python {

namespace streams = nessie::streams;

inline constexpr std::chrono::milliseconds kLongestSlice{1000};

/// Calls attempt(deadline), without the GIL, in slices that grow up to `most`, until goes_on(result) is false or the
/// deadline has passed. The last one is not shorter than the one before: it has the time to hear what is wrong.
template <class Attempt, class GoesOn>
auto in_slices(Deadline deadline, std::chrono::milliseconds most, Attempt attempt, GoesOn goes_on) {
  for (auto slice = kSlice;; slice = std::min(2 * slice, most)) {
    const bool is_last =
        deadline.passed() || (!deadline.is_never() && deadline.when() - nessie::Clock::now() < 2 * slice);
    auto result = [&] {
      const Released released;
      return attempt(is_last ? deadline : Deadline::in(slice));
    }();
    if (!goes_on(result) || deadline.passed()) return result;
    check_signals();
  }
}

inline constexpr auto timed_out = [](const auto &result) { return result.code() == Code::kTimedOut; };
/// As timed_out, where each attempt begins anew: they grow without an end.
inline constexpr std::chrono::milliseconds kNoLongest{1 << 30};

/// What is used by one thread at a time, in the process that made it, until it is closed. Its end may take a while, and
/// is without the GIL; in a child of that process it stays as it is.
template <class T> class Held {
 public:
  Held(T thing, Origin origin) : it_(new Inside{std::move(thing), {}}, End{origin}), origin_(origin) {}

  struct Inside {
    T thing;
    std::vector<View> lent;  ///< to it
  };

  /// A thread that uses it. InvalidArgument: it is closed, or another thread's, or another process's.
  class Use {
   public:
    explicit Use(Held &held) : held_(held), it_(held.it_) {
      if (!held.origin_.is_here())
        raise(Code::kInvalidArgument, "this is of the process that forked this one: open one here");
      if (!it_) raise(Code::kInvalidArgument, "it is closed");
      if (held.in_use_.exchange(true)) raise(Code::kInvalidArgument, "another thread is using it at this moment");
    }
    ~Use() { held_.in_use_.store(false); }
    Use(const Use &) = delete;
    T &operator*() const { return it_->thing; }
    T *operator->() const { return &it_->thing; }
    const std::shared_ptr<Inside> &inside() const { return it_; }

   private:
    Held &held_;
    std::shared_ptr<Inside> it_;
  };

  bool is_closed() const { return it_ == nullptr; }
  /// Ends when nobody else holds it any more.
  void drop() { it_.reset(); }

 private:
  struct End {
    Origin origin;
    void operator()(Inside *it) const {
      if (!origin.is_here()) return;
      auto lent = std::move(it->lent);  // is given back with the GIL
      const Released released;
      delete it;
    }
  };

  std::shared_ptr<Inside> it_;
  Origin origin_;
  std::atomic<bool> in_use_{false};
};

/// Waits until the servers are there, if need be; then they are quick.
void await_servers(const std::string &at, Deadline deadline);

/// kInvalidArgument: there is no such type.
streams::Type stream_type(int type);
streams::Box box_of(streams::Extents start, streams::Extents count);
inline streams::Order order_of(bool is_fortran) { return is_fortran ? streams::Order::kFortran : streams::Order::kC; }
/// (name, type, shape, fill, is_constant), (variable, name, type, value) of each.
py::list listed(const std::vector<streams::Variable> &variables);
py::list listed(const std::vector<streams::Attribute> &attributes);

void bind_stream_writer(py::module_ &module);
void bind_stream_reader(py::module_ &module);
void bind_space(py::module_ &module);

}  // namespace nessie_python
