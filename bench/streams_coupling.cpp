// SPDX-License-Identifier: BSD-3-Clause
// streams-coupling: an array that one program has in blocks, in another program's slabs: from when the first of 8
// writers begins to put until the last of 4 readers has its part. Beside the same redistribution within one MPI job,
// which neither program could do without the other, and beside a file.
#include "comparison.hpp"
#include "page_aligned.hpp"
#include "staging_team.hpp"
#include "streams_team.hpp"
#include "timing.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;
using nessie::streams::Box;
using nessie::streams::Memory;
using nessie::streams::StepState;

constexpr int kWriters = 8, kReaders = 4, kAll = kWriters + kReaders;
constexpr std::int64_t kEdge = 256, kSmallEdge = 16;
constexpr int kWarmUp = 2;  ///< steps: memory is mapped, and used for the first time
constexpr auto kLimit = std::chrono::seconds(120);

/// What a cube's side is, and what of it each writer and each reader has.
struct Cube {
  std::int64_t edge;
  std::uint64_t size_bytes() const { return static_cast<std::uint64_t>(edge * edge * edge) * sizeof(double); }
  Box block(int writer) const {
    const auto half = edge / 2;
    return {{writer / 4 * half, writer / 2 % 2 * half, writer % 2 * half}, {half, half, half}};
  }
  Box slab(int reader) const { return {{reader * edge / kReaders, 0, 0}, {edge / kReaders, edge, edge}}; }
};
std::size_t elements_of(const Box &box) { return static_cast<std::size_t>(box.count[0] * box.count[1] * box.count[2]); }

/// Of the first element of a row in a step: tells rows, blocks and steps apart.
double first_of_row(std::uint64_t step, std::int64_t z, std::int64_t y, std::int64_t x) {
  return static_cast<double>(step) * 1e9 + static_cast<double>(z) * 1e6 + static_cast<double>(y) * 1e3 +
         static_cast<double>(x);
}

/// The beginning of each of a block's rows gets its value.
void mark(double *values, const Box &box, std::uint64_t step) {
  for (std::int64_t z = 0; z < box.count[0]; ++z)
    for (std::int64_t y = 0; y < box.count[1]; ++y)
      values[(z * box.count[1] + y) * box.count[2]] =
          first_of_row(step, box.start[0] + z, box.start[1] + y, box.start[2]);
}

/// Whether in a slab all rows of all blocks have the values of their step.
bool is_marked(const double *values, const Box &slab, std::uint64_t step) {
  for (std::int64_t z = 0; z < slab.count[0]; ++z)
    for (std::int64_t y = 0; y < slab.count[1]; ++y)
      for (const auto x : {std::int64_t{0}, slab.count[2] / 2})
        if (values[(z * slab.count[1] + y) * slab.count[2] + x] !=
            first_of_row(step, slab.start[0] + z, slab.start[1] + y, slab.start[2] + x))
          return false;
  return true;
}

/// Where processes meet that must not use a core while they wait.
class MeetingPlace {
 public:
  explicit MeetingPlace(unsigned members) {
    void *memory = mmap(nullptr, sizeof(pthread_barrier_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    barrier_ = new (memory) pthread_barrier_t;
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier_, &shared, members);
    pthread_barrierattr_destroy(&shared);
  }
  /// Whoever waits still was ended.
  ~MeetingPlace() {
    if (barrier_) munmap(barrier_, sizeof(pthread_barrier_t));
  }
  MeetingPlace(const MeetingPlace &) = delete;
  bool valid() const { return barrier_ != nullptr; }
  void meet() { pthread_barrier_wait(barrier_); }

 private:
  pthread_barrier_t *barrier_ = nullptr;
};

/// How both sides use memory.
struct Manner {
  const char *mode;
  bool near;  ///< written into spans, and read into memory that servers map; otherwise put, and read into the program's
};
constexpr Manner kManners[] = {{"put", false}, {"span", true}};

struct Coupling {
  std::string at;
  Cube cube;
  int steps;
  Manner manner;
  MeetingPlace *meeting;
};

/// Computes, puts, and leaves when it began to put, resp. when it had computed.
Status write_blocks(const Coupling &c, int rank, Lane &lane) {
  auto writer = open_writer(c.at, rank, kWriters, 1);
  if (!writer.ok()) return writer.error();
  const auto edge = c.cube.edge;
  if (auto status = writer->define({"x", nessie::streams::Type::kDouble, {edge, edge, edge}, {}, false}); !status.ok())
    return status;
  const auto block = c.cube.block(rank);
  PageAligned<double> own(elements_of(block), rank);
  for (int step = 0; step < c.steps; ++step) {
    const auto put = [&]() -> Status {
      const auto number = writer->step();
      if (c.manner.near) {
        const auto memory = writer->span("x", block);
        if (!memory.ok()) return memory.error();
        std::ranges::copy(own, static_cast<double *>(*memory));
        mark(static_cast<double *>(*memory), block, number);
      } else {
        mark(own.data(), block, number);
      }
      c.meeting->meet();
      lane.leave("begun", number, now_s());
      return c.manner.near ? Status() : writer->put("x", block, own.data());
    };
    if (auto status = write_step(*writer, put); !status.ok()) return status;
    c.meeting->meet();
  }
  return writer->close(soon());
}

/// Leaves when it had its slab of each step.
Status read_slabs(const Coupling &c, int rank, Lane &lane) {
  auto reader = open_reader(c.at, rank, kReaders);
  if (!reader.ok()) return reader.error();
  const auto slab = c.cube.slab(rank);
  const auto bytes = elements_of(slab) * sizeof(double);
  PageAligned<double> own(c.manner.near ? 0 : elements_of(slab), 1);
  auto memory = Memory::allocate(c.manner.near ? bytes : 1);
  if (!memory.ok()) return memory.error();
  auto *values = c.manner.near ? reinterpret_cast<double *>(memory->bytes().data()) : own.data();
  for (int step = 0; step < c.steps; ++step) {
    c.meeting->meet();
    const auto begun = reader->begin_step(soon());
    if (!begun.ok()) return begun.error();
    if (*begun != StepState::kOk) return Error{Code::kPeerLost, "a step of the workload did not come"};
    if (auto status = reader->get("x", slab, values, bytes, soon()); !status.ok()) return status;
    lane.leave("filled", reader->step(), now_s());
    if (!is_marked(values, slab, reader->step()))
      return Error{Code::kBadMessage, "a slab has not the values of its step"};
    if (auto status = reader->end_step(); !status.ok()) return status;
    c.meeting->meet();
  }
  return reader->close(soon());
}

/// Of all steps but the first ones, from when the first member began to when the last one was done: in the middle.
double typical_us(Board &board, int steps) {
  std::vector<double> times;
  for (int step = kWarmUp; step < steps; ++step) {
    double begun_s = 1e300, filled_s = 0;
    for (int member = 0; member < kAll; ++member) {
      const double at_s = board.lane(member).figures()[static_cast<std::size_t>(step)].value;
      (member < kWriters ? begun_s = std::min(begun_s, at_s) : filled_s = std::max(filled_s, at_s));
    }
    times.push_back((filled_s - begun_s) * 1e6);
  }
  return summarise(std::move(times)).median;
}

class StreamsCoupling final : public Comparison {
 public:
  StreamsCoupling(const Options &options, Report &report)
      : Comparison(options, report, {"bandwidth_MBps", "MB/s"}),
        cube_{options.once ? kSmallEdge : kEdge},
        steps_(kWarmUp + (options.once    ? 2
                          : options.quick ? 8
                                          : 20)),
        openmpi_(those_here({Library::kOpenMpi}, {network_})) {}

