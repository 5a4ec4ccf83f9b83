// SPDX-License-Identifier: BSD-3-Clause
// nessie-bench-ucx: what UCX itself takes; run by nessie-bench (rivals.cpp), as
//   nessie-bench-ucx pairs|clients LEADERS WHAT SIZE… [WHAT SIZE…]…
// Forks that many processes that measure ("lead"), and for each one a follower, or one target for all. Prints "WHAT
// SIZE FIGURE" for each; rivals.hpp says what is asked for. Messages are active messages, sent eagerly.
#include "crew.hpp"
#include "machine.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

#include <ucp/api/ucp.h>

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

using bench::Board;
using bench::Lane;
using nessie::Code;
using nessie::Error;
using nessie::Status;

constexpr unsigned kMessage = 1;
constexpr auto kLimit = std::chrono::seconds(120);
constexpr unsigned kTurnsPerLook = 4096;

Error failure(const char *what, ucs_status_t status) {
  return Error{Code::kIo, fmt::format("UCX: {}: {}", what, ucs_status_string(status)), {}, status};
}

/// What one process tells the other: three strings, one after the other.
std::string pack(std::initializer_list<std::string_view> parts) {
  std::string packed;
  for (auto part : parts) {
    auto length = static_cast<std::uint32_t>(part.size());
    packed.append(reinterpret_cast<const char *>(&length), sizeof length).append(part);
  }
  return packed;
}
std::string unpack(std::string &packed) {
  std::uint32_t length = 0;
  std::memcpy(&length, packed.data(), sizeof length);
  auto part = packed.substr(sizeof length, length);
  packed.erase(0, sizeof length + length);
  return part;
}

struct Team {
  int leaders = 1, followers = 1;
  int all() const { return leaders + followers; }
  bool is_crowded() const { return all() > static_cast<int>(bench::usable_cores().size()); }
  /// A leader and its follower on neighbouring cores; the clients of one target everywhere.
  int core_of(int member) const {
    if (leaders != followers) return member;
    return member < leaders ? 2 * member : 2 * (member - leaders) + 1;
  }
};

/// One process: a worker, an endpoint to the partner, memory that UCX allocated and that the partner can reach.
class Process {
 public:
  Process(Board &board, const Team &team, int member) : board_(board), team_(team), member_(member) {}
  ~Process();
  Process(const Process &) = delete;
  Status open(std::size_t memory_bytes);

  bool leads() const { return member_ < team_.leaders; }
  /// Of one that does not lead.
  int leaders() const { return team_.leaders / team_.followers; }
  /// False if something went wrong; then everything returns at once.
  bool good() const { return status_.ok(); }
  const Status &status() const { return status_; }

  void send(const void *data, std::size_t size);
  /// Begins to send; finish_sends() waits.
  void start_send(const void *data, std::size_t size);
  void finish_sends();
  void receive(std::uint64_t messages);
  /// Of the message that was received last: whether it was the last one of a tally.
  bool was_last() const { return last_byte_ == bench::kLast; }
  /// Complete when the partner can see it.
  void put(bench::PageAligned<std::byte> &from);
  void get(bench::PageAligned<std::byte> &into);
  /// Waits, making progress, until all processes have come here.
  void meet();
  /// Closes the connection. All processes go on making progress until all have.
  void leave();

 private:
  static ucs_status_t on_message(void *self, const void *, std::size_t, void *data, std::size_t size,
                                 const ucp_am_recv_param_t *);
  Status open_worker();
  Status lend(std::size_t memory_bytes, std::string &key);
  Status connect();
  void turn();
  void finish(void *request);
  void check(const char *what, ucs_status_t status);

  Board &board_;
  const Team &team_;
  int member_, meetings_ = 0;
  Status status_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h partner_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  ucp_rkey_h remote_key_ = nullptr;
  std::uint64_t address_ = 0, remote_address_ = 0;
  std::uint64_t received_ = 0, taken_ = 0;
  char last_byte_ = bench::kAnother;
  std::vector<void *> sending_;
  unsigned idle_turns_ = 0;
};

