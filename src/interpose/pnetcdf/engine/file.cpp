// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/file.hpp>

#include <interpose/pnetcdf/engine/session.hpp>

#include <base/log.hpp>

#include <algorithm>
#include <utility>

namespace interpose {

namespace {

constexpr std::size_t kSentAhead = 256;  // definitions

int bytes_of(nc_type type) {
  switch (type) {
    case NC_BYTE:
    case NC_CHAR:
    case NC_UBYTE: return 1;
    case NC_SHORT:
    case NC_USHORT: return 2;
    case NC_INT:
    case NC_UINT:
    case NC_FLOAT: return 4;
    default: return 8;
  }
}

Variable describe(int mirror, int varid) {
  Variable variable;
  int dimensions = 0, unlimited = -1;
  ncmpi_inq_var(mirror, varid, nullptr, &variable.type, &dimensions, nullptr, nullptr);
  std::vector<int> dimids(static_cast<std::size_t>(dimensions));
  ncmpi_inq_vardimid(mirror, varid, dimids.data());
  ncmpi_inq_unlimdim(mirror, &unlimited);
  variable.layout.varid = varid;
  variable.layout.element_bytes = bytes_of(variable.type);
  variable.layout.is_record = dimensions > 0 && unlimited >= 0 && dimids[0] == unlimited;
  for (const int dimid : dimids) {
    MPI_Offset length = 0;
    ncmpi_inq_dimlen(mirror, dimid, &length);
    variable.layout.shape.push_back(length);
  }
  return variable;
}

}  // namespace

File::File(std::unique_ptr<Communicator> ranks, OpenedAs opened_as, staging::FileToken token)
    : is_alone_(ranks->size() == 1), ranks_(std::move(ranks)), opened_as_(std::move(opened_as)), token_(token) {
  begin();
}

void File::begin() {
  if (!Session::get().connected()) return;
  ranks_->begin(Session::get().servers(), [this] {
    const auto answer = Session::get().client()->finish_writes(token_);
    if (int error = code_of(answer, "writing", NC_EWRITE)) untold_error_ = error;
  });
}

void File::begin_anew(staging::FileToken token) {
  token_ = token;
  ranks_ = std::make_unique<Communicator>();
  is_alone_ = true;
  is_inherited_ = false;
  begin();
}

void File::become_native(int native_id, nessie::Fd named) {
  native_id_ = native_id;
  named_ = std::move(named);
}

const Variable *File::variable(int varid) {
  if (varid < 0) return nullptr;
  if (varid >= static_cast<int>(variables_.size())) {
    int defined = 0;
    ncmpi_inq_nvars(mirror.id(), &defined);
    for (int next = static_cast<int>(variables_.size()); next < defined; ++next)
      variables_.push_back(describe(mirror.id(), next));
    if (varid >= defined) return nullptr;
  }
  return &variables_[static_cast<std::size_t>(varid)];
}

std::int64_t File::data_bytes() {
  std::int64_t bytes = 0;
  for (int varid = 0; const Variable *one = variable(varid); ++varid)
    bytes += one->layout.extent_elements() * one->layout.element_bytes * (one->layout.is_record ? num_records : 1);
  return bytes;
}

int File::count_record_variables() {
  int defined = 0;
  ncmpi_inq_nvars(mirror.id(), &defined);
  variable(defined - 1);
  const auto is_record = [](const Variable &variable) { return variable.layout.is_record; };
  return static_cast<int>(std::count_if(variables_.begin(), variables_.end(), is_record));
}

std::vector<std::byte> File::fill_value(int varid) const {
  std::vector<std::byte> value(8);
  ncmpi_inq_var_fill(mirror.id(), varid, nullptr, value.data());
  return value;
}

bool File::no_fill(int varid) const {
  if (varid < static_cast<int>(no_fill_.size())) return no_fill_[static_cast<std::size_t>(varid)];
  int no_fill = 0;
  ncmpi_inq_var_fill(mirror.id(), varid, &no_fill, nullptr);
  return no_fill != 0;
}

void File::keep_fill_modes() {
  int defined = 0;
  ncmpi_inq_nvars(mirror.id(), &defined);
  for (int varid = static_cast<int>(no_fill_.size()); varid < defined; ++varid) no_fill_.push_back(no_fill(varid));
}

void File::set_fill_modes(bool no_fill) { no_fill_.assign(no_fill_.size(), no_fill); }

void File::set_fill_mode(int varid, bool no_fill) {
  if (varid < static_cast<int>(no_fill_.size())) no_fill_[static_cast<std::size_t>(varid)] = no_fill;
}

// The server defines a new file while its program goes on to define: enddef waits for the rest only.
void File::log(staging::Definition definition) {
  if (!ranks_->is_root()) return;
  log_.push_back(std::move(definition));
  if (!is_new || log_.size() % kSentAhead != 0) return;
  staging::AmendArgs args{token_, take_log()};
  if (!Session::get().client()->define(args)) log_ = std::move(args.definitions);
}

std::vector<staging::Definition> File::take_log() { return std::exchange(log_, {}); }

void File::raise_records(std::int64_t records) {
  if (records <= num_records) return;
  num_records = records;
  count_records_written();
}

void File::count_records_written() {
  if (ranks_->is_root()) put_bytes += format < 5 ? 4 : 8;
}

void File::count_header_written() {
  MPI_Offset size = 0;
  if (ranks_->is_root() && ncmpi_inq_header_size(mirror.id(), &size) == NC_NOERR) put_bytes += size;
}

int File::lost(const nessie::Error &error, std::string_view doing, int code) {
  if (!said_lost_) nessie::log::error("{}: {}: {}", opened_as_.path, doing, error.to_string());
  said_lost_ = true;
  return code;
}

}  // namespace interpose
