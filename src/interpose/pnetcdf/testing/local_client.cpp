// SPDX-License-Identifier: BSD-3-Clause
// A staging client without servers, to test the interposer by itself: it carries everything out at once, in this
// process, with native PnetCDF. For programs of one rank.
#include <interpose/pnetcdf/engine/hints.hpp>
#include <services/staging/client/client.hpp>
#include <services/staging/handle.hpp>

#include <pnetcdf.h>

#include <fstream>
#include <map>
#include <utility>

namespace staging {

namespace {

struct LocalFile {
  int ncid = -1;
  std::string path;
  bool independent = false, is_new = false;
  int defined = NC_NOERR;  ///< what became of definitions that were sent ahead
};

int replay(int ncid, const Definition &definition) {
  const char *name = definition.name.c_str(), *new_name = definition.new_name.c_str();
  const void *value = definition.value.empty() ? nullptr : definition.value.data();
  int unused = 0;
  switch (definition.kind) {
    case DefinitionKind::kDefDim: return ncmpi_def_dim(ncid, name, definition.length, &unused);
    case DefinitionKind::kDefVar:
      return ncmpi_def_var(ncid, name, definition.type, static_cast<int>(definition.dims.size()),
                           definition.dims.data(), &unused);
    case DefinitionKind::kRenameDim: return ncmpi_rename_dim(ncid, definition.varid, new_name);
    case DefinitionKind::kRenameVar: return ncmpi_rename_var(ncid, definition.varid, new_name);
    case DefinitionKind::kRenameAtt: return ncmpi_rename_att(ncid, definition.varid, name, new_name);
    case DefinitionKind::kPutAtt:
      return ncmpi_put_att(ncid, definition.varid, name, definition.type, definition.length, value);
    case DefinitionKind::kDelAtt: return ncmpi_del_att(ncid, definition.varid, name);
    case DefinitionKind::kSetFill: return ncmpi_set_fill(ncid, definition.type, nullptr);
    case DefinitionKind::kDefVarFill: return ncmpi_def_var_fill(ncid, definition.varid, definition.type, value);
  }
  return NC_EINVAL;
}

int replay_all(int ncid, const std::vector<Definition> &definitions) {
  for (const Definition &definition : definitions)
    if (int error = replay(ncid, definition)) return error;
  return NC_NOERR;
}

/// Makes the file have at least so many records: by writing none of them after the last.
void raise_records(int ncid, std::int64_t records) {
  int variables = 0, unlimited = -1;
  ncmpi_inq(ncid, nullptr, &variables, nullptr, &unlimited);
  for (int varid = 0; records > 0 && varid < variables; ++varid) {
    int dimensions = 0;
    ncmpi_inq_varndims(ncid, varid, &dimensions);
    std::vector<int> dimids(static_cast<std::size_t>(dimensions));
    ncmpi_inq_vardimid(ncid, varid, dimids.data());
    if (dimensions == 0 || dimids[0] != unlimited) continue;
    std::vector<MPI_Offset> start(dimids.size(), 0), count(dimids.size(), 0);
    start[0] = records;
    const char nothing = 0;
    ncmpi_put_vara_all(ncid, varid, start.data(), count.data(), &nothing, 0, MPI_DATATYPE_NULL);
    return;
  }
}

int record_dimension(int ncid) {
  int unlimited = -1;
  ncmpi_inq_unlimdim(ncid, &unlimited);
  return unlimited;
}

}  // namespace

struct Client::Impl {
  std::map<FileToken, LocalFile> files;

  int make_collective(LocalFile &file) {
    if (!file.independent) return NC_NOERR;
    file.independent = false;
    return ncmpi_end_indep_data(file.ncid);
  }
  HeaderResult header(LocalFile &file) {
    HeaderResult result;
    MPI_Offset size = 0;
    make_collective(file);
    ncmpi_sync(file.ncid);
    ncmpi_inq_header_size(file.ncid, &size);
    std::ifstream stream(file.path, std::ios::binary | std::ios::ate);
    MPI_Offset read = 0;
    ncmpi_inq_get_size(file.ncid, &read);
    result.bytes_read = read;
    result.identity = identity_of(file.path);
    result.header.resize(static_cast<std::size_t>(size));
    stream.seekg(0).read(reinterpret_cast<char *>(result.header.data()), size);
    MPI_Offset records = 0;
    if (record_dimension(file.ncid) >= 0) ncmpi_inq_dimlen(file.ncid, record_dimension(file.ncid), &records);
    result.num_records = records;
    MPI_Info info = MPI_INFO_NULL;
    ncmpi_inq_file_info(file.ncid, &info);
    result.hints = interpose::collect_hints(info);
    MPI_Info_free(&info);
    return result;
  }
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::connect(const nessie::Config &, const std::string &, int,
                                                const std::stop_token &) {
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>()));
}

Result<int> Client::create(const CreateArgs &args, int, const std::function<void()> &meanwhile) {
  if (meanwhile) meanwhile();
  const interpose::Info info(args.hints);
  LocalFile file{-1, args.path, false, true};
  const int error = ncmpi_create(MPI_COMM_SELF, args.path.c_str(), args.cmode & ~NC_NOCLOBBER, info.get(), &file.ncid);
  if (error == NC_NOERR) impl_->files[args.file] = file;
  return error;
}

