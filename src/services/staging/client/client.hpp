// SPDX-License-Identifier: BSD-3-Clause
// The staging service's client: what one process of an application asks of the staging servers. It knows servers,
// files and pieces of variables; nothing of MPI, of communicators, or of PnetCDF's argument rules, which are the
// interposer's (src/interpose/pnetcdf).
//
// Threads: any, several at once, each with files of its own: what one waits for does not hold up the others.
#pragma once

#include <base/fd.hpp>
#include <nssi/nssi.hpp>
#include <services/staging/domains.hpp>
#include <services/staging/piece_list.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace staging {

using nessie::Result;
using nessie::Status;

/// Where this process's reads and writes stand among the collective calls on a file: servers carry them out after the
/// writes of all processes that are known here, whether or not those have arrived when these do.
struct Order {
  explicit Order(int servers = 1) : sent(static_cast<std::size_t>(servers)), known_writes(sent) {}
  /// Ends the present call. Returns what was sent in it.
  std::vector<std::int64_t> end_call() {
    ++call;
    return std::exchange(sent, std::vector<std::int64_t>(sent.size()));
  }
  /// What an operation that `server` is asked for comes after.
  WritesBefore known(int server) const {
    return {known_call, static_cast<std::uint64_t>(known_writes.at(static_cast<std::size_t>(server)))};
  }
  /// All processes together have sent `writes` in the call after known_call.
  void know(std::span<const std::int64_t> writes) {
    ++known_call;
    std::ranges::transform(known_writes, writes, known_writes.begin(), std::plus<>());
  }
  bool is_collective = false;              ///< the next writes, or reads, are of a call that all processes make
  bool in_order = false;                   ///< the next writes may meet others, of whatever process: the last one stays
  std::uint64_t call = 1;                  ///< the present collective call, or the next one
  std::vector<std::int64_t> sent;          ///< by this process in it, to each server
  std::uint64_t known_call = 0;            ///< up to this call it is known
  std::vector<std::int64_t> known_writes;  ///< how many writes all processes have sent, to each server
};

/// Pieces of one variable and where their data are in the application's memory, one after the other, in the external
/// type, in host byte order. For a read, `data` is written to.
struct Item {
  const VariableLayout *layout = nullptr;
  PieceList pieces;
  std::span<std::byte> data;
};

class Client {
 public:
  struct Impl;  ///< private to the implementation

  /// Connects to the servers that the settings name: `servers` (NESSIE_SERVERS): URLs of all of them, separated by
  /// white space, each itself a list joined by ';' or '|', in order of their index. `credential` (NESSIE_CREDENTIAL).
  /// `staging.job` (NESSIE_STAGING_JOB): the job that it belongs to, where servers have several.
  /// `processes`: of the program, on this node; 0: nobody knows. They share the memory for copies, and where they leave
  /// no core to the servers, data are moved in a way that takes the least of all cores together, and not the least of
  /// the program's time. Errors as nnti::Endpoint::connect; kUnsupported for another protocol version. When `stop` is
  /// requested, by whatever thread and whenever, no server is waited for any more: kCancelled.
  static Result<std::unique_ptr<Client>> connect(const nessie::Config &config, const std::string &program,
                                                 int processes = 0, const std::stop_token &stop = {});
  ~Client();

  int servers() const;
  Mode mode() const;
  /// As nssi::Runtime::flush_trace().
  void flush_trace();
  /// Whether the program's processes leave no core of this node to its servers.
  bool is_crowded() const;
  const std::string &server_url(int index) const;
  /// Whether all servers have died, and none has taken their place: they hold nothing any more. Asks them, unless one
  /// has answered just now. One that is stopped, or hangs, has not died.
  bool all_died();

