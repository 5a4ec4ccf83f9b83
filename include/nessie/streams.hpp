// SPDX-License-Identifier: BSD-3-Clause
// Streams: a running program's arrays in other programs, step by step, none lost. And the shared space, in which
// programs leave arrays for each other under a name and a version. src/services/streams/README.md says what is
// promised, docs/streams.md how it is used. Library: nessie_streams (Nessie::streams, pkg-config nessie-streams).
//
// A stream is a name; N writers, the ranks 0 to N-1 of one program or of none in particular, and groups of readers, of
// as many ranks as each likes. A step is what all N writers have put between begin_step() and end_step(): readers see
// it whole, or never. Arrays are described by their global shapes; each writer puts boxes of them, each reader gets
// whatever boxes he wants.
//
//   A writer:  auto out = Writer::open("flow", {.rank = rank, .size = size}, Deadline::in(30s));
//              out->define({.name = "T", .type = Type::kDouble, .shape = {nz, ny, nx}});
//              out->begin_step(Deadline::in(60s));   out->put("T", box, data);   out->end_step(Deadline::in(60s));
//   A reader:  auto in = Reader::open("flow", {}, Deadline::in(30s));
//              while (*in->begin_step(Deadline::in(60s)) == StepState::kOk) { in->get("T", box, data, …);
//              in->end_step(); }
//
// The servers pull what is put, when they choose, and push what is got: DART (CUG 2007); Nessie (CUG 2012), sections 1
// and 2, for programs coupled through a shared space.
//
// Threads: different objects may be used by different threads at once, one object by one thread at a time.
// Deadlines: every function that waits has one, and ends by then with kTimedOut, or as it says. Errors of all that talk
// to servers, besides what each says: kPeerLost: a server died, or was started anew without what it had in memory, and
// what is lost is said. kRefused: the servers have another credential. kCancelled: the process is ending.
#pragma once

#include <nessie/clock.hpp>
#include <nessie/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::streams {

/// Of elements, numbered as netCDF numbers its external types. kChar is text, in bytes.
enum class Type : int {
  kInt8 = 1,
  kChar = 2,
  kInt16 = 3,
  kInt32 = 4,
  kFloat = 5,
  kDouble = 6,
  kUint8 = 7,
  kUint16 = 8,
  kUint32 = 9,
  kInt64 = 10,
  kUint64 = 11,
};
/// 0: it is none of these.
std::size_t size_of(Type type);
const char *name_of(Type type);  ///< "double"

inline constexpr std::size_t kMostDimensions = 16;
using Extents = std::vector<std::int64_t>;

/// Elements start[d] to start[d] + count[d] - 1 in each dimension d. Of a scalar, both are empty.
struct Box {
  Extents start, count;
  bool operator==(const Box &) const = default;
};
/// All of an array of that shape.
Box whole(const Extents &shape);

/// How the elements of a box lie in memory, one after the other: the last dimension fastest, or the first.
enum class Order { kC, kFortran };

struct Variable {
  std::string name;  ///< 1 to 256 bytes of printable UTF-8, without '/' at its ends
  Type type = Type::kDouble;
  Extents shape;                ///< global; empty: a scalar. At most kMostDimensions, each 0 to 2^62
  std::vector<std::byte> fill;  ///< one element, for elements that nobody has put; empty: there is none
  /// Put in one step, its value holds from then on, and for readers who come later, until it is put again.
  bool is_constant = false;
  bool operator==(const Variable &) const = default;
};

struct Attribute {
  std::string variable;  ///< empty: of the stream
  std::string name;
  Type type = Type::kChar;
  std::vector<std::byte> value;
  bool operator==(const Attribute &) const = default;
};

/// What a step outlives once end_step() has returned. kMemory: its writers, and readers. kLogged: the servers, too: it
/// is on their disk, and a server that is started anew has it.
enum class Durability { kMemory, kLogged };

/// How begin_step() ended.
enum class StepState {
  kOk,
  kNotYet,  ///< not by the deadline; nothing has changed
  kEnd      ///< all writers have closed, and all steps were seen
};

struct WriterOptions {
  int rank = 0, size = 1;  ///< of the group of writers
  /// Where the servers are, as nssi::find() takes it. Empty: as the setting `streams.at` says, or those of this user on
  /// this node.
  std::string at = {};
  std::optional<Durability> durability = {};  ///< the setting `streams.durability` otherwise; all ranks alike
  /// Goes on after the last complete step of the stream of this name, instead of beginning a new one; also with another
  /// number of writers. If there is none, begins it.
  bool append = false;
  /// So many groups of readers that see every step must be there before the first begin_step() is kOk. All ranks alike.
  int await_readers = 0;
};

