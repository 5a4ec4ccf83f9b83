// SPDX-License-Identifier: BSD-3-Clause
// The staging service's requests and results. Each struct is its XDR encoding, field by field (src/xdr/codec.hpp).
// README.md in this folder says what each operation promises.
#pragma once

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace staging {

inline constexpr std::uint32_t kProtocolVersion = 3;
inline constexpr std::uint32_t kProgram = 0x20004E01;

enum Op : std::uint32_t {
  kOpHello = 100,
  kOpCreate = 101,
  kOpOpen = 102,
  kOpEndDef = 103,
  kOpAmend = 104,
  kOpWrite = 105,
  kOpRead = 106,
  kOpFillRecord = 107,
  kOpSync = 108,
  kOpClose = 109,
  kOpAbort = 110,
  kOpAttach = 111,
  kOpDetach = 112,
  kOpHold = 113,  ///< of a server that is not the file's home: keeps the descriptor for Attach
  kOpSettle = 114,
  kOpReport = 115,
  kOpShutdown = 116,
  kOpNoteNative = 117,
  kOpPing = 118,
  kOpWriteNow = 119,  ///< as kOpWrite; its sender waits
  kOpHasten = 120,
  kOpRelease = 121,  ///< forgets what Hold gave
  kOpLend = 122,     ///< gives the program's descriptor back, to a process of this node
};

/// Auto: as caching, and clients leave files to native PnetCDF that gain nothing.
enum class Mode : std::uint32_t { kDirect = 0, kCaching = 1, kAuto = 2 };

/// Names an open file on all servers; random, made by the client's rank 0.
using FileToken = std::uint64_t;
using Extents = boost::container::small_vector<std::int64_t, 6>;
using Bytes = std::vector<std::byte>;

struct Hint {
  std::string key, value;
  template <class A> void xdr(A &a) { a(key, value); }
};

struct HelloArgs {
  std::uint32_t version = kProtocolVersion;
  std::string program;  ///< empty: of who only looks on, and does not count
  template <class A> void xdr(A &a) { a(version, program); }
};
struct HelloResult {
  std::uint32_t version = kProtocolVersion;
  std::uint32_t index = 0, servers = 1;  ///< which of how many staging servers this is
  Mode mode = Mode::kCaching;
  std::string pnetcdf_version;
  template <class A> void xdr(A &a) { a(version, index, servers, mode, pnetcdf_version); }
};

/// What most operations answer. `nc_error` is native PnetCDF's code (0: NC_NOERR).
struct NcResult {
  std::int32_t nc_error = 0;
  template <class A> void xdr(A &a) { a(nc_error); }
};

/// Which file it is, whatever its names.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;  ///< zeros: none
  bool operator==(const FileIdentity &) const = default;
  template <class A> void xdr(A &a) { a(device, inode); }
};

/// How a server comes to a file that the program has opened. On the program's node it is given the descriptor: nothing
/// is looked up by a name, or with rights, that are not the program's. On another node it opens the file by its name,
/// as the same user only, and makes sure that it is the same file.
struct FileHandle {
  std::uint64_t descriptor = 0;  ///< the key that it was given under; 0: on another node
  FileIdentity identity;         ///< as the program sees it
  std::int64_t changed_ns = 0;   ///< its time of change
  std::uint32_t user = 0;        ///< effective user of the program
  template <class A> void xdr(A &a) { a(descriptor, identity, changed_ns, user); }
};

struct CreateArgs {
  FileToken file = 0;
  std::string path;  ///< absolute: for people, and for servers on other nodes
  std::int32_t cmode = 0;
  std::vector<Hint> hints;
  FileHandle handle = {};
  std::uint32_t processes = 1;  ///< that have the file open together
  template <class A> void xdr(A &a) { a(file, path, cmode, hints, handle, processes); }
};

/// Open, Hold.
struct OpenArgs {
  FileToken file = 0;
  std::string path;
  std::int32_t omode = 0;
  std::vector<Hint> hints;
  FileHandle handle = {};
  std::uint32_t processes = 1;
  template <class A> void xdr(A &a) { a(file, path, omode, hints, handle, processes); }
};

