// SPDX-License-Identifier: BSD-3-Clause
// A staging server: a provider. All handlers' fibers and all state are on the thread that drives, so that nothing here
// needs a lock; native PnetCDF runs on the thread of main(), which initialised MPI, or on any other where MPI is for
// all threads.
#pragma once

#include <nessie/provider.hpp>
#include <service/buffers.hpp>
#include <service/moves.hpp>
#include <services/staging/durability.hpp>
#include <services/staging/server/done.hpp>
#include <services/staging/server/door.hpp>
#include <services/staging/server/drainer.hpp>
#include <services/staging/server/journal.hpp>
#include <services/staging/server/loader.hpp>
#include <services/staging/server/marks.hpp>
#include <services/staging/server/pieces_check.hpp>
#include <services/staging/server/replica.hpp>
#include <services/staging/server/shelf.hpp>

#include <nssi/nssi.hpp>
#include <staging_rpc.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace staging {

using nessie::Result;
using nessie::Status;

struct ServerOptions {
  std::uint32_t index = 0, servers = 1;
  Mode mode = Mode::kCaching;
  std::uint64_t memory_bytes = 512 << 20;
  std::string ledger_path;              ///< empty: no ledger
  std::string board_path;               ///< empty: no board
  DurabilityRules durability;           ///< of files that say nothing else
  std::vector<std::string> servers_at;  ///< where all servers are, of one that takes another one's place
  bool is_successor = false;
  std::uint32_t restarts = 0;  ///< of such a one: which it is
  std::string log_path;        ///< the folder of its log, which is made when it is needed; empty: nothing is kept
  std::uint64_t log_bytes = std::uint64_t{1} << 30;  ///< from so much on in its log, it is put into the files
  std::string url_path;  ///< where the URL is written as soon as the server can be reached; empty: nowhere
  DrainOptions drain;
  std::function<void(const ReportResult &)> on_end;  ///< is told the report when the server stops; null: nobody is
  /// How long one pull or push may take before the client is given up: no fiber waits for ever on a client.
  std::chrono::milliseconds client_timeout{30000};
  int descriptors = std::numeric_limits<int>::max();  ///< numbers below this are for files; the rest is others'
  std::shared_ptr<void> mpi;                          ///< what must be there as long as native PnetCDF is
};

/// What a server needs of its runtime.
void prepare_runtime(nssi::RuntimeOptions &options);

class Server final : public nessie::Provider, private STAGING::CURRENT::Server {
 public:
  /// kExists: the provider's number is taken. kIo: the URL cannot be written.
  static Result<std::unique_ptr<nessie::Provider>> start(const nessie::ProviderContext &context, ServerOptions options);
  ~Server() override;

  std::string describe() const override;
  void peer_lost(nssi::PeerId peer) override;
  /// Drains and closes all files.
  void quiesce() override;
  bool holds_data() const override { return !files_.empty() || !closing_.empty() || opening_ > 0; }
  void stop() override;
  /// 1: not all data are in the files.
  int exit_code() const override { return report().failures.empty() ? 0 : 1; }
  /// What was done. On the thread that drives, or after stop().
  ReportResult report() const;

 private:
  friend class ServerInside;  ///< a test's
  class Counted;
  class Running;
  class Reading;
  static constexpr std::size_t kBounceBytes = 1 << 20;
  static constexpr nssi::PeerId kNobody{~std::uint64_t{0}};
  static constexpr std::size_t kMostGroupList = 32 << 10;  ///< of a part of a write: the journal has room for 64 KiB
  using File = std::shared_ptr<OpenFile>;
  /// A file that this server will be asked to attach.
  struct Held {
    nssi::PeerId owner;
    std::string path;
    std::int32_t omode = 0;
    std::vector<Hint> hints;
    std::uint32_t processes = 1;
    Durability durability = Durability::kMemory;
    nessie::Fd file;   ///< as long as it is not attached
    nessie::Fd spare;  ///< given up for the one that MPI-IO needs
  };
  /// Which process a peer is, by the kernel's word, and which program's, by its own.
  struct Process {
    pid_t pid;
    std::string program;
  };
  /// A process that comes again if this server dies and is started again.
  struct Returning {
    LoggedClient who;
    Done done;                                  ///< its requests
    bool is_expected = false, is_back = false;  ///< it is to say that it is back; it has
  };
  using Request = nssi::Request;

  Server(const nessie::ProviderContext &context, ServerOptions options);

  // hello.cpp
  Result<HelloResult> hello(Request &request, const HelloArgs &args) override;
  void note_client(nssi::PeerId caller, std::uint64_t client);
  Status ping(Request &request) override;
  Status hasten(Request &request) override;

