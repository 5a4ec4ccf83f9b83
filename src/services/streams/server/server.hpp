// SPDX-License-Identifier: BSD-3-Clause
// The streams service. README.md in the folder above says what it promises.
//
// Design notes. Every server has shelves, with what writers have put there. The first one also has accounts: of each
// stream who writes, who reads, and which steps are complete. What the others have to tell it, it is told by
// report_step(); what it has to tell them, by keep(). With one server both are calls of functions.
#pragma once

#include <nessie/provider.hpp>
#include <nssi/director.hpp>
#include <service/log/log.hpp>
#include <service/wait_queue.hpp>
#include <service/worker.hpp>
#include <services/streams/server/account.hpp>
#include <services/streams/server/files.hpp>
#include <services/streams/server/journal.hpp>
#include <services/streams/server/shelf.hpp>
#include <services/streams/server/space_account.hpp>
#include <services/streams/server/space_shelf.hpp>
#include <services/streams/server/store.hpp>
#include <services/streams/sink_rules.hpp>
#include <streams_rpc.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace streams {

using nessie::service::WaitQueue;
using nssi::Request;

struct ServerOptions {
  std::uint32_t index = 0, servers = 1;
  std::uint64_t memory_bytes = std::uint64_t{512} << 20;
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;
  std::uint64_t bandwidth = 0;  ///< bytes a second; 0: no limit
  std::string log_path;         ///< empty: no log
  std::uint64_t log_bytes = std::uint64_t{16} << 30;
  std::chrono::milliseconds reader_timeout{30'000};
  std::uint64_t space_versions = 4;
  std::vector<SinkRule> sinks;          ///< for which streams that match are held from their first steps on
  std::string first;                    ///< where the first server is, for the others
  std::string files;                    ///< which files of a run are streams, as FileSteps takes it; empty: none
  std::chrono::milliseconds linger{0};  ///< for who reads every step of what has ended, when the server is to end
  std::string files_folder;             ///< below which their names begin
  nessie::Config staging = {};          ///< where the run's staging servers are
};

class Server final : public nessie::Provider, STREAMS::CURRENT::Server {
 public:
  static nessie::ProviderType type();
  static Result<std::unique_ptr<nessie::Provider>> start(const nessie::ProviderContext &context,
                                                         const ServerOptions &options);
  std::string describe() const override;
  void measure(const Tell &tell) const override;
  void peer_lost(nnti::PeerId peer) override;
  void quiesce() override;
  void stop() override;

 private:
  /// A stream, as this server knows it.
  struct Stream {
    Stream(nssi::Runtime &runtime, Key key) : shelf(key), changed(runtime), part_came(runtime), readers_came(runtime) {}
    Shelf shelf;
    std::unique_ptr<Account> account;     ///< at the first server
    WaitQueue changed;                    ///< readers wait for a step, or the end
    WaitQueue part_came, readers_came;    ///< for which writers wait
    std::uint64_t noted_group = 0;        ///< of writers, in the log
    Needed noted;                         ///< what has to stay, as the log says it,
    std::string noted_why;                ///< and why it was interrupted;
    Needed told;                          ///< what has to stay, as the other servers know it
    std::string holder;                   ///< who holds the oldest step, as the first server said
    std::string fault;                    ///< why its writers cannot go on
    std::uint64_t made = 0;               ///< in which order
    std::set<std::string> noted_readers;  ///< named subscriptions that are in the log
    std::set<std::uint64_t> reporting;    ///< steps of which the first server is being told
    bool is_file = false;
    Key file_writer = 0;  ///< stands for its program
    struct FileData {
      FileSource source;
      Variables variables;
      std::uint32_t headers = 0;
    };
    std::map<std::uint64_t, FileData> file_steps;  ///< those that may be read
    std::uint32_t headers = 0;                     ///< that its files have had
  };
  using StreamPtr = std::shared_ptr<Stream>;

  Server(const nessie::ProviderContext &context, const ServerOptions &options);
  void recover();
  void read_log();
  Status restore(Recovered found);
  void restore(Stream &stream, LoggedReaders readers);
  Result<Lsn> note(Stream &stream);
  Result<Lsn> note_writer(Stream &stream, Key writer);
  Status note_synced(Request &, const std::function<Result<Lsn>()> &note);
  void forget(const StreamPtr &stream);
  void forget_replaced();
  Result<Lsn> note_readers(const Stream &stream, const Account::Group &group, bool is_gone = false);
  Status note_subscription(Request &, Stream &stream, Key reader);
  bool is_first() const { return options_.index == 0; }