class WriterState;

/// One rank of those who write a stream. Moves. Dropped without close(), it is as if its process had been killed.
class Writer {
 public:
  /// Returns when the servers know this rank; it does not wait for the others. kTimedOut, kNotFound: no server was
  /// there. kExists: another group of that name is writing, or this rank is there already. kInvalidArgument: a name
  /// that cannot be one, a rank outside the size, a size or option that differs from what other ranks of this group
  /// have said.
  static Result<Writer> open(std::string_view name, const WriterOptions &options, Deadline deadline);
  Writer(Writer &&) noexcept;
  Writer &operator=(Writer &&) noexcept;
  ~Writer();

  /// Describes an array; again, with another shape, at the beginning of any step: it holds from the step that is open,
  /// or the next one, on. All ranks that put some of it describe it alike. kInvalidArgument: a name, type, shape or
  /// fill value that cannot be; another type or number of dimensions than before; another shape after it was put in
  /// this step. That ranks differ is told by end_step().
  Status define(const Variable &variable);
  /// It holds from this step on; any rank may say it, and all who say one say the same. kInvalidArgument as define();
  /// kNotFound: no variable of that name was defined here.
  Status set_attribute(const Attribute &attribute);

  /// Begins the next step: waits until the servers have room for it, so before there are data. kNotYet: not by the
  /// deadline, and nobody has to be blamed: `await_readers` are not there yet. kBusy: no room by the deadline; the
  /// message names who holds it, and the log's disk if that is full. kInvalidArgument: a step is open. kPeerLost, once,
  /// of several servers: that of this rank was started anew without the steps that it had in memory, which the message
  /// names; readers are told, too; called again, goes on.
  Result<StepState> begin_step(Deadline deadline);
  /// The number of the step that is open, or of the next one; the first is 0.
  std::uint64_t step() const;

  /// Puts a box: copies it, so `data` is free on return. Moves on its way to the servers while the program goes on.
  /// kInvalidArgument: no step is open; the box has not the variable's dimensions. kNotFound: no variable of that name.
  /// kOutOfRange: the box is not inside the shape, or it overlaps another one of this rank's in this step. Nothing was
  /// put then. kNoMemory.
  Status put(std::string_view variable, const Box &box, const void *data, Order order = Order::kC);
  /// Memory to compute the box into, in C order, aligned to 64 bytes, until end_step(); what it holds is unspecified.
  /// Servers on this node keep it where it is. Errors as put(). Null for a box of no elements.
  Result<void *> span(std::string_view variable, const Box &box);
  /// As put(), but `data`, in C order, is borrowed until end_step() has returned ok, or the writer is dropped: a server
  /// of another node pulls it from where it is; for one of this node it is copied at once, as that is cheaper than a
  /// copy by the server.
  Status put_lent(std::string_view variable, const Box &box, const void *data);

  /// Ends the step: ok when the servers have all that this rank has put, which outlives what Durability says. Readers
  /// see the step when all ranks have ended it. kInvalidArgument: no step is open; this rank's variables differ from
  /// those of others in type or shape; a box overlaps another rank's; the message says which. Nothing of this rank is
  /// in the step then, and the step is open and empty: it can be put again. kTimedOut: the servers may have it: call
  /// it again. kBusy: of a stream that is logged, the servers' log has had no room by the deadline, as its disk is
  /// full; the message says where to make some; call it again then, nothing is lost. Where servers are several, an
  /// overlap of boxes at two of them is found when the step is complete, and told by the next call.
  Status end_step(Deadline deadline);
  /// Says that this rank writes no more; the stream ends when all have said so. Returns when the servers know it, which
  /// have all by then. An open step is dropped, and never seen. kTimedOut: it can be called again.
  Status close(Deadline deadline);

 private:
  explicit Writer(std::unique_ptr<WriterState> state);
  std::unique_ptr<WriterState> state_;
};

/// Which steps readers see.
enum class Reading {
  kEvery,  ///< all from the first on; a step is held for them until all ranks of the group have ended it
  kView    ///< the newest that there is each time; nothing is held, and they hear how many they have missed
};

/// Where readers begin.
enum class From {
  kOldest,  ///< of the steps that the servers have
  kLatest,  ///< the last complete one; the next if there is none
  kNext,    ///< the first that is complete after now
  kNumber   ///< ReaderOptions::first
};