  Status returned(Request &request) override;

  // create.cpp
  Result<NcResult> create(Request &request, const CreateArgs &args) override;
  Result<nessie::Fd> obtain_descriptor(Request &request, const std::string &path, const FileHandle &handle,
                                       bool writable);
  int add_file(Request &request, FileToken token, const std::string &path, NativeFile::Opened opened,
               const FileHandle &handle, std::uint32_t processes, Durability durability);
  File make_file(FileToken token, const std::string &path, std::unique_ptr<NativeFile> native, nssi::PeerId owner,
                 std::uint32_t processes, Durability durability);

  // open.cpp
  Result<HeaderResult> open(Request &request, const OpenArgs &args) override;
  void close_unused(const File &file);
  int read_header(OpenFile &file, HeaderResult &result);

  // attach.cpp
  Result<NcResult> hold(Request &request, const OpenArgs &args) override;
  Result<NcResult> attach(Request &request, const FileToken &token) override;
  Status release(Request &request, const FileToken &token) override;
  void hold_again(FileToken token, nessie::Fd file);

  // enddef.cpp, amend.cpp, fill_record.cpp
  Result<HeaderResult> enddef(Request &request, const EndDefArgs &args) override;
  Result<NcResult> amend(Request &request, const AmendArgs &args) override;
  Result<NcResult> fill_record(Request &request, const FillRecordArgs &args) override;
  int end_define(OpenFile &file, const EndDefArgs &args, bool tells_at_once);
  int amend(OpenFile &file, const std::vector<Definition> &definitions, bool tells_at_once);
  void prepare_to_fill(OpenFile &file, const FillRecordArgs &args);
  int define(OpenFile &file, bool tells_at_once, const std::function<int(NativeFile &)> &call);

  // write.cpp
  /// What a request asks for, checked.
  struct Asked {
    Bytes list;
    Checked checked;
    PieceReader pieces() const { return PieceReader(std::span(list)); }
  };
  Result<NcResult> write(Request &request, const TransferArgs &args) override;
  Result<NcResult> write_now(Request &request, const TransferArgs &args) override { return write(request, args); }
  void note_arrival(Request &request) override;
  Result<Asked> look_at(Request &request, OpenFile &file, const TransferArgs &args);
  /// The data of a write on their way here: how far they have come, and what their checksum is up to there.
  struct Arriving {
    Request &request;
    const TransferArgs &args;
    std::uint64_t offset = 0;
    std::uint32_t checksum = 0;
    void note(std::span<const std::byte> data);
    std::uint32_t note_sum(std::span<const std::byte> data, bool is_wanted = true);
    bool is_right() const { return !args.is_checked || checksum == args.checksum; }
  };
  Status bring_in(Request &request, OpenFile &file, const Asked &asked, const TransferArgs &args);
  Status bring_once(Arriving &arriving, OpenFile &file, const Asked &asked);
  void put_pieces(OpenFile &file, std::span<const std::byte> list, std::span<const std::byte> data);
  void take_in(Arriving &arriving, OpenFile &file, const Asked &asked, std::span<const std::byte> data);
  Status pull_in(Arriving &arriving, OpenFile &file, const Asked &asked);
  Status pull_group(Arriving &arriving, OpenFile &file, std::span<const Piece> group, std::size_t size_bytes);
  void take_turns();
  Status pull_piece(Arriving &arriving, CachedVariable &variable, const Piece &piece);
  Status pull_boxes(Arriving &arriving, CachedVariable &variable, Interval run);
  Status pull_run(Arriving &arriving, CachedVariable &variable, Interval run);
  Status pull_part(Arriving &arriving, Page &found, Interval part);
  Status pull(Arriving &arriving, std::span<std::byte> bytes);
  Status pull(Request &request, std::span<std::byte> bytes, std::uint64_t offset);
  void note_records(OpenFile &file, std::int64_t records);

