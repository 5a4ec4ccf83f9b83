// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/transports/mpi/world.hpp"

#include <nnti/mpi.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace nnti::mpi {
namespace {

using namespace std::chrono_literals;

constexpr int kEagerPolls = 1000;
constexpr auto kPollInterval = 100us;

/// A world in the making: it outlives the calls that time out.
struct Forming {
  MPI_Comm group = MPI_COMM_NULL, communicator = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  enum class Stage { kDuplicating, kNaming } stage = Stage::kDuplicating;
  std::uint64_t id = 0;
};

struct Registry {
  std::mutex mutex;
  std::list<World> worlds;
  std::list<Forming> forming;
  bool hears_of_end = false;
};

/// Never destroyed: MPI may be finalised after the statics.
Registry &registry() {
  static auto *instance = new Registry;
  return *instance;
}

void finalise() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (!finalised) MPI_Finalize();
}

Status initialise() {
  int initialised = 0, provided = 0;
  MPI_Initialized(&initialised);
  if (initialised) return {};
  if (int rc = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided); rc != MPI_SUCCESS)
    return Error{Code::kUnsupported, "MPI cannot be initialised; start the program with mpiexec",
                 nessie::Scope::kProcess, rc};
  std::atexit(finalise);
  return {};
}

Error timed_out() {
  return {Code::kTimedOut,
          "not all processes of the communicator have opened the transport mpi: its first endpoint is opened "
          "collectively; let all of them open one, or those that do join a communicator of their own first "
          "(nnti/mpi.hpp)"};
}

bool finished(MPI_Request &request, Deadline deadline) {
  for (int polls = 0;; ++polls) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return true;
    if (deadline.passed()) return false;
    if (polls > kEagerPolls) std::this_thread::sleep_for(kPollInterval);
  }
}

void start_naming(Forming &forming) {
  MPI_Comm_set_errhandler(forming.communicator, MPI_ERRORS_RETURN);
  forming.stage = Forming::Stage::kNaming;
  forming.id = nessie::random_u64();
  MPI_Ibcast(&forming.id, sizeof forming.id, MPI_BYTE, 0, forming.communicator, &forming.request);
}

Result<World *> finish(Registry &all, std::list<Forming>::iterator forming, Deadline deadline) {
  if (!finished(forming->request, deadline)) return timed_out();
  if (forming->stage == Forming::Stage::kDuplicating) {
    start_naming(*forming);
    if (!finished(forming->request, deadline)) return timed_out();
  }
  all.worlds.emplace_back(forming->communicator, fmt::format("{:016x}", forming->id));
  all.forming.erase(forming);
  return &all.worlds.back();
}

Result<World *> join_locked(Registry &all, MPI_Comm group, Deadline deadline) {
  auto forming = std::ranges::find(all.forming, group, &Forming::group);
  if (forming != all.forming.end()) return finish(all, forming, deadline);
  int between = 0;
  MPI_Comm_test_inter(group, &between);
  if (between)
    return Error{Code::kInvalidArgument, "this is an intercommunicator; merge it first (MPI_Intercomm_merge)"};
  all.forming.emplace_back().group = group;
  forming = std::prev(all.forming.end());
  if (int rc = MPI_Comm_idup(group, &forming->communicator, &forming->request); rc != MPI_SUCCESS) {
    all.forming.erase(forming);
    return Error{Code::kUnsupported, "MPI does not duplicate the communicator: " + mpi_error_text(rc),
                 nessie::Scope::kProcess, rc};
  }
  return finish(all, forming, deadline);
}

}  // namespace

std::string mpi_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  std::string name(text.data());
  return name.substr(0, name.find_first_of(",\n"));
}

std::string mpi_error_text(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) return fmt::format("error {} of MPI", error);
  return {text, static_cast<std::size_t>(length)};
}

Result<std::string> join(MPI_Comm group, Deadline deadline) {
  if (auto status = World::prepare_mpi(); !status.ok()) return status.error();
  auto world = World::join(group, deadline);
  if (!world.ok()) return world.error();
  return (*world)->id();
}

// --- all worlds of the process ----------------------------------------------------------------------------------------

Status World::prepare_mpi() {
  std::lock_guard lock(registry().mutex);
  int finalised = 0, level = 0, is_main = 0;
  MPI_Finalized(&finalised);
  if (finalised)
    return Error{Code::kUnsupported, "MPI has been finalised; open endpoints over mpi before MPI_Finalize()",
                 nessie::Scope::kProcess};
  if (auto status = initialise(); !status.ok()) return status;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  if (level < MPI_THREAD_SERIALIZED && !is_main)
    return Error{Code::kUnsupported,
                 "this MPI may be called by the main thread only; initialise it with MPI_THREAD_MULTIPLE, or use the "
                 "endpoint in the main thread",
                 nessie::Scope::kProcess};
  if (std::exchange(registry().hears_of_end, true)) return {};
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &World::on_mpi_end, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);  // deleted first of all by MPI_Finalize()
  MPI_Comm_free_keyval(&key);                      // by then; the attribute keeps it until it goes itself
  return {};
}

