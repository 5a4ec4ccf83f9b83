// SPDX-License-Identifier: BSD-3-Clause
#include "crew.hpp"

#include "child.hpp"
#include "ranks.hpp"
#include "report.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kGlance = std::chrono::milliseconds(2);
constexpr auto kPause = std::chrono::microseconds(50);

void write_error(Lane &lane, const std::string &message) { message.copy(lane.error.data(), lane.error.size() - 1); }

int carry_out(Board &board, int member, const Duty &duty) {
  auto status = duty(board, member);
  if (status.ok()) return 0;
  write_error(board.lane(member), status.error().message);
  board.stop();
  return 1;
}

/// The error that a member wrote down; that it ended without a word, if none did.
Status what_went_wrong(Board &board, int members, bool timed_out) {
  for (int member = 0; member < members; ++member)
    if (board.lane(member).error[0]) return Error{Code::kIo, board.lane(member).error.data()};
  if (timed_out) return Error{Code::kTimedOut, "the processes of the workload did not end in time; try --quick"};
  return Error{Code::kPeerLost, "a process of the workload was killed"};
}

/// What the process of a member does; its exit code.
using Life = std::function<int(int member)>;

Status run_processes(Board &board, int members, std::chrono::seconds limit, const Life &life) {
  std::vector<std::unique_ptr<Partner>> partners;
  for (int member = 0; member < members; ++member)
    partners.push_back(std::make_unique<Partner>([&](int, int) { return life(member); }));
  auto until = std::chrono::steady_clock::now() + limit;
  bool good = true;
  while (!partners.empty() && std::chrono::steady_clock::now() < until)
    std::erase_if(partners, [&](auto &partner) {
      auto end = partner->wait(kGlance);
      if (end == Partner::End::kBadly) good = false, board.stop();
      return end != Partner::End::kNotYet;
    });
  bool timed_out = !partners.empty();
  board.stop();
  partners.clear();
  if (good && !timed_out) return {};
  return what_went_wrong(board, members, timed_out);
}

/// They leave MPI when they exit.
Status run_ranks(Board &board, int members, std::chrono::seconds limit, const Duty &duty) {
  auto ranks = Ranks::open(members);
  if (!ranks) return ranks.error();
  return run_processes(board, members, limit, [&](int member) -> int {
    (*ranks)->become(member);
    std::exit(carry_out(board, member, duty));
  });
}

Status run_threads(Board &board, int members, const Duty &duty) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int member = 0; member < members; ++member)
    threads.emplace_back([&, member] { failures += carry_out(board, member, duty); });
  for (auto &thread : threads) thread.join();
  if (failures == 0) return {};
  return what_went_wrong(board, members, false);
}

}  // namespace

void Lane::leave(std::string_view mode, std::uint64_t size_bytes, double value) {
  auto &figure = figures_.at(count_++);
  mode.copy(figure.mode.data(), figure.mode.size() - 1);
  figure.size_bytes = size_bytes;
  figure.value = value;
}

// --- the board -------------------------------------------------------------------------------------------------------

struct alignas(128) Board::Head {
  std::atomic<int> arrived{0};
  std::atomic<bool> stopped{false};
};

Board::Board(int members) : size_bytes_(sizeof(Head) + static_cast<std::size_t>(members) * sizeof(Lane)) {
  void *memory = mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  head_ = new (memory) Head;
  for (int member = 0; member < members; ++member) new (lanes() + member) Lane;
}

Board::~Board() {
  if (head_) munmap(head_, size_bytes_);
}

Lane *Board::lanes() { return reinterpret_cast<Lane *>(head_ + 1); }
void Board::stop() { head_->stopped = true; }
bool Board::stopped() const { return head_->stopped; }

bool Board::wait_until(const std::function<bool()> &come) const {
  auto until = std::chrono::steady_clock::now() + kPatience;
  while (!come()) {
    if (stopped() || std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

void Board::arrive() { ++head_->arrived; }
bool Board::all_here(int count, int meeting) const { return head_->arrived >= count * meeting; }

bool Board::meet(int count, int meeting) {
  arrive();
  return wait_until([&] { return all_here(count, meeting); });
}

void Board::publish_address(int member, std::string_view address) {
  auto length = address.copy(lane(member).address.data(), lane(member).address.size());
  lane(member).address_bytes.store(static_cast<std::uint32_t>(length), std::memory_order_release);
}

std::string Board::address_of(int member) {
  auto &from = lane(member);
  if (!wait_until([&] { return from.address_bytes.load(std::memory_order_acquire) > 0; })) return {};
  return {from.address.data(), from.address_bytes.load(std::memory_order_acquire)};
}

Housing housing_for(std::string_view transport) {
  if (transport == "inproc") return Housing::kThreads;
  return transport == "mpi" ? Housing::kRanks : Housing::kProcesses;
}

Status check_forked(std::string_view transport) {
  if (housing_for(transport) == Housing::kProcesses) return {};
  return Error{Code::kUnsupported,
               "this workload needs two processes that are no MPI job's; choose another transport than inproc and mpi"};
}

// --- the crew --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Board>> run_crew(int members, Housing housing, std::chrono::seconds limit, const Duty &duty) {
  auto board = std::make_unique<Board>(members);
  if (!board->valid()) return Error{Code::kNoMemory, "no shared memory for the workload's processes"};
  const auto as_process = [&](int member) { return carry_out(*board, member, duty); };
  const auto status = housing == Housing::kThreads ? run_threads(*board, members, duty)
                      : housing == Housing::kRanks ? run_ranks(*board, members, limit, duty)
                                                   : run_processes(*board, members, limit, as_process);
  if (!status.ok()) return status.error();
  return board;
}

double calls_per_s(Board &board, int count) {
  Tally all = board.lane(0).tally;
  for (int member = 1; member < count; ++member) all = together(all, board.lane(member).tally);
  return all.calls / (all.ended_s - all.began_s);
}

double median_us(Board &board, int count) {
  std::vector<double> times;
  for (int member = 0; member < count; ++member) times.push_back(board.lane(member).us);
  return summarise(std::move(times)).median;
}

}  // namespace bench