/// The header as it stands in the file, for the clients' mirrors.
struct HeaderResult {
  std::int32_t nc_error = 0;
  Bytes header;                 ///< the first ncmpi_inq_header_size() bytes of the file
  std::int64_t bytes_read = 0;  ///< of ncmpi_inq_get_size
  std::int64_t num_records = 0;
  std::vector<Hint> hints;  ///< of ncmpi_inq_file_info
  FileIdentity identity = {};
  template <class A> void xdr(A &a) { a(nc_error, header, bytes_read, num_records, hints, identity); }
};

/// One definition, as the client's mirror accepted it.
struct Definition {
  enum Kind : std::uint32_t {
    kDefDim,
    kDefVar,
    kRenameDim,
    kRenameVar,
    kRenameAtt,
    kPutAtt,
    kDelAtt,
    kSetFill,
    kDefVarFill
  };
  std::uint32_t kind = kDefDim;
  std::int32_t varid = -1;  ///< or the dimension's id
  std::int32_t type = 0;    ///< nc_type; fill mode for kSetFill; no_fill for kDefVarFill
  std::int64_t length = 0;  ///< of a dimension (0: unlimited), or elements of an attribute
  std::string name, new_name;
  std::vector<std::int32_t> dims;
  Bytes value;  ///< attribute or fill value: `type`'s elements in host representation
  template <class A> void xdr(A &a) { a(kind, varid, type, length, name, new_name, dims, value); }
};

struct EndDefArgs {
  FileToken file = 0;
  std::vector<Definition> definitions;
  std::uint32_t has_layout = 0;  ///< ncmpi__enddef rather than ncmpi_enddef
  std::int64_t h_minfree = 0, v_align = 0, v_minfree = 0, r_align = 0;
  std::int64_t num_records = 0;
  template <class A> void xdr(A &a) {
    a(file, definitions, has_layout, h_minfree, v_align, v_minfree, r_align, num_records);
  }
};

/// Definitions that are legal in data mode (attributes that do not grow, renames), or of a new file, applied at once.
struct AmendArgs {
  FileToken file = 0;
  std::vector<Definition> definitions;
  template <class A> void xdr(A &a) { a(file, definitions); }
};

/// A part of a variable. Its elements travel in C order, in the variable's external type, in host byte order.
struct Piece {
  std::int32_t varid = 0;
  Extents start, count;
  Extents stride;  ///< empty: all ones
  std::int64_t step(std::size_t dim) const { return stride.empty() ? 1 : stride[dim]; }
  std::int64_t elements() const {
    return std::accumulate(count.begin(), count.end(), std::int64_t{1}, std::multiplies<>());
  }
  template <class A> void xdr(A &a) { a(varid, start, count, stride); }
};

/// Says that an operation comes after other processes' writes, which may still be on their way: after the `writes` that
/// all processes together have sent this server by the end of the collective call number `call`. {0, 0}: after none.
struct WritesBefore {
  std::uint64_t call = 0, writes = 0;
  template <class A> void xdr(A &a) { a(call, writes); }
};

/// Write: the bulk buffer begins with the pieces' data, one after the other; the server pulls them, or reads them
/// there. Read: the server pushes them.
struct TransferArgs {
  FileToken file = 0;
  std::int64_t num_records = 0;  ///< what the client knows: reads may reach so far
  std::uint64_t call = 0;        ///< the number of the collective call that it belongs to; Read: 0 if to none
  WritesBefore after;
  /// Write that goes on behind the program's back: when it was sent, in nanoseconds of this node's clock. 0: its sender
  /// waits for the answer.
  std::int64_t sent_ns = 0;
  /// Write: 1 if it may meet others that nothing else orders: what was sent before is carried out first.
  std::uint32_t in_order = 0;
  /// Write, direct mode: 1 in the last request of a process in a collective call. It has no pieces.
  std::uint32_t ends_call = 0;
  Bytes pieces;                    ///< a PieceList; empty if it would not fit here:
  std::uint64_t listed_at = 0;     ///< then it lies in the bulk buffer, from here on, behind the data,
  std::uint32_t listed_bytes = 0;  ///< and is so long
  template <class A> void xdr(A &a) {
    a(file, num_records, call, after, sent_ns, in_order, ends_call, pieces, listed_at, listed_bytes);
  }
};

