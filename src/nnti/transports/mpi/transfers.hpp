// SPDX-License-Identifier: BSD-3-Clause
// The gets and puts between us and one peer: those that we asked for, and those that we serve.
//
//   get:  asks --kGet(tag)--> owner checks, sends the bytes on `tag`, then says kDone(chunks)
//   put:  asks --kPut-------> owner checks, posts its receives, says kClear(tag) --> asker sends the bytes on `tag`;
//         the owner has them: kDone
// What fits a frame travels in kPut, and in kDone. Who stops sending before the end says how many chunks it began: the
// owner with kDone, the asker with kStopped.
#pragma once

#include "nnti/framed/memory.hpp"
#include "nnti/transports/mpi/flow.hpp"
#include "nnti/transports/mpi/wire.hpp"

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace nnti::mpi {

using framed::Memory;
class World;

/// The connection that the transfers belong to.
class TransfersHost {
 public:
  virtual World &world() = 0;
  virtual const Memory *memory_of(std::uint64_t key) = 0;
  virtual Flow &new_flow(Flow::Direction direction, int tag, std::span<std::byte> memory, std::uint64_t operation,
                         bool asked_here) = 0;
  /// Has the flow looked after from progress().
  virtual void touch(Flow &flow) = 0;
  /// Has begin_waiting() called from progress().
  virtual void wants_pump() = 0;
  /// Sends a frame now or later; `body` is copied if it must wait.
  virtual void send_or_keep(const FrameHeader &header, std::span<const std::byte> body) = 0;
  virtual void break_with(Error error) = 0;

 protected:
  ~TransfersHost() = default;
};

class Transfers {
 public:
  explicit Transfers(TransfersHost &host) : host_(host) {}
  ~Transfers();

  // --- what we ask for -----------------------------------------------------------------------------------------------
  void start(bool get, const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local,
             Completion &completion);
  void on_clear(const FrameHeader &header);
  void on_done(const Frame &frame);
  /// Begins what waits for its turn. True: nothing waits any more.
  bool begin_waiting();
  /// All completions that are owed, oldest first; none of them is called by this class any more.
  std::vector<Completion *> take_completions();
  /// MPI may still touch memory that was lent to us for operations of ours.
  bool uses_lent_memory() const;
  /// Or memory that is registered here.
  bool uses_memory() const;

  // --- what we serve ---------------------------------------------------------------------------------------------------
  void serve(const Frame &frame);
  void on_stopped(const FrameHeader &header);
  /// Begins nothing more with `memory`, whose registration ends.
  void leave_memory(const Memory &memory);
  bool uses(const Memory &memory) const;

  // --- both --------------------------------------------------------------------------------------------------------------
  /// Something happened to `flow`.
  void on_flow(Flow &flow);
  /// Stops everything, and tells the peer what it needs to know.
  void say_farewell();
  /// The peer has said farewell: what it did not tell of will not come.
  void conclude_all();
  void abandon_all();

 private:
  struct Asked {
    Completion *completion = nullptr;
    std::span<std::byte> local;
    bool get = false;
    FrameHeader header;
    Flow *flow = nullptr;
    std::optional<Code> done;  ///< what the owner answered
    bool large() const { return local.size() > kMaxMessageBytes; }
  };
  struct Served {
    Flow *flow = nullptr;
    const Memory *memory = nullptr;
    bool get = false;
    bool told = false;  ///< kDone was sent
  };

  bool begin_large(std::uint64_t operation, Asked &asked);
  void try_finish(std::uint64_t operation);
  bool contradicts(const Asked &asked, const Frame &frame, Code code) const;
  void answer_inline(const FrameHeader &request, const Memory &memory, std::span<const std::byte> body);
  void serve_get(const FrameHeader &request, const Memory &memory);
  void serve_put(const FrameHeader &request, const Memory &memory);
  void continue_served(std::uint64_t operation);
  void tell_done(std::uint64_t operation, Code code, std::uint64_t chunks = 0);
  void tell_stopped(std::uint64_t operation, std::uint64_t chunks);
  void bad_peer(const char *why);
  template <class F> void for_each_flow(F function);

  TransfersHost &host_;
  std::unordered_map<std::uint64_t, Asked> asked_;
  std::deque<std::uint64_t> waiting_;  ///< large ones that were not begun
  std::size_t large_ = 0;              ///< that were
  std::uint64_t next_operation_ = 1;
  std::unordered_map<std::uint64_t, Served> served_;
};

}  // namespace nnti::mpi