Result<HeaderResult> Client::open(const OpenArgs &args, int) {
  const interpose::Info info(args.hints);
  LocalFile file{-1, args.path};
  const int error = ncmpi_open(MPI_COMM_SELF, args.path.c_str(), args.omode, info.get(), &file.ncid);
  HeaderResult result;
  if (file.ncid >= 0) result = impl_->header(impl_->files[args.file] = file);
  result.nc_error = error;
  return result;
}

Result<HeaderResult> Client::enddef(const EndDefArgs &args, bool first) {
  LocalFile &file = impl_->files.at(args.file);
  impl_->make_collective(file);
  HeaderResult result;
  result.nc_error = std::exchange(file.defined, NC_NOERR);
  if (!first) result.nc_error = ncmpi_redef(file.ncid);
  if (result.nc_error == NC_NOERR) result.nc_error = replay_all(file.ncid, args.definitions);
  if (result.nc_error == NC_NOERR)
    result.nc_error = args.has_layout
                          ? ncmpi__enddef(file.ncid, args.h_minfree, args.v_align, args.v_minfree, args.r_align)
                          : ncmpi_enddef(file.ncid);
  if (result.nc_error != NC_NOERR) return result;
  file.is_new = false;
  return impl_->header(file);
}

bool Client::define(const AmendArgs &args) {
  LocalFile &file = impl_->files.at(args.file);
  if (file.defined == NC_NOERR) file.defined = replay_all(file.ncid, args.definitions);
  return true;
}

Result<int> Client::amend(const AmendArgs &args) {
  LocalFile &file = impl_->files.at(args.file);
  impl_->make_collective(file);
  return replay_all(file.ncid, args.definitions);
}

Result<int> Client::fill_record(const FillRecordArgs &args) {
  LocalFile &file = impl_->files.at(args.file);
  impl_->make_collective(file);
  return ncmpi_fill_var_rec(file.ncid, args.varid, args.record);
}

Result<int> Client::sync(FileToken token, std::int64_t records) {
  impl_->make_collective(impl_->files.at(token));
  raise_records(impl_->files.at(token).ncid, records);
  return ncmpi_sync(impl_->files.at(token).ncid);
}

Result<int> Client::close(FileToken token, std::int64_t records, Closing, const Order &) {
  impl_->make_collective(impl_->files.at(token));
  raise_records(impl_->files.at(token).ncid, records);
  const int error = ncmpi_close(impl_->files.at(token).ncid);
  impl_->files.erase(token);
  return error;
}

Result<int> Client::abort(FileToken token) {
  impl_->make_collective(impl_->files.at(token));
  const LocalFile file = impl_->files.at(token);
  const int error = file.is_new ? ncmpi_close(file.ncid) : ncmpi_abort(file.ncid);  // its program deletes it
  impl_->files.erase(token);
  return error;
}

Result<nessie::Fd> Client::lend(FileToken, const FileIdentity &) {
  return nessie::Error{nessie::Code::kUnsupported, "there is no server that could lend it"};
}
void Client::flush_trace() {}
Status Client::settle(const SettleArgs &) { return {}; }
void Client::mark(FileToken, Mark, const Order &) {}

Status Client::note_native(const std::string &, const std::string &, bool) { return {}; }

namespace {

void begin(LocalFile &file) {
  if (!file.independent) ncmpi_begin_indep_data(file.ncid);
  file.independent = true;
}

}  // namespace

Mode Client::mode() const { return Mode::kCaching; }
bool Client::is_crowded() const { return false; }
bool Client::all_died() { return false; }
int Client::servers() const { return 1; }
Result<int> Client::finish_writes(FileToken) { return NC_NOERR; }
void Client::expect_return() {}

namespace {

template <class Move> int for_each(std::span<const Item> items, Move move) {
  int status = NC_NOERR;
  for (const Item &item : items) {
    auto *data = item.data.data();
    Piece piece;
    for (PieceReader pieces(item.pieces); pieces.next(piece);) {
      const std::vector<MPI_Offset> start(piece.start.begin(), piece.start.end());
      const std::vector<MPI_Offset> count(piece.count.begin(), piece.count.end());
      const std::vector<MPI_Offset> stride(piece.stride.begin(), piece.stride.end());
      const int error = move(piece.varid, start.data(), count.data(), stride.empty() ? nullptr : stride.data(), data);
      data += piece.elements() * item.layout->element_bytes;
      if (status == NC_NOERR) status = error;
    }
  }
  return status;
}

}  // namespace

Result<int> Client::write(FileToken token, std::int64_t, Order &, std::span<const Item> items) {
  LocalFile &file = impl_->files.at(token);
  begin(file);
  return for_each(items, [&](int varid, auto *start, auto *count, auto *stride, void *data) {
    return ncmpi_put_vars(file.ncid, varid, start, count, stride, data, 1, MPI_DATATYPE_NULL);
  });
}

Result<int> Client::read(FileToken token, std::int64_t, const Order &, std::span<const Item> items) {
  LocalFile &file = impl_->files.at(token);
  begin(file);
  return for_each(items, [&](int varid, auto *start, auto *count, auto *stride, void *data) {
    return ncmpi_get_vars(file.ncid, varid, start, count, stride, data, 1, MPI_DATATYPE_NULL);
  });
}

}  // namespace staging
