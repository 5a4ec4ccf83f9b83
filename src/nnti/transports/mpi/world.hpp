// SPDX-License-Identifier: BSD-3-Clause
// A world: processes whose endpoints reach each other over one communicator of our own, and what the endpoints of one
// process share in it: tags, and the door at which strangers knock.
//
// Design notes. A communicator of our own is made by MPI_Comm_idup, which is collective: so it is made once, at a
// moment that is documented (join(), or the first open()), and kept until MPI ends; afterwards endpoints come and go in
// any process at any time without a collective call. The call does not block in MPI: who waits in vain for the others
// gets kTimedOut, and goes on with the same attempt later. Communicators for pairs, made when two processes connect,
// would need no agreement of all, but MPI offers no way to make one that neither blocks nor uses messages of the
// application's communicator.
#pragma once

#include "nnti/transports/mpi/requests.hpp"
#include "nnti/transports/mpi/wire.hpp"

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace nnti::mpi {

/// An endpoint of this process in a world.
class Tenant {
 public:
  /// Somebody of `rank` knocks. Called by any thread that looks after the door: only notes it. False: it does not
  /// listen.
  virtual bool on_knock(const Hello &hello, int rank) = 0;
  /// MPI_Finalize() was called: withdraw what is under way, and use MPI no more.
  virtual void on_mpi_end() = 0;

 protected:
  ~Tenant() = default;
};

/// "Open MPI v4.1.4"
std::string mpi_name();

class World {
 public:
  /// Ok: MPI is initialised, and this thread may call it. Initialises it if nobody has.
  static Status prepare_mpi();
  /// As nnti::mpi::join().
  static Result<World *> join(MPI_Comm group, Deadline deadline);
  /// The one of that id; the first, or a new one of MPI_COMM_WORLD, if `id` is empty.
  static Result<World *> find(const std::string &id, Deadline deadline);

  World(MPI_Comm communicator, std::string id);

  MPI_Comm communicator() const { return communicator_; }
  const std::string &id() const { return id_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// MPI has been finalised.
  bool over() const { return over_.load(std::memory_order_acquire); }

  /// The port at which the endpoint receives. kBusy: all are in use.
  Result<int> move_in(Tenant &tenant);
  void move_out(int port);
  /// A tag for bulk data to this process; 0: none is free.
  int take_tag();
  void give_back_tag(int tag);
  /// Sees who knocks, for all endpoints of the process. True if anybody did.
  bool look_after_door();
  /// Keeps what MPI may still read or write until the process ends.
  void keep(std::shared_ptr<void> memory);

 private:
  struct Reply : Work {
    Reply() : Work(Kind::kSend) {}
    std::vector<std::byte> bytes;
  };

  static int on_mpi_end(MPI_Comm, int, void *, void *);
  void end();
  void open_door();
  void answer_knock(const Hello &hello, int rank);
  void turn_away(const Hello &hello, int rank, Code code, const char *why);

  MPI_Comm communicator_;
  std::string id_;
  int rank_ = 0, size_ = 1;
  std::atomic<bool> over_{false};

  std::mutex mutex_;  ///< of what follows
  std::unordered_map<int, Tenant *> tenants_;
  int next_port_ = 0, next_tag_ = 0;
  std::vector<bool> tags_in_use_ = std::vector<bool>(kBulkTags);
  Hello knock_;
  MPI_Request door_ = MPI_REQUEST_NULL;
  RequestSet replies_under_way_;
  std::list<Reply> replies_;
  std::vector<RequestSet::Finished> finished_;
  std::vector<std::shared_ptr<void>> kept_;
};

/// What MPI says about an error of its own.
std::string mpi_error_text(int error);

}  // namespace nnti::mpi