  // --- servers (group.cpp) ------------------------------------------------------------------------------------------
  nssi::Outcome<HelloResult> hello(Request &, const HelloArgs &) override;
  nssi::Outcome<HelloResult> join(Request &, const JoinArgs &) override;
  nssi::Outcome<void> report_step(Request &, const StepReport &) override;
  nssi::Outcome<void> keep(Request &, const KeptArgs &) override;
  HelloResult myself() const;
  void join_first();
  Status join(nnti::PeerId first);
  Status report_all(nnti::PeerId first);
  void tell_others(const Stream &stream, bool is_gone = false);
  void tell(nnti::PeerId peer, const KeptArgs &args);
  KeptArgs kept_of(const Stream &stream) const;
  bool is_due(const Stream &stream, std::uint64_t number) const;
  void report(const StreamPtr &stream, std::uint64_t step);
  StepReport report_of(Stream &stream, std::uint64_t step) const;
  void report_to_first(const StreamPtr &stream, std::uint64_t step);
  Status report_to(nnti::PeerId first, const StreamPtr &stream, std::uint64_t step);
  void drop_unneeded(Stream &stream, const Needed &needed);

  // --- writers (writers.cpp) ----------------------------------------------------------------------------------------
  nssi::Outcome<WriterResult> open_writer(Request &, const WriterArgs &) override;
  nssi::Outcome<RoomResult> await_room(Request &, const RoomArgs &) override;
  nssi::Outcome<void> close_writer(Request &, const CloseArgs &) override;
  Result<StreamPtr> stream_to_write(const WriterArgs &args);
  Result<StreamPtr> known_stream(const WriterArgs &args);
  std::uint64_t lose_steps(Stream &stream, const WriterArgs &args);
  StreamPtr make_stream(const std::string &name, Lasting lasting);
  void replace(const StreamPtr &former, const StreamPtr &with);
  void subscribe_sinks(const Stream &stream);
  bool may_begin(const Stream &stream, const Seat &seat, std::uint64_t bytes) const;
  bool reserve(Stream &stream, Seat &seat, std::uint64_t bytes);
  std::vector<std::uint64_t> take_released(Seat &seat);
  Error no_room(const Stream &stream) const;

  // --- writes (write.cpp) -------------------------------------------------------------------------------------------
  nssi::Outcome<WriteResult> write(Request &, const WriteArgs &) override;
  Result<std::shared_ptr<Chunk>> bring(Request &, const WriteArgs &, Stream &stream, Seat &seat, bool &keeps);
  Status check_write(const Request &, const WriteArgs &, const Seat &seat) const;
  Status take_definitions(Seat &seat, const WriteArgs &args) const;
  Result<std::shared_ptr<Chunk>> log_step(Request &, const StreamPtr &stream, Key writer);
  Result<LoggedWrite> describe_step(const Stream &stream, const Seat &seat) const;
  Status await_log(Request &, const std::function<Status()> &work);
  Error log_is_full() const;
  Result<WriteResult> end_step(Request &, const StreamPtr &stream, const WriteArgs &args);

  // --- readers (readers.cpp, get.cpp) -------------------------------------------------------------------------------
  nssi::Outcome<ReaderResult> open_reader(Request &, const ReaderArgs &) override;
  nssi::Outcome<NextResult> next(Request &, const NextArgs &) override;
  nssi::Outcome<void> close_reader(Request &, const CloseArgs &) override;
  nssi::Outcome<void> alive(Request &, const Key &stream, const Key &reader) override;
  nssi::Outcome<GetResult> get(Request &, const GetArgs &) override;
  nssi::Outcome<FiguresResult> figures(Request &, const GetArgs &) override;
  StreamPtr stream_to_read(const ReaderArgs &args) const;
  bool may_come(const Stream &stream) const;
  void add_small_blocks(const Stream &stream, NextResult &result);
  Result<std::int64_t> push(Request &, const VariableArgs &variable, std::vector<Block> blocks, const Box &box);
  /// Of a block what a reader wants; its bytes, while they are needed.
  struct Source {
    Block block;
    Box part;
    HeldBytes held = {};
  };
  static Result<std::int64_t> push_slice(Request &, std::size_t element_bytes, const std::vector<Source *> &sources,
                                         const Box &box, const Box &slice, std::span<std::byte> gathered);
  Result<std::int64_t> push_slices(Request &, const VariableArgs &variable, std::vector<Source> &sources,
                                   const Box &box);