// --- opening and closing ---------------------------------------------------------------------------------------------

ucs_status_t Process::on_message(void *self, const void *, std::size_t, void *data, std::size_t size,
                                 const ucp_am_recv_param_t *) {
  auto &process = *static_cast<Process *>(self);
  ++process.received_;
  process.last_byte_ = size > 0 ? static_cast<const char *>(data)[size - 1] : bench::kAnother;
  return UCS_OK;
}

Status Process::open_worker() {
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_RMA;
  if (auto status = ucp_init(&parameters, nullptr, &context_); status != UCS_OK) return failure("ucp_init", status);
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (auto status = ucp_worker_create(context_, &worker, &worker_); status != UCS_OK)
    return failure("ucp_worker_create", status);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessage;
  handler.cb = on_message;
  handler.arg = this;
  auto status = ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return failure("ucp_worker_set_am_recv_handler", status);
  return {};
}

Status Process::lend(std::size_t memory_bytes, std::string &key) {
  ucp_mem_map_params_t map{};
  map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  map.length = memory_bytes;
  map.flags = UCP_MEM_MAP_ALLOCATE;
  if (auto status = ucp_mem_map(context_, &map, &memory_); status != UCS_OK) return failure("ucp_mem_map", status);
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  ucp_mem_query(memory_, &attributes);
  std::memset(attributes.address, 1, memory_bytes);
  address_ = reinterpret_cast<std::uint64_t>(attributes.address);
  void *packed = nullptr;
  std::size_t size = 0;
  if (auto status = ucp_rkey_pack(context_, memory_, &packed, &size); status != UCS_OK)
    return failure("ucp_rkey_pack", status);
  key.assign(static_cast<char *>(packed), size);
  ucp_rkey_buffer_release(packed);
  return {};
}

Status Process::connect() {
  if (!leads() && leaders() > 1) return {};  // the target of many only lends its memory
  auto theirs = board_.address_of(leads() ? team_.leaders + member_ % team_.followers : member_ - team_.leaders);
  if (theirs.empty()) return Error{Code::kPeerLost, "the partner did not start"};
  auto address = unpack(theirs), key = unpack(theirs), location = unpack(theirs);
  std::memcpy(&remote_address_, location.data(), sizeof remote_address_);
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  parameters.address = reinterpret_cast<const ucp_address_t *>(address.data());
  if (auto status = ucp_ep_create(worker_, &parameters, &partner_); status != UCS_OK)
    return failure("ucp_ep_create", status);
  auto status = ucp_ep_rkey_unpack(partner_, key.data(), &remote_key_);
  if (status != UCS_OK) return failure("ucp_ep_rkey_unpack", status);
  return {};
}

Status Process::open(std::size_t memory_bytes) {
  std::string key;
  if (auto status = open_worker(); !status.ok()) return status;
  if (auto status = lend(memory_bytes, key); !status.ok()) return status;
  ucp_address_t *address = nullptr;
  std::size_t size = 0;
  if (auto status = ucp_worker_get_address(worker_, &address, &size); status != UCS_OK)
    return failure("ucp_worker_get_address", status);
  auto packed = pack(
      {{reinterpret_cast<char *>(address), size}, key, {reinterpret_cast<const char *>(&address_), sizeof address_}});
  ucp_worker_release_address(worker_, address);
  if (packed.size() > board_.lane(member_).address.size())
    return Error{Code::kUnsupported, "UCX's address is too long; leave fewer transports in UCX_TLS"};
  board_.publish_address(member_, packed);
  return connect();
}

void Process::meet() {
  ++meetings_;
  board_.arrive();
  while (!board_.all_here(team_.all(), meetings_) && good()) turn();
}

void Process::leave() {
  meet();
  ucp_request_param_t parameters{};
  if (partner_) finish(ucp_ep_close_nbx(partner_, &parameters));
  meet();
}

Process::~Process() {
  if (remote_key_) ucp_rkey_destroy(remote_key_);
  if (memory_) ucp_mem_unmap(context_, memory_);
  if (worker_) ucp_worker_destroy(worker_);
  if (context_) ucp_cleanup(context_);
}

