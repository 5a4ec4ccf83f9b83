// SPDX-License-Identifier: BSD-3-Clause
// nessie-bench-mpi and nessie-bench-mpich: what MPI itself takes; run by nessie-bench (rivals.cpp), as
//   mpiexec -n PROCESSES nessie-bench-mpi pairs|clients WHAT SIZE… [WHAT SIZE…]…
// In pairs the even ranks measure ("lead"), each with the odd rank that follows; otherwise all but the last one lead,
// all with the last one. Rank 0 prints "WHAT SIZE FIGURE" for each; rivals.hpp says what is asked for.
// `nessie-bench-mpi sleep` is the other program of a job that CommSplitter splits.
#include "machine.hpp"
#include "page_aligned.hpp"
#include "timing.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace {

int rank_ = 0, processes_ = 0;
bool in_pairs_ = true;
bool crowded_ = false;  ///< more processes than cores: whoever waits gives the core away

bool leads() { return in_pairs_ ? rank_ % 2 == 0 : rank_ < processes_ - 1; }
int partner() { return in_pairs_ ? rank_ ^ 1 : processes_ - 1; }

void finish(MPI_Request *requests, int count) {
  if (!crowded_) {
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    return;
  }
  for (int done = 0;;) {
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (done) return;
    sched_yield();
  }
}

void meet() {
  MPI_Request all;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  finish(&all, 1);
}

void send(const void *data, int size) {
  if (!crowded_) {
    MPI_Send(data, size, MPI_CHAR, partner(), 0, MPI_COMM_WORLD);
    return;
  }
  MPI_Request sent;
  MPI_Isend(data, size, MPI_CHAR, partner(), 0, MPI_COMM_WORLD, &sent);
  finish(&sent, 1);
}