 private:
  Status measure() override;
  void add_ratios() override;
  Result<double> coupled(const Manner &manner) const;
  Result<double> through_file() const;
  void add_rate(const Series &series, double us) { add(series, megabytes_per_s(us, cube_.size_bytes())); }
  Series file() const { return series("pnetcdf", "file", "write-read", cube_.size_bytes()); }

  const Cube cube_;
  const int steps_;
  const std::vector<Rival> openmpi_;
  const Scratch files_{true};
};

Result<double> StreamsCoupling::coupled(const Manner &manner) const {
  const auto server = StreamsServer::start(options_.transport, {"streams.memory=1G", "streams.keep=0"});
  if (!server) return server.error();
  MeetingPlace meeting(kAll);
  if (!meeting.valid()) return Error{Code::kNoMemory, "no shared memory for the workload's processes"};
  const Coupling c{(*server)->at(), cube_, steps_, manner, &meeting};
  const auto board = run_streams_crew(kAll, [&](Board &shared, int member) -> Status {
    auto &lane = shared.lane(member);
    return member < kWriters ? write_blocks(c, member, lane) : read_slabs(c, member - kWriters, lane);
  });
  if (!board) return board.error();
  return typical_us(**board, steps_);
}

/// As coupling.c does, on the MPI-IO layer that is faster with files in memory.
Result<double> StreamsCoupling::through_file() const {
  const int steps = options_.once ? 1 : 3;
  double best_us = 0;
  for (const auto *mpi_io : kMpiIo) {
    files_.clear();
    std::vector<std::string> program{sibling("nessie-bench-coupling"), "--n", std::to_string(cube_.edge / 2)};
    program.insert(program.end(), {"--steps", std::to_string(steps), "--prefix", (files_.path() / "out").string()});
    auto run = run_program(mpiexec(kWriters, program, {"--mca", "io", mpi_io}), kLimit);
    if (!run) return run.error();
    const auto figures = native_figures({*std::move(run), files_.last_change()});
    if (!figures) return figures.error();
    const double us = figures->at("perceived_s") / steps * 1e6;
    if (best_us == 0 || us < best_us) best_us = us;
  }
  return best_us;
}

Status StreamsCoupling::measure() {
  const auto size = cube_.size_bytes();
  for (const auto &manner : kManners) {
    const auto us = coupled(manner);
    if (!us) return us.error();
    add_rate(ours(manner.mode, size), *us);
  }
  auto status = ask(openmpi_, {kWriters / 2, false}, {{"redistribution", {size}, "alltoallw", megabytes_per_s}});
  if (!status.ok()) return status;
  const auto us = through_file();
  if (!us) return us.error();
  add_rate(file(), *us);
  return {};
}

void StreamsCoupling::add_ratios() {
  const auto size = cube_.size_bytes();
  for (const auto &manner : kManners) {
    for (const auto &rival : openmpi_) compare(ours(manner.mode, size), theirs(rival, "alltoallw", size, kWriters / 2));
    compare(ours(manner.mode, size), file());
  }
}

}  // namespace

Status streams_coupling(const Options &options, Report &report) {
  if (auto status = check_forked(options.transport); !status.ok()) return status;
  return StreamsCoupling(options, report).run(options.repetitions(5, 2), "an array from blocks to slabs");
}

}  // namespace bench