  // keep.cpp
  Durability durability_of(Durability asked, const std::string &path) const;
  bool may_be_kept() const { return !options_.log_path.empty(); }
  Result<Journal *> journal_of(OpenFile &file);
  Status open_logged();
  Status keep_file(const File &file, const OpenArgs &args, bool is_created, nssi::PeerId owner);
  Status begin_keeping(OpenFile &file, const OpenArgs &args, bool is_created, nssi::PeerId owner);
  Status note_file(OpenFile &file, Journal &journal);
  Status note_all(OpenFile &file, Journal &journal);
  void keep_client(OpenFile &file, Returning &client);
  void note_again(Journal &journal, std::uint64_t id, const OpenFile *coming = nullptr);
  void note_clients(Journal &journal, const OpenFile *coming = nullptr);
  Status keep(OpenFile &file, const std::function<void(Journal &)> &note);
  Status keep_definition(OpenFile &file, const LoggedDefinition &definition);
  std::string keep_undo(OpenFile &file);
  static std::string undo_path(const std::string &folder, FileToken token);
  void remove_undo() const;
  Status keep_defined(OpenFile &file, const LoggedDefinition &definition, int nc_error);
  Status keep_filled(OpenFile &file, const FillRecordArgs &args);
  Status keep_in(Arriving &arriving, OpenFile &file, const Asked &asked);
  Status keep_group(Arriving &arriving, OpenFile &file, const LoggedWrite &write, std::uint64_t size_bytes,
                    bool is_noted);
  bool is_worth_bulk(nssi::PeerId caller, const LoggedWrite &write, std::uint64_t size_bytes) const;
  Status keep_bulk(Arriving &arriving, OpenFile &file, const LoggedWrite &write, Log::Bulk bulk,
                   std::uint64_t size_bytes);
  Status await_kept(OpenFile &file);
  Status keep_in_file(OpenFile &file, const Status &failed);
  bool bring_to_disk(OpenFile &file);
  void keep_name(OpenFile &file);
  Status keep_closed(OpenFile &file, const WritesBefore &after);
  void end_keeping(const File &file);
  void keep_gone(OpenFile &file);
  LoggedWrite note_of(nssi::PeerId caller, OpenFile &file, const TransferArgs &args);
  void note_done(nssi::PeerId caller, const TransferArgs &args);
  void keep_done(nssi::PeerId caller, OpenFile &file, const TransferArgs &args);
  void forget_client(nssi::PeerId peer);
  Returning *returning(nssi::PeerId caller);
  std::uint64_t client_of(nssi::PeerId caller) const;

  // room.cpp
  std::optional<Journal::Room> await_room(OpenFile &file, std::uint64_t size_bytes);
  void shorten(Journal &journal);
  bool shorten_once(Journal &journal);
  bool is_about_to_go(FileToken token);
  bool mark(OpenFile &file);

  // recovery.cpp
  Status await_recovered();
  void await_left(const std::function<bool(const OpenFile &)> &same);
  Result<NcResult> unknown(FileToken token) const;
  Result<NcResult> adopt(Request &request, OpenFile &file);
  void recover();
  Status recover_from_log(std::set<FileToken> &found);
  Status recover_from_replica(std::set<FileToken> &found);
  Status recover_files(Journal &journal, std::set<FileToken> &found);
  static void forget_older(Journal &journal, Left &left, std::set<FileToken> &found);
  void note_left(const FileReport &file);
  void note_damage(const Left &left, const nessie::service::LogDamage &damage);
  Result<File> reopen(Journal &journal, const LeftFile &left);
  void finish_amend(OpenFile &file, const LoggedDefinition &amend);
  NativeFile::Opened reopen_native(const std::string &undo, const LeftFile &left, nessie::Fd file);
  void define_again(OpenFile &file, const LeftFile &left);
  Result<nessie::Fd> find_left(const LeftFile &left);
  Status replay(Journal &journal, const Left &left, std::map<FileToken, FileReport> &unopened);
  void end_orphans();
  bool find_owner(OpenFile &file) const;
  void await_owner(const File &file);
  void end_orphan(const File &file);
  static std::uint64_t started_of(pid_t process);
  static bool may_return(const LoggedClient &client);
  void await_returning();

  // write_through.cpp
  int write_through(OpenFile &file, const TransferArgs &args, std::uint64_t failed_before);
  int flush_together(OpenFile &file, const TransferArgs &args);

  // replicate.cpp
  Status keep_block(Request &request, const BlockArgs &block) override;
  Result<KeptResult> kept(Request &request, std::uint32_t of) override;
  Result<std::uint64_t> read_block(Request &request, const BlockArgs &block) override;
  Status release_block(Request &request, const BlockArgs &block) override;
  std::size_t partner_of(std::size_t server) const;
  std::string partner() const;
  std::uint32_t sharers() const;
  /// A journal with another server.
  struct Copy {
    std::unique_ptr<Journal> journal;
    nssi::PeerId peer;
    bool is_lost = false;  ///< the server that had it is gone
  };
  Result<Copy> open_copy(nessie::Deadline deadline, bool anew);
  Result<Copy> try_to_open_copy(const std::string &url, bool anew);
  Status open_replicated(nessie::Deadline deadline);
  bool has_copies() const { return replicated_.journal && !replicated_.is_lost && replicated_.journal->is_whole(); }
  void renew_replicated();
  Status renew_copy(nessie::Deadline deadline);
  bool move_all(Journal &to);
  bool move(OpenFile &file, Journal &to);
  bool await_moved(OpenFile &file, const Journal &lost);
  void give_copies_up();