  // --- files (file_streams.cpp) -------------------------------------------------------------------------------------
  struct FileChange {
    enum class Kind { kStep, kAnew, kEnd, kOver } kind = Kind::kOver;
    std::string stream;
    std::optional<FileStep> step = {};
    std::string why = {};
  };
  struct FileVariable {
    FileSource source;
    VariableArgs variable;
  };
  Status follow_files();
  void take_file_changes();
  void take_file_change(const FileChange &change);
  void take_file_step(const FileStep &step);
  StreamPtr make_file_stream(const std::string &name);
  void begin_file_anew(const std::string &name);
  void end_file(const std::string &name, const std::string &why);
  void await_files_over();
  void await_file_readers();
  static StepSource source_of(const Stream &stream, std::uint64_t step, std::uint32_t known_headers);
  static std::optional<FileVariable> find_in_file(const Stream &stream, const GetArgs &args);
  Status read_file(Request &, const FileVariable &from, const Box &box,
                   const std::function<Status(const Box &slice, std::span<std::byte> bytes)> &take);
  nssi::Outcome<GetResult> get_of_file(Request &, const FileVariable &from, const GetArgs &args);
  nssi::Outcome<FiguresResult> figures_of_file(Request &, const FileVariable &from, const GetArgs &args);

  // --- the shared space (space.cpp) ---------------------------------------------------------------------------------
  nssi::Outcome<void> space_put(Request &, const SpacePutArgs &) override;
  nssi::Outcome<SpaceGetResult> space_get(Request &, const SpaceGetArgs &) override;
  nssi::Outcome<std::uint64_t> space_newest(Request &, const Name &) override;
  nssi::Outcome<void> space_note(Request &, const SpaceNote &) override;
  nssi::Outcome<void> space_keep(Request &, const SpaceKeptArgs &) override;
  /// At the server that keeps account of its name: waits until so many elements more were put.
  struct WaitingGet {
    const SpaceGetArgs &args;
    std::int64_t missing;
    WaitQueue changed;
  };
  Result<std::shared_ptr<Chunk>> bring_to_space(Request &, const SpacePutArgs &);
  Status take_note(const SpaceNote &note);
  Result<SpaceAccount::Cover> await_cover(Request &, const SpaceGetArgs &);
  Status await_noted(Request &, const SpaceGetArgs &);
  Result<nnti::PeerId> connect_server(std::uint32_t index, Deadline deadline);
  Status tell_home(std::uint32_t home, const SpaceNote &note, Deadline deadline);
  void tell_all_to(std::uint32_t home);
  void lose_holder(std::uint32_t server);

  nssi::Outcome<ListResult> list(Request &) override;

  StreamPtr find(Key stream) const;
  void settle(Stream &stream, bool is_short = false);
  nssi::Outcome<void> make_room(Request &, bool has_none) override;
  void ask_for_room();
  void drop_unread(bool has_none);
  void look_after();
  void begin_looking_after();
  void take_leave();
  void lose_server(nnti::PeerId peer);
  void note_place(nnti::PeerId peer);

  nssi::Runtime &runtime_;
  const ServerOptions options_;
  const std::uint64_t incarnation_;
  Budget &budget_;
  std::unique_ptr<Journal> journal_;  ///< null: there is no log
  std::unique_ptr<Store> store_;
  nssi::Director director_;
  std::map<Key, StreamPtr> streams_;
  std::vector<StreamPtr> in_order_;  ///< at the first server, as they were made
  std::map<std::string, StreamPtr, std::less<>> by_name_;
  WaitQueue made_;  ///< a stream
  SpaceShelf space_;
  SpaceAccount names_;                  ///< of which this server keeps account
  std::list<WaitingGet *> space_gets_;  ///< of these names
  struct Holder {
    nnti::PeerId peer;
    std::uint64_t incarnation = 0;
  };
  std::map<std::uint32_t, Holder> holders_;  ///< other servers that have some of them
  WaitQueue noted_;                          ///< what was put here is on the shelf
  std::uint64_t being_noted_ = 0;            ///< puts that are to be there when its account has heard of them
  std::vector<JoinArgs> joined_;
  std::map<std::uint32_t, nnti::PeerId> servers_;  ///< to the others that this one has connected to
  std::set<std::uint64_t> local_;                  ///< peers on this node
  Account::Gone gone_;                             ///< peers that were lost just now
  bool is_ready_ = false;                          ///< what was in the log is known, also to the first server
  bool is_joining_ = false, is_reading_ = false, is_log_read_ = false;
  std::uint64_t streams_made_ = 0;
  bool is_looking_after_ = false, is_ending_ = false;
  std::deque<FileChange> file_changes_;
  bool takes_file_changes_ = false;
  bool are_files_over_ = false;
  WaitQueue files_changed_;       ///< or who reads them
  std::unique_ptr<Files> files_;  ///< null: none are streams
  std::unique_ptr<nessie::service::Worker> file_readers_;
};

}  // namespace streams