struct ReaderOptions {
  int rank = 0, size = 1;  ///< of the group of readers
  std::string at = {};     ///< as WriterOptions::at
  Reading reading = Reading::kEvery;
  From from = From::kOldest;
  std::uint64_t first = 0;  ///< with From::kNumber; if it is gone, the oldest after it
  /// Names the group, on all its ranks. It resumes after the last step that all its ranks had ended, whoever comes by
  /// that name, also with another size; and steps are held for it while nobody is there, until
  /// Reader::unsubscribe(). Without a name all ranks of a group say the same `group`.
  std::string subscription = {};
  /// Tells groups without a name apart: any number that its ranks share. Groups of one rank need none.
  std::uint64_t group = 0;
};

/// What one box has.
struct Figures {
  double minimum = 0, maximum = 0, mean = 0;
  std::uint64_t elements = 0;  ///< that count: neither NaN nor fill values
};

/// What a step is of the files of an unmodified program (nessie run --stream).
struct Source {
  enum class Kind {
    kRecord = 1,       ///< one of a file that has record variables
    kFile = 2,         ///< all of a file that has none
    kNumberedFile = 3  ///< one of several files that are numbered
  };
  static constexpr std::int64_t kNoRecord = -1;
  Kind kind = Kind::kRecord;
  std::int64_t record = kNoRecord;  ///< of kRecord; of a step that has nothing but fixed variables: kNoRecord
  /// Of the file, in the format that it has of netCDF's classic ones, as it stood when the step was complete: its
  /// dimensions, variables and attributes, in their order. The number of records in it says nothing. The same one as
  /// long as nothing of it changes.
  std::shared_ptr<const std::vector<std::byte>> header;
};

class ReaderState;

/// One rank of a group that reads a stream. Moves. Dropped, it holds nothing any more; a named subscription resumes.
class Reader {
 public:
  /// Waits until there is a stream of that name. kTimedOut: there is none by the deadline. kExists: this rank of the
  /// group is there already. kInvalidArgument: a rank outside the size; options that differ from those of the group's
  /// other ranks; a group of several ranks without `subscription` or `group`.
  static Result<Reader> open(std::string_view name, const ReaderOptions &options, Deadline deadline);
  Reader(Reader &&) noexcept;
  Reader &operator=(Reader &&) noexcept;
  ~Reader();

  /// Waits for the next step. kEnd: there will be none. kPeerLost: a writer died, and all steps that were complete have
  /// been seen; called again, waits for writers who append. kNotFound, once: the group was silent for
  /// `streams.reader_timeout`, or what it held was lost with a server, and which steps are gone; called again, goes on
  /// with the next one. kInvalidArgument: a step is open.
  Result<StepState> begin_step(Deadline deadline);
  /// When begin_step() has given kEnd: what there is to say of it, for people; empty, if its writers have closed it. Of
  /// a program's file: it was made anew.
  const std::string &why_ended() const;
  /// The number of the step that is open; otherwise of the last one, or 0.
  std::uint64_t step() const;
  /// How many steps were not seen between this one and the one before.
  std::uint64_t missed() const;
  /// The step in which a variable of the open one was put: of a constant, an earlier one perhaps. 0: there is none.
  std::uint64_t put_in(std::string_view variable) const;
  /// Of this stream, and no other one that has had its name, or will.
  std::uint64_t identity() const;
  /// What there is in the open step, and constants of earlier ones; with the shapes of this step. Lives until the next
  /// begin_step().
  const std::vector<Variable> &variables() const;
  const std::vector<Attribute> &attributes() const;
  /// Null: there is none.
  const Variable *find(std::string_view variable) const;
  /// Null: writers have put the open step. Lives until the next begin_step().
  const Source *source() const;

  /// Gets a box into `destination`, which has room for it (`size_bytes`). Elements that nobody has put have the
  /// variable's fill value. kNotFound: no such variable in this step; some elements were never put, and there is no
  /// fill value; or the step is gone (of a view, or as a server died). kOutOfRange: the box is not inside the shape, or
  /// `size_bytes` is too small. kInvalidArgument: no step is open; dimensions that are not the variable's. With an
  /// error other than these, what `destination` holds is unspecified; with these it is untouched, but where the step
  /// went meanwhile.
  Status get(std::string_view variable, const Box &box, void *destination, std::size_t size_bytes, Deadline deadline,
             Order order = Order::kC);
  /// Minimum, maximum and mean of a box, computed at the servers; errors as get(), and kUnsupported: it is text.
  Result<Figures> figures(std::string_view variable, const Box &box, Deadline deadline);
  /// The step is not needed any more. Does not wait.
  Status end_step();
  /// Leaves: holds nothing any more; of a named subscription, all steps from the first that it has not ended on.
  Status close(Deadline deadline);
  /// Leaves, and lets go of the subscription: nothing is held for its name any more.
  Status unsubscribe(Deadline deadline);

