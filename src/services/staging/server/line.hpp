// SPDX-License-Identifier: BSD-3-Clause
// The writes to a file that are here and not carried out, of all handles on it, in the order in which they were sent.
// Nothing else orders those of several handles, and of processes that put independently of each other: natively, what
// was put later is what stays, and what a read gets; here they are on their way in several inboxes. Progress thread.
#pragma once

#include <services/staging/server/file_gate.hpp>

#include <functional>
#include <list>

namespace staging {

class Line {
 public:
  explicit Line(nssi::Runtime &runtime) : runtime_(runtime), changed_(runtime) {}

  /// A write that has arrived, and will be begun; its sender does not wait for it.
  void note_arrival(nssi::PeerId caller, std::int64_t sent_ns) { enter({sent_ns, caller, true, false, {}}); }
  bool is_empty() const { return waiting_.empty(); }
  /// Suspends the fiber until what has arrived, and was sent up to now, has been carried out. Not what its sender still
  /// waits for: for all that others can know, it has not happened yet.
  void await_arrived();

 private:
  struct Waiting {
    std::int64_t sent_ns = 0;
    nssi::PeerId caller;
    bool has_returned = false;  ///< to its sender, who takes it for done
    bool is_begun = false;
    std::function<bool()> is_held_up;  ///< it waits for other things than its turn, perhaps for who is behind it
  };
  using Position = std::list<Waiting>::iterator;

 public:
  /// The place of what is begun: that of its arrival, or a new one. Given back when dropped.
  class Place {
   public:
    /// `sent_ns` 0: now, by the clock of those who send. Who was sent later goes first as long as `is_held_up` says
    /// that this waits for something else.
    Place(Line &line, nssi::PeerId caller, std::int64_t sent_ns = 0, std::function<bool()> is_held_up = {});
    ~Place();
    Place(const Place &) = delete;
    /// Suspends the fiber until all that was sent before has been carried out. Then nobody else has his turn as long as
    /// this lives.
    void await_turn();

   private:
    Line &line_;
    const Position position_;
  };

 private:
  Position enter(Waiting waiting);
  Position begin(nssi::PeerId caller, std::int64_t sent_ns);
  const Waiting *who_goes_before(const Waiting &one) const;
  void await_nobody(const std::function<const Waiting *()> &in_the_way);

  nssi::Runtime &runtime_;
  std::list<Waiting> waiting_;
  const Waiting *has_turn_ = nullptr;
  WaitQueue changed_;
};

}  // namespace staging