Result<World *> World::join(MPI_Comm group, Deadline deadline) {
  std::lock_guard lock(registry().mutex);
  return join_locked(registry(), group, deadline);
}

Result<World *> World::find(const std::string &id, Deadline deadline) {
  auto &all = registry();
  std::lock_guard lock(all.mutex);
  for (auto &world : all.worlds)
    if (id.empty() || world.id() == id) return &world;
  if (id.empty()) return join_locked(all, MPI_COMM_WORLD, deadline);
  return Error{
      Code::kInvalidArgument,
      fmt::format("this process is in no world '{}'; nnti.mpi.world takes what nnti::mpi::join() returned", id)};
}

int World::on_mpi_end(MPI_Comm, int, void *, void *) {
  auto &all = registry();
  std::lock_guard lock(all.mutex);
  for (auto &world : all.worlds) world.end();
  return MPI_SUCCESS;
}

// --- one world --------------------------------------------------------------------------------------------------------

World::World(MPI_Comm communicator, std::string id) : communicator_(communicator), id_(std::move(id)) {
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  std::lock_guard lock(mutex_);
  open_door();
}

void World::end() {
  std::lock_guard lock(mutex_);
  if (over_.exchange(true, std::memory_order_acq_rel)) return;
  for (auto &[port, tenant] : tenants_) tenant->on_mpi_end();
  MPI_Cancel(&door_);
  MPI_Wait(&door_, MPI_STATUS_IGNORE);
  MPI_Comm_free(&communicator_);
}

Result<int> World::move_in(Tenant &tenant) {
  std::lock_guard lock(mutex_);
  for (int tried = 0; tried < kPorts; ++tried) {
    const int port = kFirstPort + next_port_;
    next_port_ = (next_port_ + 1) % kPorts;
    if (tenants_.emplace(port, &tenant).second) return port;
  }
  return Error{Code::kBusy, "this process has too many endpoints over mpi; close some", nessie::Scope::kProcess};
}

void World::move_out(int port) {
  std::lock_guard lock(mutex_);
  tenants_.erase(port);
}

int World::take_tag() {
  std::lock_guard lock(mutex_);
  for (int tried = 0; tried < kBulkTags; ++tried) {
    const auto tag = static_cast<std::size_t>(next_tag_);
    next_tag_ = (next_tag_ + 1) % kBulkTags;
    if (tags_in_use_[tag]) continue;
    tags_in_use_[tag] = true;
    return kFirstBulkTag + static_cast<int>(tag);
  }
  return 0;
}

void World::give_back_tag(int tag) {
  std::lock_guard lock(mutex_);
  tags_in_use_[static_cast<std::size_t>(tag - kFirstBulkTag)] = false;
}

void World::keep(std::shared_ptr<void> memory) {
  std::lock_guard lock(mutex_);
  kept_.push_back(std::move(memory));
}

// --- the door ---------------------------------------------------------------------------------------------------------

void World::open_door() {
  MPI_Irecv(&knock_, sizeof knock_, MPI_BYTE, MPI_ANY_SOURCE, kDoorTag, communicator_, &door_);
}

bool World::look_after_door() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || over()) return false;
  if (!replies_under_way_.empty() && replies_under_way_.poll(finished_) > 0) {
    for (const auto &over : std::exchange(finished_, {}))
      replies_.remove_if([&](const Reply &reply) { return &reply == over.work; });
  }
  int knocked = 0, size_bytes = 0;
  MPI_Status status;
  if (MPI_Test(&door_, &knocked, &status) != MPI_SUCCESS || !knocked) return false;
  MPI_Get_count(&status, MPI_BYTE, &size_bytes);
  const Hello hello = knock_;
  open_door();
  if (size_bytes == sizeof hello && makes_sense(hello)) answer_knock(hello, status.MPI_SOURCE);
  return true;
}

void World::answer_knock(const Hello &hello, int rank) {
  if (hello.version != kVersion)
    return turn_away(hello, rank, Code::kUnsupported,
                     "the peer speaks another version of the transport mpi; run the same Nessie on both sides");
  auto tenant = tenants_.find(hello.port);
  if (tenant == tenants_.end() || !tenant->second->on_knock(hello, rank))
    turn_away(hello, rank, Code::kPeerLost, "no endpoint listens there (any more)");
}

void World::turn_away(const Hello &hello, int rank, Code code, const char *why) {
  FrameHeader header{.token = hello.token,
                     .type = kRefusal,
                     .size = static_cast<std::uint32_t>(std::strlen(why)),
                     .result = static_cast<std::uint32_t>(code)};
  auto &reply = replies_.emplace_back();
  reply.bytes.resize(sizeof header + std::strlen(why));
  std::memcpy(reply.bytes.data(), &header, sizeof header);
  std::memcpy(reply.bytes.data() + sizeof header, why, std::strlen(why));
  MPI_Request request = MPI_REQUEST_NULL;
  const int rc = MPI_Isend(reply.bytes.data(), static_cast<int>(reply.bytes.size()), MPI_BYTE, rank, hello.reply_port,
                           communicator_, &request);
  if (rc == MPI_SUCCESS)
    replies_under_way_.add(request, reply);
  else
    replies_.pop_back();
}

}  // namespace nnti::mpi