 private:
  explicit Reader(std::unique_ptr<ReaderState> state);
  std::unique_ptr<ReaderState> state_;
};

/// Memory that servers on this node can reach at once: what is got into it is copied once, and quickly. Moves; any
/// thread.
class Memory {
 public:
  /// Zeroed, aligned to pages. kNoMemory.
  static Result<Memory> allocate(std::size_t size_bytes);
  Memory(Memory &&) noexcept;
  Memory &operator=(Memory &&) noexcept;
  ~Memory();
  std::span<std::byte> bytes() const;

 private:
  struct State;
  explicit Memory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class SpaceState;

/// The shared space: arrays under names, with versions, each element of a version written once, by whomever. What is
/// put goes to servers of this node in turn, and counts for their memory, as steps do: what does not fit into it goes
/// to their logs. It does not outlive them: what a server had is lost with it, and what others had is still there.
class Space {
 public:
  /// Finds the servers. `at` as WriterOptions::at.
  static Result<Space> open(std::string_view at, Deadline deadline);
  Space(Space &&) noexcept;
  Space &operator=(Space &&) noexcept;
  ~Space();

  /// ok: the servers have it, and whoever waits for it is told. Of each name the last `streams.space_versions` versions
  /// stay. kExists: some of these elements are there already in this version. kInvalidArgument: another type or number
  /// of dimensions than the name has had; a negative start or count. kNotFound: the version is older than those that
  /// stay. kBusy: no room by the deadline, nor in the log. Nothing was put then.
  Status put(std::string_view name, std::uint64_t version, Type type, const Box &box, const void *data,
             Deadline deadline);
  /// Waits until every element of the box was put in that version. kTimedOut: not by the deadline; the message says how
  /// many were. kNotFound: the version is gone. kPeerLost: some of the box was put, and is lost with its server; or the
  /// server that keeps account of the name was started anew, which is told once. It may be put again. kInvalidArgument:
  /// another type or number of dimensions. kOutOfRange: `size_bytes` is too small.
  Status get(std::string_view name, std::uint64_t version, Type type, const Box &box, void *destination,
             std::size_t size_bytes, Deadline deadline);
  /// The newest version of which anything was put. kNotFound: there is none.
  Result<std::uint64_t> newest(std::string_view name, Deadline deadline);

 private:
  explicit Space(std::unique_ptr<SpaceState> state);
  std::unique_ptr<SpaceState> state_;
};

/// A group of readers, as the servers see it.
struct ReaderInfo {
  std::string subscription;  ///< empty: it has no name
  Reading reading = Reading::kEvery;
  int size = 0, connected = 0;  ///< ranks
  std::uint64_t ended = 0;      ///< steps from the stream's first on that it needs no more
  std::uint64_t lag = 0;        ///< complete steps that it has not ended
  std::uint64_t missed = 0;
};

/// What one of the servers has of a stream.
struct StreamShare {
  int server = 0;
  std::uint64_t memory_bytes = 0, log_bytes = 0;
};

/// A stream, as the servers see it.
struct StreamInfo {
  enum class State { kOpen, kEnded, kInterrupted };
  std::string name;
  std::string at;              ///< where it is, as ReaderOptions::at
  State state = State::kOpen;  ///< kInterrupted: a writer died
  std::string why;             ///< of an interrupted one, and of a file that went native, or was made anew
  bool is_file = false;        ///< a staged file of an unmodified program's
  int writers = 0, connected = 0;
  Durability durability = Durability::kMemory;
  std::uint64_t steps = 0;                        ///< that were complete
  std::uint64_t oldest = 0;                       ///< of those that the servers have; `steps`, if they have none
  std::uint64_t memory_bytes = 0, log_bytes = 0;  ///< at all servers
  std::vector<StreamShare> servers;               ///< each that has some of it; one that has not answered is missing
  std::vector<Variable> variables;                ///< as of the last complete step
  std::vector<Attribute> attributes;
  std::vector<ReaderInfo> readers;
};

/// All streams of the servers; those of all places of this user on this node, if `at` is empty. kTimedOut, kNotFound:
/// no server was there.
Result<std::vector<StreamInfo>> list(std::string_view at, Deadline deadline);

}  // namespace nessie::streams