  // mark.cpp
  Status mark(Request &request, const MarkArgs &args) override;
  void begin_marking(OpenFile &file);
  void begin_data_mode(OpenFile &file, bool is_home);
  void end_marking(OpenFile &file);
  void end_detached(FileToken token);

  // watch.cpp
  struct Watch {
    nssi::PeerId caller;
    std::unique_ptr<nssi::Event> event;  ///< set: look again
  };
  class Watching;
  Result<WatchResult> watch(Request &request, const WatchArgs &args) override;
  Status check_room_for_watch(nssi::PeerId caller) const;
  void tell_watches();
  void end_watches();
  Result<HeaderOf> header(Request &request, const FileToken &token) override;
  static nessie::Error not_known();

  // read_marked.cpp
  Result<MarkedReadResult> read_marked(Request &request, const MarkedReadArgs &args) override;
  Result<MarkedReadResult> read_marked_now(Request &request, const MarkedReadArgs &args);
  Result<MarkedReadResult> read_marked_of(Request &request, OpenFile &file, const MarkedFile &marked,
                                          const MarkedReadArgs &args);
  static Result<MarkedReadResult> in_file(const MarkedFile &marked);
  Status await_marked(Request &request, const MarkedFile &marked, const MarkedReadArgs &args,
                      nessie::Deadline deadline);
  File handle_on(const MarkedFile &marked) const;

  // read.cpp
  Result<NcResult> read(Request &request, const TransferArgs &args) override;
  int gather(Request &request, OpenFile &file, const Asked &asked, std::int64_t records, std::byte *data);
  Status push(Request &request, std::span<const std::byte> bytes, std::uint64_t offset);
  void look_behind(OpenFile &file);

  // batches.cpp
  static std::size_t batch_of(OpenFile &file, std::span<const Piece> pieces);
  Result<int> read_batch(Request &request, OpenFile &file, std::span<const Piece> pieces, std::uint64_t &offset);

  // sync.cpp
  Result<NcResult> sync(Request &request, const FileArgs &args) override;
  PageOutcome try_natively(OpenFile &file, const std::function<int(NativeFile &)> &call);
  int insist(OpenFile &file, bool tells_at_once, const std::function<int(NativeFile &)> &call);
  int tell_records(OpenFile &file, bool tells_at_once);
  int sync_to_disk(OpenFile &file);
  void sync_later(const File &file);
  using Sync = int (NativeFile::*)();
  PageOutcome sync_natively(OpenFile &file, Sync sync, const std::function<int(NativeFile &)> &before = {});
  PageOutcome sync_first(OpenFile &file, Sync sync);
  int finish_sync(OpenFile &file, const PageOutcome &synced, Sync sync, bool tells_at_once = false);
  int sync_again(OpenFile &file, PageOutcome failed, Sync sync, bool tells_at_once = false,
                 const std::function<int(NativeFile &)> &redo = {});
  PageOutcome put_again(OpenFile &file);

  // verify.cpp
  int look_back(OpenFile &file);
  bool is_as_written(OpenFile &file);
  std::vector<ReadBack::Run> find_differing(OpenFile &file);
  void note_differing(OpenFile &file, const std::vector<ReadBack::Run> &differing, bool are_lost);

  // close.cpp
  Result<NcResult> close(Request &request, const FileArgs &args) override;
  Result<NcResult> close_again(const FileArgs &args);
  Result<NcResult> detach(Request &request, const FileArgs &args) override;
  bool is_soon_in_file(OpenFile &file, const WritesBefore &after);
  void finish_close(const File &file, PageState priority, const WritesBefore &after);
  int finish_close_for_program(const File &file, const WritesBefore &after);
  void finish_close_later(const File &file, const WritesBefore &after);
  void drain_and_close(const File &file, PageState priority);
  void leave_closing(const File &file);
  void finish_orphan(File file);

  // abort.cpp
  Result<NcResult> abort(Request &request, const FileArgs &args) override;

  // settle.cpp
  Result<NcResult> settle(Request &request, const SettleArgs &args) override;
  void settle_files(const std::function<bool(const OpenFile &)> &same);
  void publish(const File &file);
  void await_closed(const File &file);
  void open_door();

  // lend.cpp
  Result<LendResult> lend(Request &request, const FileToken &token) override;

