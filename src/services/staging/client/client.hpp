// SPDX-License-Identifier: BSD-3-Clause
// The staging service's client: what one process of an application asks of the staging servers. It knows servers,
// files and pieces of variables; nothing of MPI, of communicators, or of PnetCDF's argument rules, which are the
// interposer's (src/interpose/pnetcdf).
//
// Threads: any thread, one at a time (the interposer holds its own lock).
#pragma once

#include <nssi/nssi.hpp>
#include <services/staging/protocol.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace staging {

using nessie::Result;
using nessie::Status;

/// What the client must know of a variable to find the server of an element.
struct VariableLayout {
  int varid = 0;
  int element_bytes = 0;        ///< of the external type
  bool is_record = false;
  Extents shape;                ///< shape[0] is meaningless for a record variable
};

/// Which server owns which part of a variable: contiguous slabs of its first dimension (within each record), so that
/// each server's part is contiguous in the file, and every element has exactly one server, which orders all writes and
/// reads of it. Small variables are one server's as a whole. Pure function of (layout, servers).
class Domains {
 public:
  Domains(const VariableLayout &layout, int servers);
  /// A part of a piece with one owner. Its data lie together in the piece's C-order data, from `offset_bytes` on.
  struct Part {
    int server = 0;
    Piece piece;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
  };
  /// Splits `piece` by owner, in the order of its data.
  std::vector<Part> split(const Piece &piece) const;

 private:
  int owner_of(std::int64_t index) const;
  Part whole(const Piece &piece, int server) const;
  void cut(const Part &from, std::vector<Part> &parts) const;

  VariableLayout layout_;
  int servers_;
  bool split_ = false;            ///< large enough for several servers
  std::size_t slab_dim_ = 0;
  std::int64_t slab_ = 1;         ///< indices of slab_dim_ for each server
};

/// A transfer on its way: started, later finished.
class Transfer {
 public:
  Transfer();
  Transfer(Transfer &&) noexcept;
  Transfer &operator=(Transfer &&) noexcept;
  ~Transfer();
  /// Waits for all of its parts. ok with native PnetCDF's code (0 for success); or an error of the transport.
  Result<int> finish();

 private:
  friend class Client;
  struct State;
  std::unique_ptr<State> state_;
};

/// One piece of a transfer and where its data are in the application's memory, contiguous, in the external type, in
/// host byte order. For a read, `data` is written to.
struct Item {
  const VariableLayout *layout = nullptr;
  Piece piece;
  std::span<std::byte> data;
};

class Client {
 public:
  /// Connects to the servers that the settings name: `servers` (NESSIE_SERVERS): URLs of all of them, separated by
  /// white space, each itself a list joined by ';', in order of their index. `credential` (NESSIE_CREDENTIAL).
  /// Errors as nnti::Endpoint::connect; kUnsupported for another protocol version.
  static Result<std::unique_ptr<Client>> connect(const nessie::Config &config, const std::string &program);
  ~Client();

  int servers() const;
  Mode mode() const;
  const std::string &server_url(int index) const;
  /// The server that keeps a path's header: a hash of the path.
  int home_of(const std::string &path) const;

  // --- by rank 0 of the file's communicator only ---------------------------------------------------------------------
  // Results hold native PnetCDF's code (in nc_error, or as the int itself); errors are the transport's.
  /// Waits until no server has anything of this path left to drain, then creates / opens it at its home server. open
  /// also attaches the other servers.
  Result<int> create(const CreateArgs &args);
  Result<HeaderResult> open(const OpenArgs &args);
  /// Ends define mode: detaches the other servers if the file was in data mode before, has the home server drain,
  /// (redef,) replay the definitions and enddef natively, then attaches the others.
  Result<HeaderResult> enddef(const EndDefArgs &args, bool first);
  Result<int> amend(const AmendArgs &args);
  Result<int> fill_record(const FillRecordArgs &args);
  /// All servers: drain, native sync.
  Result<int> sync(FileToken file, std::int64_t num_records);
  /// All servers. durable: returns when the data are in the file; otherwise when the servers have taken note.
  Result<int> close(FileToken file, std::int64_t num_records, bool durable);
  Result<int> abort(FileToken file);
  Result<int> remove(const std::string &path);
  /// Returns when no server has anything of this path left to drain.
  Status settle(const std::string &path);
  /// Tells the servers, for the report, that a file went native.
  Status note_native(const std::string &path, const std::string &why);

  // --- by any rank ------------------------------------------------------------------------------------------------------
  /// Starts a transfer of all items. Large items are pulled from where they lie (registered for the while); small ones
  /// are packed together, so that a thousand small pieces cost a few messages. The items' memory is borrowed until
  /// finish().
  Transfer start_write(FileToken file, std::int64_t num_records, std::span<const Item> items);
  Transfer start_read(FileToken file, std::int64_t num_records, std::span<const Item> items);

  // --- for the command line ----------------------------------------------------------------------------------------------
  Result<ReportResult> report(int server);
  Result<ReportResult> shutdown(int server, nssi::Deadline deadline);

 private:
  friend class Transfer;
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  Transfer start(std::uint32_t op, FileToken file, std::int64_t num_records, std::span<const Item> items);
  std::unique_ptr<Impl> impl_;
};

}  // namespace staging