// --- moving ----------------------------------------------------------------------------------------------------------

void Process::check(const char *what, ucs_status_t status) {
  if (status != UCS_OK && status_.ok()) status_ = failure(what, status);
}

void Process::turn() {
  if (ucp_worker_progress(worker_) > 0) return;
  if (team_.is_crowded()) sched_yield();
  if (++idle_turns_ % kTurnsPerLook == 0 && board_.stopped())
    status_ = Error{Code::kCancelled, "another process of the baseline failed"};
}

void Process::finish(void *request) {
  if (request == nullptr) return;
  if (UCS_PTR_IS_ERR(request)) return check("an operation", UCS_PTR_STATUS(request));
  while (good() && ucp_request_check_status(request) == UCS_INPROGRESS) turn();
  check("an operation", ucp_request_check_status(request));
  ucp_request_free(request);
}

void Process::start_send(const void *data, std::size_t size) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  auto *request = ucp_am_send_nbx(partner_, kMessage, nullptr, 0, data, size, &parameters);
  if (request != nullptr) sending_.push_back(request);
}

void Process::finish_sends() {
  for (auto *request : sending_) finish(request);
  sending_.clear();
}

void Process::send(const void *data, std::size_t size) {
  start_send(data, size);
  finish_sends();
}

void Process::receive(std::uint64_t messages) {
  taken_ += messages;
  while (received_ < taken_ && good()) turn();
}

void Process::put(bench::PageAligned<std::byte> &from) {
  ucp_request_param_t parameters{};
  finish(ucp_put_nbx(partner_, from.data(), from.size(), remote_address_, remote_key_, &parameters));
  finish(ucp_ep_flush_nbx(partner_, &parameters));
}

void Process::get(bench::PageAligned<std::byte> &into) {
  ucp_request_param_t parameters{};
  finish(ucp_get_nbx(partner_, into.data(), into.size(), remote_address_, remote_key_, &parameters));
}

// --- what is asked for -----------------------------------------------------------------------------------------------

using Buffer = bench::PageAligned<std::byte>;

void mark(Buffer &buffer, bool last) { buffer.back() = static_cast<std::byte>(last ? bench::kLast : bench::kAnother); }

/// A message there, and back.
void round_trip(Process &process, Lane &lane, std::size_t size) {
  Buffer buffer(size);
  auto as_leader = [&](bool last) {
    mark(buffer, last);
    process.send(buffer.data(), size);
    process.receive(1);
  };
  if (process.leads()) lane.us = bench::typical_us(bench::kRoundTrips, as_leader);
  for (bool last = process.leads(); !last && process.good();) {
    process.receive(1);
    last = process.was_last();
    process.send(buffer.data(), size);
  }
}

/// A put in each direction at once; a message says that it is complete.
void both_ways(Process &process, Lane &lane, std::size_t size) {
  Buffer buffer(size), word(1);
  auto once = [&](bool last) {
    mark(word, last);
    process.put(buffer);
    process.send(word.data(), 1);
    process.receive(1);
  };
  if (process.leads()) lane.us = bench::typical_us(bench::transfers_per_batch(size), once);
  while (!process.leads() && !process.was_last() && process.good()) once(false);
}

using Transfer = void (Process::*)(Buffer &);

/// The follower makes progress meanwhile: over TCP it has to. A message ends it.
template <Transfer kTransfer> void one_sided(Process &process, Lane &lane, std::size_t size) {
  Buffer buffer(size);
  if (!process.leads()) return process.receive(static_cast<std::uint64_t>(process.leaders()));
  lane.us = bench::typical_us(bench::transfers_per_batch(size), [&](bool) { (process.*kTransfer)(buffer); });
  process.send(buffer.data(), 0);
}

template <Transfer kTransfer> void one_sided_tally(Process &process, Lane &lane, std::size_t size) {
  Buffer buffer(size);
  auto once = [&](bool) { (process.*kTransfer)(buffer); };
  if (process.leads()) bench::tally_for(bench::kWarmUp_s, once);
  process.meet();
  if (!process.leads()) return process.receive(static_cast<std::uint64_t>(process.leaders()));
  lane.tally = bench::tally_for(bench::kTally_s, once);
  process.send(buffer.data(), 0);
}