void receive(void *data, int size) {
  if (!crowded_) {
    MPI_Recv(data, size, MPI_CHAR, partner(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  MPI_Request received;
  MPI_Irecv(data, size, MPI_CHAR, partner(), 0, MPI_COMM_WORLD, &received);
  finish(&received, 1);
}

/// The median of the leaders' figures, at rank 0.
double median_of_leaders(double mine) {
  constexpr double kNone = -1;
  std::vector<double> all(static_cast<std::size_t>(processes_));
  double figure = leads() ? mine : kNone;
  MPI_Gather(&figure, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  std::erase(all, kNone);
  return bench::summarise(std::move(all)).median;
}

/// The calls of all leaders per second, from the first one's begin to the last one's end, at rank 0.
double calls_per_s(const bench::Tally &mine) {
  double began = leads() ? mine.began_s : 1e300, ended = leads() ? mine.ended_s : 0, first = 0, last = 0, calls = 0;
  MPI_Reduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&ended, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine.calls, &calls, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  return calls / (last - first);
}

/// A message of one size there, and one of another back.
class Exchange {
 public:
  Exchange(int size, int back) : buffer_(static_cast<std::size_t>(size), 'x'), size_(size), back_(back) {}

  void as_leader(bool last) {
    buffer_.back() = last ? bench::kLast : bench::kAnother;
    send(buffer_.data(), size_);
    receive(buffer_.data(), back_);
  }
  /// Whether it was the last one.
  bool as_follower() {
    receive(buffer_.data(), size_);
    bool last = buffer_.back() == bench::kLast;
    send(buffer_.data(), back_);
    return last;
  }
  double typical_us(int calls) {
    double us = 0;
    if (leads())
      us = bench::typical_us(calls, [&](bool last) { as_leader(last); });
    else
      while (!as_follower()) {}
    return median_of_leaders(us);
  }
  bench::Tally tally(double seconds) {
    if (leads()) return bench::tally_for(seconds, [&](bool last) { as_leader(last); });
    while (!as_follower()) {}
    return {};
  }

 private:
  bench::PageAligned<char> buffer_;
  int size_, back_;
};

int transfers(int size) { return bench::transfers_per_batch(static_cast<std::uint64_t>(size)); }

double round_trip_us(int size) {
  meet();
  return Exchange(size, size).typical_us(bench::kRoundTrips);
}
double transfer_us(int size) {
  meet();
  return Exchange(size, 0).typical_us(transfers(size));
}
double transfers_per_s(int size) {
  Exchange exchange(size, 0);
  exchange.tally(bench::kWarmUp_s);
  meet();
  return calls_per_s(exchange.tally(bench::kTally_s));
}

/// A message each way at the same time.
double both_ways_us(int size) {
  bench::PageAligned<char> out(static_cast<std::size_t>(size), 'x'), in(out);
  auto once = [&](bool last) {
    MPI_Request requests[2];
    out.back() = last ? bench::kLast : bench::kAnother;
    MPI_Irecv(in.data(), size, MPI_CHAR, partner(), 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), size, MPI_CHAR, partner(), 0, MPI_COMM_WORLD, &requests[1]);
    finish(requests, 2);
  };
  meet();
  double us = 0;
  if (leads()) us = bench::typical_us(transfers(size), once);
  while (!leads() && in.back() != bench::kLast) once(false);
  return median_of_leaders(us);
}

/// A sum of all processes, of so many bytes. Only the leader knows which one is the last: its numbers are then 1.
double allreduce_us(int size) {
  const int numbers = std::max(1, size / static_cast<int>(sizeof(double)));
  std::vector<double> mine(static_cast<std::size_t>(numbers), 0), all(mine);
  auto once = [&](bool last) {
    mine.back() = last ? 1 : 0;
    MPI_Allreduce(mine.data(), all.data(), numbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  };
  meet();
  double us = 0;
  if (leads()) us = bench::typical_us(bench::kRoundTrips, once);
  while (!leads() && all.back() == 0) once(false);
  return median_of_leaders(us);
}

/// A window that MPI allocated, so that it can share it within the node; passive target.
class Window {
 public:
  explicit Window(int size) : size_(size) {
    MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    std::fill_n(memory_, size, 'w');
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  ~Window() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  Window(const Window &) = delete;
  void put(const char *from) {
    MPI_Put(from, size_, MPI_CHAR, partner(), 0, size_, MPI_CHAR, window_);
    MPI_Win_flush(partner(), window_);
  }
  void get(char *into) {
    MPI_Get(into, size_, MPI_CHAR, partner(), 0, size_, MPI_CHAR, window_);
    MPI_Win_flush(partner(), window_);
  }

 private:
  int size_;
  char *memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

using Transfer = void (*)(Window &window, char *local);
void put(Window &window, char *local) { window.put(local); }
void get(Window &window, char *local) { window.get(local); }

template <Transfer kTransfer> double one_sided_us(int size) {
  Window window(size);
  bench::PageAligned<char> local(static_cast<std::size_t>(size), 'x');
  meet();
  double us = 0;
  if (leads()) us = bench::typical_us(transfers(size), [&](bool) { kTransfer(window, local.data()); });
  meet();  // a target that is not in MPI might answer nobody
  return median_of_leaders(us);
}

template <Transfer kTransfer> double one_sided_per_s(int size) {
  Window window(size);
  bench::PageAligned<char> local(static_cast<std::size_t>(size), 'x');
  auto once = [&](bool) { kTransfer(window, local.data()); };
  meet();
  if (leads()) bench::tally_for(bench::kWarmUp_s, once);
  meet();
  bench::Tally tally;
  if (leads()) tally = bench::tally_for(bench::kTally_s, once);
  meet();
  return calls_per_s(tally);
}

/// Messages in flight at once, then an answer.
class Windows {
 public:
  explicit Windows(int size) : size_(size), buffers_(static_cast<std::size_t>(size) * bench::kWindow) {}

  bench::Tally exchange(double seconds) {
    if (leads()) return bench::tally_for(seconds, [&](bool last) { send_window(last); });
    while (!receive_window()) {}
    return {};
  }

 private:
  char *buffer(int i) { return buffers_.data() + static_cast<std::ptrdiff_t>(i) * size_; }
  void send_window(bool last) {
    buffers_.back() = last ? bench::kLast : bench::kAnother;
    for (int i = 0; i < bench::kWindow; ++i)
      MPI_Isend(buffer(i), size_, MPI_CHAR, partner(), 0, MPI_COMM_WORLD, &requests_[i]);
    finish(requests_, bench::kWindow);
    receive(buffer(0), size_);
  }
  bool receive_window() {
    for (int i = 0; i < bench::kWindow; ++i)
      MPI_Irecv(buffer(i), size_, MPI_CHAR, partner(), 0, MPI_COMM_WORLD, &requests_[i]);
    finish(requests_, bench::kWindow);
    bool last = buffers_.back() == bench::kLast;
    send(buffer(0), size_);
    return last;
  }

  int size_;
  bench::PageAligned<char> buffers_;
  MPI_Request requests_[bench::kWindow];
};

double rate_per_s(int size) {
  Windows windows(size);
  windows.exchange(bench::kWarmUp_s);
  meet();
  return bench::kWindow * calls_per_s(windows.exchange(bench::kTally_s));
}

/// A cube of doubles, of which each of eight processes has a block, goes into slabs of the first four.
class Redistribution {
 public:
  explicit Redistribution(int size_bytes) : edge_(static_cast<int>(std::lround(std::cbrt(size_bytes / 8)))) {
    const auto half = static_cast<std::size_t>(edge_ / 2), edge = static_cast<std::size_t>(edge_);
    block_.assign(half * half * half, rank_);
    if (receives(rank_)) slab_.assign(edge * edge * edge / kReceivers, -1);
    for (int other = 0; other < processes_; ++other) describe(other);
  }
  ~Redistribution() {
    for (auto *types : {&sent_, &received_})
      for (auto &type : *types)
        if (type != MPI_DOUBLE) MPI_Type_free(&type);
  }
  Redistribution(const Redistribution &) = delete;

  void carry_out() {
    MPI_Alltoallw(block_.data(), sends_.data(), at_.data(), sent_.data(), slab_.data(), receives_.data(), at_.data(),
                  received_.data(), MPI_COMM_WORLD);
  }
  /// Of the slab's first plane, what each of its four blocks brought.
  bool is_right() const {
    const int rows = edge_ / kReceivers, half = edge_ / 2, z = rank_ * rows / half;
    for (int y : {0, 1})
      for (int x : {0, 1})
        if (receives(rank_) && slab_[static_cast<std::size_t>(y * half * edge_ + x * half)] != z * 4 + y * 2 + x)
          return false;
    return true;
  }

 private:
  static constexpr int kReceivers = 4;
  static bool receives(int rank) { return rank < kReceivers; }
  /// What goes from this process's block to the other one's slab, and from the other one's block here.
  void describe(int other) {
    const int half = edge_ / 2, rows = edge_ / kReceivers;
    const auto shares = [&](int block, int slab) { return receives(slab) && slab * rows / half == block / 4; };
    const int block_shape[] = {half, half, half}, slab_shape[] = {rows, edge_, edge_}, part[] = {rows, half, half};
    const int in_block[] = {other * rows % half, 0, 0}, in_slab[] = {0, other / 2 % 2 * half, other % 2 * half};
    sent_.push_back(shares(rank_, other) ? box(block_shape, part, in_block) : MPI_DOUBLE);
    received_.push_back(shares(other, rank_) ? box(slab_shape, part, in_slab) : MPI_DOUBLE);
    sends_.push_back(shares(rank_, other) ? 1 : 0);
    receives_.push_back(shares(other, rank_) ? 1 : 0);
    at_.push_back(0);
  }
  static MPI_Datatype box(const int *shape, const int *part, const int *start) {
    MPI_Datatype type;
    MPI_Type_create_subarray(3, shape, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
  }

  int edge_;
  bench::PageAligned<double> block_, slab_;
  std::vector<MPI_Datatype> sent_, received_;
  std::vector<int> sends_, receives_, at_;
};

/// From when the first process begins to when the last one is done: in the middle of some, after one to warm up.
double redistribution_us(int size) {
  constexpr int kTimes = 9;
  Redistribution redistribution(size);
  std::vector<double> times;
  for (int i = 0; i <= kTimes; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double began = bench::now_s(), first = 0, last = 0;
    redistribution.carry_out();
    double ended = bench::now_s();
    MPI_Allreduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&ended, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i > 0) times.push_back((last - first) * 1e6);
  }
  if (!redistribution.is_right()) {
    std::fprintf(stderr, "rank %d has not what it must have\n", rank_);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return bench::summarise(std::move(times)).median;
}

struct Answer {
  std::string_view what;
  double (*measure)(int size);
};
constexpr Answer kAnswers[] = {
    {"round-trip", round_trip_us},
    {"transfer", transfer_us},
    {"both-ways", both_ways_us},
    {"allreduce", allreduce_us},
    {"redistribution", redistribution_us},
    {"put", one_sided_us<put>},
    {"get", one_sided_us<get>},
    {"rate", rate_per_s},
    {"transfers-per-s", transfers_per_s},
    {"puts-per-s", one_sided_per_s<put>},
    {"gets-per-s", one_sided_per_s<get>},
};

const Answer *find(std::string_view what) {
  const auto *answer = std::find_if(std::begin(kAnswers), std::end(kAnswers), [&](auto &a) { return a.what == what; });
  return answer == std::end(kAnswers) ? nullptr : answer;
}

/// Tells MPICH's launcher, in the words of PMI, that this process ends well without MPI_Finalize.
void leave_launcher() {
  const char *name = std::getenv("PMI_FD");
  if (!name) return;
  constexpr std::string_view kFinalize = "cmd=finalize\n";
  const int launcher = std::atoi(name);
  char answer[64];
  if (write(launcher, kFinalize.data(), kFinalize.size()) > 0 && read(launcher, answer, sizeof answer) > 0) return;
  std::perror("nessie-bench-mpi: the launcher does not answer");
}

/// Waits, asleep, for a word from the program that CommSplitter parts it from.
void sleep_beside_another() {
  constexpr std::chrono::milliseconds kNap(10);
  int called = 0;
  MPI_Pcontrol(0);
  while (MPI_Iprobe(0, 0, MPI_COMM_WORLD, &called, MPI_STATUS_IGNORE) == MPI_SUCCESS && !called)
    std::this_thread::sleep_for(kNap);
  MPI_Recv(nullptr, 0, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Pcontrol(1);
}

/// Natively there are no others than ours.
void wake_the_others() {
  int all = processes_;
  MPI_Pcontrol(0);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  for (int other = processes_; rank_ == 0 && other < all; ++other)
    MPI_Send(nullptr, 0, MPI_CHAR, other, 0, MPI_COMM_WORLD);
  MPI_Pcontrol(1);
}

/// Over UCX's TCP, MPICH 4.0 waits for ever in MPI_Finalize when there are more than two processes: they just end.
void leave() {
  meet();
  wake_the_others();
  std::fflush(stdout);
  if (std::getenv("MPIR_CVAR_NOLOCAL") && processes_ > 2) {
    leave_launcher();
    _exit(0);
  }
  MPI_Finalize();
}

/// The rank, before MPI_Init tells it: whoever is to be bound is bound before MPI takes memory.
int early_rank() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char *value = std::getenv(name)) return std::atoi(value);
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1 && std::string_view(argv[1]) == "sleep") {
    MPI_Init(&argc, &argv);
    sleep_beside_another();
    return MPI_Finalize();
  }
  bench::Pin pin(early_rank());
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &processes_);
  crowded_ = processes_ > static_cast<int>(bench::usable_cores().size());
  in_pairs_ = argc > 1 && std::string_view(argv[1]) == "pairs";
  const Answer *answer = nullptr;
  for (int i = 2; i < argc; ++i) {
    int bytes = std::atoi(argv[i]);
    if (bytes <= 0) answer = find(argv[i]);
    if (!answer || (in_pairs_ && processes_ % 2 != 0) || processes_ < 2) {
      std::fprintf(stderr,
                   "usage: mpiexec -n PROCESSES nessie-bench-mpi pairs|clients WHAT SIZE... [WHAT SIZE...]...\n");
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (bytes <= 0) continue;
    double figure = answer->measure(bytes);
    if (rank_ == 0) std::printf("%s %d %.9f\n", answer->what.data(), bytes, figure);
  }
  leave();
  return 0;
}
