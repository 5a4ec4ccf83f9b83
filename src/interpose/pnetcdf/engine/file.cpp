// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/file.hpp>

#include <interpose/pnetcdf/engine/movement.hpp>
#include <interpose/pnetcdf/engine/opening.hpp>
#include <interpose/pnetcdf/engine/session.hpp>

#include <base/credential.hpp>
#include <base/log.hpp>

#include <algorithm>
#include <new>
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
    if (int error = finish_writes(*this)) untold_error_ = error;
  });
}

bool File::inherit() {
  const auto token = nessie::random_u64();
  if (const auto why = open_for_child(*this, token); !why.empty()) {
    nessie::log::error("{}: a child of the process that has it open cannot use it: {}", opened_as_.path, why);
    return false;
  }
  token_ = token;
  ranks_ = std::make_unique<Communicator>();
  is_alone_ = true;
  is_inherited_ = false;
  begin();
  return true;
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

File *FileTable::find(int ncid) {
  File *file = at(ncid);
  return file == nullptr || !file->is_inherited() || file->inherit() ? file : nullptr;
}

File *FileTable::at(int ncid) const {
  if (ncid < 0 || ncid >= static_cast<int>(files_.size())) return nullptr;
  return files_[static_cast<std::size_t>(ncid)].load(std::memory_order_acquire);
}

bool FileTable::is_past_us(int ncid) {
  std::vector<int> open(NC_MAX_NFILES);
  int count = 0;
  if (ncmpi_inq_files_opened(&count, open.data()) != NC_NOERR) return false;
  open.resize(static_cast<std::size_t>(count));
  const std::lock_guard lock(mutex_);
  const auto is_its = [&](const auto &place) { return place.load() != nullptr && place.load()->id() == ncid; };
  return std::ranges::find(open, ncid) != open.end() && std::ranges::none_of(files_, is_its);
}

int FileTable::add(std::unique_ptr<File> &file) {
  const std::lock_guard lock(mutex_);
  const auto is_free = [](const auto &place) { return place.load() == nullptr; };
  auto place = files_.begin() + file->id();
  if (!is_free(*place)) place = std::ranges::find_if(files_, is_free);
  if (place == files_.end()) return -1;
  place->store(file.release(), std::memory_order_release);
  return static_cast<int>(place - files_.begin());
}

void FileTable::remove(const File &file) {
  std::unique_ptr<File> removed;  // closed when others may go on
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find_if(files_, [&](const auto &place) { return place.load() == &file; });
  if (place != files_.end()) removed.reset(place->exchange(nullptr));
}

std::vector<int> FileTable::ids() const {
  std::vector<int> open;
  for (std::size_t id = 0; id < files_.size(); ++id)
    if (files_[id].load() != nullptr) open.push_back(static_cast<int>(id));
  return open;
}

bool FileTable::is_full() const {
  return std::ranges::all_of(files_, [](const auto &place) { return place.load() != nullptr; });
}

void FileTable::begin_in_child() {
  new (&mutex_) std::mutex;
  for (auto &place : files_)
    if (File *file = place.load(); file != nullptr) file->begin_in_child();
}

FileTable &files() {
  // Never destroyed: after MPI_Finalize nothing may call MPI any more, and closing files does.
  static FileTable &table = *new FileTable;
  return table;
}

}  // namespace interpose