struct FillRecordArgs {
  FileToken file = 0;
  std::int32_t varid = 0;
  std::int64_t record = 0;
  template <class A> void xdr(A &a) { a(file, varid, record); }
};

/// When Close answers: at once; when the data are in the file; or then, if that takes next to no time, at once
/// otherwise.
enum class Closing : std::uint32_t { kEarly = 0, kDurable = 1, kAuto = 2 };

/// Sync, Close, Detach.
struct FileArgs {
  FileToken file = 0;
  std::int64_t num_records = -1;  ///< as the clients agreed; -1: unknown
  Closing closing = Closing::kEarly;
  WritesBefore after;  ///< Close
  template <class A> void xdr(A &a) { a(file, num_records, closing, after); }
};

/// Attach (of a file that the server holds), Release.
struct AttachArgs {
  FileToken file = 0;
  template <class A> void xdr(A &a) { a(file); }
};

struct LendArgs {
  FileToken file = 0;
  template <class A> void xdr(A &a) { a(file); }
};
struct LendResult {
  std::uint64_t descriptor = 0;  ///< the key that it was given under
  template <class A> void xdr(A &a) { a(descriptor); }
};

/// Settle: answer when nothing of that file is left to drain.
struct SettleArgs {
  FileIdentity identity;
  std::string path;            ///< names it where devices are numbered otherwise: on other nodes
  std::uint32_t to_write = 0;  ///< 1: native PnetCDF is about to write to it, which no board says
  template <class A> void xdr(A &a) { a(identity, path, to_write); }
};

/// A file that went native, for the report.
struct NativeNote {
  std::string path, why;
  std::uint32_t is_choice = 0;  ///< 1: it could have been staged
  template <class A> void xdr(A &a) { a(path, why, is_choice); }
};

/// Report, Shutdown and Ping have no arguments.
struct Nothing {
  template <class A> void xdr(A &) {}
};

/// A file whose drain failed, or is not finished.
struct FileReport {
  std::string path;
  std::int32_t nc_error = 0;
  std::string message;  ///< e.g. "No space left on device"
  std::uint64_t bytes_acknowledged = 0, bytes_in_file = 0;
  std::vector<std::string> missing;  ///< "temperature[0:63,0:63,0:63]" (inclusive), one for each range
  template <class A> void xdr(A &a) { a(path, nc_error, message, bytes_acknowledged, bytes_in_file, missing); }
};

/// Report: now. Shutdown: after everything was drained (or failed to be); the server exits after answering.
struct ReportResult {
  std::uint64_t bytes_pulled = 0, bytes_pushed = 0, bytes_drained = 0, bytes_pending = 0;
  std::uint64_t writes = 0, reads = 0, files = 0, clients = 0, memory_high_bytes = 0;
  double busy_pull_s = 0, busy_drain_s = 0;
  double first_write_s = 0, last_pull_s = 0, last_drain_s = 0;  ///< CLOCK_MONOTONIC, seconds
  std::vector<FileReport> drained;                              ///< every file that was written, in order of closing
  std::vector<FileReport> failures;
  std::vector<std::string> native;  ///< "path: why it went native"
  std::uint64_t left_native = 0;    ///< files that went native by choice,
  std::string why_left;             ///< and why the last of them did
  std::uint64_t bytes_read = 0;     ///< from files, for reads
  template <class A> void xdr(A &a) {
    a(bytes_pulled, bytes_pushed, bytes_drained, bytes_pending, writes, reads, files, clients, memory_high_bytes,
      busy_pull_s, busy_drain_s, first_write_s, last_pull_s, last_drain_s, drained, failures, native, left_native,
      why_left, bytes_read);
  }
};

}  // namespace staging