  // --- by rank 0 of the file's communicator only ---------------------------------------------------------------------
  // Results hold native PnetCDF's code (in nc_error, or as the int itself); errors are the transport's.
  /// Stages a file that the program has created / opened, with this descriptor of it (borrowed): for reading and
  /// writing, or for reading. Its home server creates / opens it natively, too; open also attaches the other servers.
  /// Nothing of it may be left to drain: settle() it before it is truncated or its header is read. kRefused, kNotFound:
  /// a server on another node may not, or cannot, open this file; kInvalidArgument: it is no regular file; kNoMemory:
  /// a server has no descriptors left. It is not staged then. `meanwhile` is called while the server creates the file,
  /// if it does.
  Result<int> create(const CreateArgs &args, int descriptor, const std::function<void()> &meanwhile = {});
  Result<HeaderResult> open(const OpenArgs &args, int descriptor);
  /// Sends definitions of a file that is new ahead of its enddef, which answers for them; waits for nothing. False: not
  /// sent, because the server has yet to carry out those before.
  bool define(const AmendArgs &args);
  /// Ends define mode: detaches the other servers if the file was in data mode before, has the home server drain,
  /// (redef,) replay the definitions and enddef natively, then attaches the others. That earlier writes found no room
  /// is no error of this, but of the next write, finish_writes, sync or close.
  Result<HeaderResult> enddef(const EndDefArgs &args, bool first);
  Result<int> amend(const AmendArgs &args);
  Result<int> fill_record(const FillRecordArgs &args);
  /// All servers: drain, native sync. The code of an earlier write that failed, if it has not been told yet.
  Result<int> sync(FileToken file, std::int64_t num_records);
  /// All servers, after the writes known to `order`. The code of an earlier write that failed, if it has not been told
  /// yet; with Closing::kEarly only of those that had been tried by then.
  Result<int> close(FileToken file, std::int64_t num_records, Closing how, const Order &order);
  Result<int> abort(FileToken file);
  /// Tells the home server, for who looks on, what is complete of a file as all processes had written it by the calls
  /// known to `order`: `mark` says which records and variables, the rest is added here. Waits for nothing, and nobody
  /// hears what comes of it. Before what is asked of the file later.
  void mark(FileToken file, Mark mark, const Order &order);
  /// Returns when no server has anything of this file left to drain, under whatever name and handle it was written; of
  /// all files, if it names none.
  Status settle(const SettleArgs &args);
  /// Tells the servers, for the report, that a file went native.
  Status note_native(const std::string &path, const std::string &why, bool is_choice = false);

  // --- by any rank ------------------------------------------------------------------------------------------------------
  /// The descriptor by which the home server has a file of this identity open: what the program gave it, with the
  /// access of its handle, whatever has become of the file's name and mode since. kUnsupported, kRefused: the server is
  /// on another node than this process, or than the one that opened the file. kNotFound: the file is not open, or the
  /// connection broke meanwhile. kNoMemory: this process has no descriptors left.
  Result<nessie::Fd> lend(FileToken file, const FileIdentity &identity);
  /// Writes all items; small ones are packed together, so that a thousand small pieces cost a few messages. Returns
  /// when the items' memory is the caller's again. In caching mode, data of up to a few megabytes have then been copied
  /// to where the servers on this node find them, whatever becomes of this process; they count in `order.sent`, and
  /// whoever comes after them says so by its Order. Native PnetCDF's code of this write, or of an earlier one of this
  /// file; each is told once.
  Result<int> write(FileToken file, std::int64_t num_records, Order &order, std::span<const Item> items);
  /// Returns when the servers have carried out all writes of this process to the file: with the code of one that
  /// failed.
  Result<int> finish_writes(FileToken file);
  /// A file outlives its servers. From now on, if one of them dies, this process waits until another one has taken its
  /// place, and comes back to it at once, whatever else it does. Where servers keep files by themselves it does so from
  /// the beginning.
  void expect_return();
  /// Reads all items, after this process's own writes. ok with native PnetCDF's code (0 for success).
  Result<int> read(FileToken file, std::int64_t num_records, const Order &order, std::span<const Item> items);

  // --- for the command line ----------------------------------------------------------------------------------------------
  Result<ReportResult> report(int server);
  /// Of it, what was done for that job: bytes pulled and pushed, writes, reads, files, failures. A server knows a job
  /// as long as a client is connected that belongs to it.
  Result<ReportResult> report_of(int server, const std::string &job);
  Result<ReportResult> shutdown(int server, nssi::Deadline deadline);

 private:
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace staging