  // report.cpp
  Result<ReportResult> report(Request &request) override;
  Status belong(Request &request, const Text &job) override;
  Result<ReportResult> report_of(Request &request, const Text &job) override;
  std::shared_ptr<Account> account_of(nssi::PeerId caller) const;
  void count(nssi::PeerId caller, std::uint64_t ReportResult::*counter, std::uint64_t amount = 1);
  Result<NcResult> note_native(Request &request, const NativeNote &args) override;
  void note_closed(const File &file);
  void note_failed(Account &account, FileReport report) const;
  Result<FilesResult> files(Request &request) override;
  FileState state_of(const OpenFile &file, FileStage stage) const;

  // shutdown.cpp
  Result<ReportResult> shutdown(Request &request) override;

  // order.cpp
  bool await_writes(OpenFile &file, const WritesBefore &before);
  void look_at_inboxes();
  void await_what_was_sent(OpenFile &file);

  // handles.cpp
  std::vector<File> others_like(const OpenFile &file) const;
  void note_handle(OpenFile &file);
  void drain_others(const OpenFile &file);
  void note_created(OpenFile &file);
  void note_write(OpenFile &file);

  // server.cpp
  void give_up(nssi::PeerId client);
  void forget_crowd(nssi::PeerId peer);
  void note_crowd();
  void await_silence();
  bool is_stopped(nssi::PeerId peer) const;
  bool any_is_stopped(const OpenFile &file) const;
  File find(FileToken token) const;
  /// Also a file that is closed, but still waits for data.
  File find_to_write(FileToken token) const;
  /// A file that is closed, and not in the file yet.
  File find_closing(FileToken token) const;
  /// Runs `work` on the I/O thread; suspends the fiber meanwhile.
  template <class Work> auto on_io(Work work);

  const ServerOptions options_;
  nssi::Runtime &runtime_;
  nessie::Budget &budget_;
  Worker &io_;
  const std::function<void()> end_process_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Journal> logged_;                 ///< null: nothing has had to be kept there yet
  Copy replicated_;                                 ///< the same
  FileGate opening_logged_, opening_replicated_;    ///< who opens one
  std::vector<std::unique_ptr<Journal>> former_;    ///< with servers that are gone
  std::map<std::uint64_t, Returning> returning_;    ///< by client
  std::map<std::uint64_t, std::uint64_t> clients_;  ///< by peer
  std::set<FileToken> gone_;                        ///< that this server, or one before it, has put where they belong
  bool is_recovering_ = false, has_recovered_ = false, has_told_of_log_ = false, is_renewing_ = false;
  bool is_reopening_ = false;     ///< files are yet to be reopened that another server has left
  std::unique_ptr<Board> board_;  ///< goes after the files on it
  Account total_;
  ReportResult &statistics_ = total_.counted;                   ///< what was counted, and noted, so far
  std::map<std::uint64_t, std::shared_ptr<Account>> accounts_;  ///< of their jobs, by peer
  std::map<std::string, std::weak_ptr<Account>> jobs_;
  Drainer drainer_;
  Loader loader_;
  Shelf shelf_;
  std::map<FileToken, File> files_;  ///< open, by token
  std::vector<File> closing_;        ///< closed by the program, not yet in the file
  std::map<FileToken, Held> held_;   ///< for Attach
  std::deque<FileState> closed_;
  std::uint64_t more_closed_ = 0, more_native_ = 0;  ///< files that have no place there
  std::vector<nssi::PeerId> peers_;
  std::map<std::uint64_t, Process> processes_;  ///< those that the kernel shows, by peer
  Replicas replicas_;                           ///< of others
  std::vector<std::string> servers_;            ///< where all are, as far as is known
  WaitQueue recovered_;                         ///< something has changed that recovery waits for, or it has ended
  WaitQueue moved_;                             ///< what is noted of a file has moved to another journal, or could not
  WaitQueue closing_changed_;                   ///< a file has left closing_, or an open has ended
  std::list<Watch> watches_;
  std::set<std::uint64_t> watchers_;                   ///< peers that have watched, and have not been told of the end
  Marks marks_;                                        ///< tells those
  WaitQueue watch_ended_;                              ///< one of them has its answer
  std::map<std::uint64_t, std::size_t> marked_reads_;  ///< by peer
  nessie::service::Moves moves_;                       ///< data on their way from or to a client
  nessie::service::Buffers bounces_;
  std::unique_ptr<Door> door_;
  bool finishing_ = false;
  int opening_ = 0;           ///< creates and opens in progress
  double last_waited_s_ = 0;  ///< until when a close that need not be durable was to wait
};

template <class Work> auto Server::on_io(Work work) { return io_.carry_out(runtime_, std::move(work)); }

}  // namespace staging