/// Messages in flight at once, then an answer.
void send_window(Process &process, Buffer &buffer, bool last) {
  mark(buffer, last);
  for (int i = 0; i < bench::kWindow; ++i) process.start_send(buffer.data(), buffer.size());
  process.finish_sends();
  process.receive(1);
}

void receive_windows(Process &process, const Buffer &buffer) {
  for (bool last = false; !last && process.good();) {
    process.receive(bench::kWindow);
    last = process.was_last();
    process.send(buffer.data(), buffer.size());
  }
}

bench::Tally exchange_windows(Process &process, std::size_t size, double seconds) {
  Buffer buffer(size);
  if (process.leads()) return bench::tally_for(seconds, [&](bool last) { send_window(process, buffer, last); });
  receive_windows(process, buffer);
  return {};
}

void rate(Process &process, Lane &lane, std::size_t size) {
  exchange_windows(process, size, bench::kWarmUp_s);
  process.meet();
  lane.tally = exchange_windows(process, size, bench::kTally_s);
}

double messages_per_s(Board &board, int leaders) { return bench::kWindow * bench::calls_per_s(board, leaders); }

struct Answer {
  std::string_view what;
  void (*measure)(Process &process, Lane &lane, std::size_t size);
  double (*figure)(Board &board, int leaders);
};
constexpr Answer kAnswers[] = {
    {"round-trip", round_trip, bench::median_us},
    {"both-ways", both_ways, bench::median_us},
    {"put", one_sided<&Process::put>, bench::median_us},
    {"get", one_sided<&Process::get>, bench::median_us},
    {"rate", rate, messages_per_s},
    {"puts-per-s", one_sided_tally<&Process::put>, bench::calls_per_s},
    {"gets-per-s", one_sided_tally<&Process::get>, bench::calls_per_s},
};

Status take_part(const Answer &answer, const Team &team, Board &board, int member, std::size_t size) {
  bench::Pin pin(team.core_of(member));
  Process process(board, team, member);
  if (auto status = process.open(size); !status.ok()) return status;
  // The first message makes the connection.
  if (process.leads())
    process.send("", 0);
  else
    process.receive(static_cast<std::uint64_t>(process.leaders()));
  process.meet();
  if (process.good()) answer.measure(process, board.lane(member), size);
  process.leave();
  return process.status();
}

int measure(const Answer &answer, const Team &team, std::size_t size) {
  auto duty = [&](Board &all, int member) { return take_part(answer, team, all, member, size); };
  auto board = bench::run_crew(team.all(), bench::Housing::kProcesses, kLimit, duty);
  if (!board) return fmt::print(stderr, "nessie-bench-ucx: {}\n", board.error().message), 1;
  fmt::print("{} {} {:.9f}\n", answer.what, size, answer.figure(**board, team.leaders));
  return 0;
}

const Answer *find(std::string_view what) {
  const auto *answer = std::find_if(std::begin(kAnswers), std::end(kAnswers), [&](auto &a) { return a.what == what; });
  return answer == std::end(kAnswers) ? nullptr : answer;
}

}  // namespace

int main(int argc, char **argv) {
  Team team;
  team.leaders = argc > 2 ? std::atoi(argv[2]) : 0;
  team.followers = argc > 2 && std::string_view(argv[1]) == "pairs" ? team.leaders : 1;
  const Answer *answer = nullptr;
  for (int i = 3; i < argc; ++i) {
    int bytes = std::atoi(argv[i]);
    if (bytes <= 0) answer = find(argv[i]);
    if (!answer || team.leaders < 1)
      return fmt::print(stderr, "usage: nessie-bench-ucx pairs|clients LEADERS WHAT SIZE... [WHAT SIZE...]...\n"), 2;
    if (int code = bytes > 0 ? measure(*answer, team, static_cast<std::size_t>(bytes)) : 0) return code;
  }
  return 0;
}
