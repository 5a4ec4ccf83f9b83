// SPDX-License-Identifier: BSD-3-Clause
// What a file is defined as.
#include <services/staging/server/native_file.hpp>

#include <services/staging/server/header_records.hpp>

#include <pnetcdf.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace staging {

namespace {

int put_attribute(int ncid, const Definition &d) {
  if (d.length < 0 || static_cast<std::size_t>(d.length) > d.value.size() / bytes_of(d.type)) return NC_EINVAL;
  return ncmpi_put_att(ncid, d.varid, d.name.c_str(), d.type, d.length, d.value.data());
}

int define_fill(int ncid, const Definition &d) {
  nc_type type = NC_NAT;
  if (int error = ncmpi_inq_vartype(ncid, d.varid, &type); error != NC_NOERR) return error;
  const bool usable = d.value.size() >= static_cast<std::size_t>(bytes_of(type));
  return ncmpi_def_var_fill(ncid, d.varid, d.type, usable ? d.value.data() : nullptr);
}

int apply(int ncid, const Definition &d) {
  int id = 0;
  switch (d.kind) {
    case DefinitionKind::kDefDim: return ncmpi_def_dim(ncid, d.name.c_str(), d.length, &id);
    case DefinitionKind::kDefVar:
      return ncmpi_def_var(ncid, d.name.c_str(), d.type, static_cast<int>(d.dims.size()), d.dims.data(), &id);
    case DefinitionKind::kRenameDim: return ncmpi_rename_dim(ncid, d.varid, d.new_name.c_str());
    case DefinitionKind::kRenameVar: return ncmpi_rename_var(ncid, d.varid, d.new_name.c_str());
    case DefinitionKind::kRenameAtt: return ncmpi_rename_att(ncid, d.varid, d.name.c_str(), d.new_name.c_str());
    case DefinitionKind::kPutAtt: return put_attribute(ncid, d);
    case DefinitionKind::kDelAtt: return ncmpi_del_att(ncid, d.varid, d.name.c_str());
    case DefinitionKind::kSetFill: return ncmpi_set_fill(ncid, d.type, nullptr);
    case DefinitionKind::kDefVarFill: return define_fill(ncid, d);
    default: return NC_EINVAL;
  }
}

bool has_attribute(int ncid, int varid, const std::string &name) {
  int id = 0;
  return ncmpi_inq_attid(ncid, varid, name.c_str(), &id) == NC_NOERR;
}

/// Of what is legal in data mode, and cannot be carried out twice, whether it has been.
bool is_carried_out(int ncid, const Definition &d) {
  std::array<char, NC_MAX_NAME + 1> name{};
  switch (d.kind) {
    case DefinitionKind::kRenameDim:
      return ncmpi_inq_dimname(ncid, d.varid, name.data()) == NC_NOERR && d.new_name == name.data();
    case DefinitionKind::kRenameVar:
      return ncmpi_inq_varname(ncid, d.varid, name.data()) == NC_NOERR && d.new_name == name.data();
    case DefinitionKind::kRenameAtt:
      return has_attribute(ncid, d.varid, d.new_name) && !has_attribute(ncid, d.varid, d.name);
    default: return false;
  }
}

}  // namespace

int NativeFile::amend(const std::vector<Definition> &definitions, std::size_t &done) {
  const Changing changing(*this);
  undone_ = Undone::kAll;
  errno = 0;
  for (; done < definitions.size(); ++done) {
    const int error = note_errno(apply(ncid_, definitions[done]));
    if (error == NC_NOERR) continue;
    if (definitions[done].kind != DefinitionKind::kPutAtt) undone_ = Undone::kLost;
    return error;
  }
  if (!defining_ && !new_) note_header();
  return NC_NOERR;
}

int NativeFile::amend(const std::vector<Definition> &definitions) {
  std::size_t done = 0;
  return amend(definitions, done);
}

int NativeFile::amend_again(const std::vector<Definition> &definitions) {
  const Changing changing(*this);
  for (const auto &definition : definitions) {
    if (is_carried_out(ncid_, definition)) continue;
    if (int error = note_errno(apply(ncid_, definition)); error != NC_NOERR) return error;
  }
  if (!defining_ && !new_) note_header();
  return NC_NOERR;
}

// When ending define mode fails, native PnetCDF stays there, and can be asked once more, if the file is new; otherwise
// it has forgotten which variables were there before, and where. Fill values that cannot be written it takes no notice
// of, nor, with some MPI-IOs, of a header, and leaves define mode.
int NativeFile::end_define(const EndDefArgs &args, bool again) {
  const Changing changing(*this);
  errno = 0;
  if (!again || undone_ == Undone::kAll) {
    undone_ = Undone::kAll;
    if (int error = note_errno(begin_define(args)); error != NC_NOERR) return error;
  }
  const int error = note_errno(undone_ == Undone::kRest ? make_up_for(args) : leave_define(args));
  if (error == NC_NOERR) note_header();
  return error;
}

int NativeFile::begin_define(const EndDefArgs &args) {
  if (!new_ && !defining_) {
    if (int error = see_records(args.num_records); error != NC_NOERR) return error;
    first_new_ = 0;
    if (int error = ncmpi_inq_nvars(ncid_, &first_new_); error != NC_NOERR) return error;
    if (int error = ncmpi_redef(ncid_); error != NC_NOERR) return error;
    if (int error = find_fill_modes(); error != NC_NOERR) return error;
  }
  defining_ = true;  // and stays so if an error follows, as natively
  const int error = amend(args.definitions);
  undone_ = Undone::kEnd;
  return error;
}

int NativeFile::leave_define(const EndDefArgs &args) {
  const auto before = bytes_put();
  errno = 0;
  const int error = args.has_layout ? ncmpi__enddef(ncid_, args.h_minfree, args.v_align, args.v_minfree, args.r_align)
                                    : ncmpi_enddef(ncid_);
  const bool is_whole = !errno_may_pass(errno) && bytes_put() > before;
  if (error != NC_NOERR) {
    if (!new_) undone_ = Undone::kLost;
    return error;
  }
  new_ = defining_ = false;
  if (is_whole) return NC_NOERR;
  undone_ = Undone::kRest;
  return NC_EWRITE;
}

/// Of a file that has left define mode, but for its header and its fill values. Where it was laid out just now, this
/// moves nothing.
int NativeFile::make_up_for(const EndDefArgs &args) {
  if (int error = ncmpi_redef(ncid_); error != NC_NOERR) return error;
  defining_ = true;
  if (int error = leave_define(args); error != NC_NOERR) return error;
  return fill_new_variables();
}

int NativeFile::fill_new_variables() {
  std::vector<Variable> all;
  if (int error = variables(all); error != NC_NOERR) return error;
  for (const auto &variable : all) {
    int no_fill = 1;
    if (int error = ncmpi_inq_var_fill(ncid_, variable.varid, &no_fill, nullptr); error != NC_NOERR) return error;
    if (variable.varid < first_new_ || no_fill != 0) continue;
    if (int error = fill_variable(variable); error != NC_NOERR) return error;
  }
  return NC_NOERR;
}

/// As native PnetCDF fills a variable that is new.
int NativeFile::fill_variable(const Variable &variable) {
  if (variable.is_record) {
    for (std::int64_t record = 0; record < num_records(); ++record)
      if (int error = fill_record(variable.varid, record); error != NC_NOERR) return error;
    return NC_NOERR;
  }
  constexpr std::int64_t kAtOnce = 128 << 10;
  std::array<std::byte, 8> value{};
  int no_fill = 0;
  if (int error = ncmpi_inq_var_fill(ncid_, variable.varid, &no_fill, value.data()); error != NC_NOERR) return error;
  const auto elements = variable.extent_elements();
  std::vector<std::byte> some;
  for (std::int64_t i = 0; i < std::min(kAtOnce, elements); ++i)
    some.insert(some.end(), value.begin(), value.begin() + variable.element_bytes);
  for (std::int64_t begin = 0; begin < elements; begin += kAtOnce)
    for (const auto &box : boxes_of(variable, {begin, std::min(begin + kAtOnce, elements)}))
      if (int error = write(variable.varid, {box}, some.data()); error != NC_NOERR) return error;
  return NC_NOERR;
}

std::int64_t NativeFile::bytes_put() const {
  MPI_Offset bytes = 0;
  ncmpi_inq_put_size(ncid_, &bytes);
  return bytes;
}

/// Keeps the header as it is now.
void NativeFile::note_header() {
  MPI_Offset size = 0;
  if (ncmpi_inq_header_size(ncid_, &size) != NC_NOERR) return header_.clear();
  header_.resize(static_cast<std::size_t>(size));
  if (::pread(fd_.get(), header_.data(), header_.size(), 0) != size) header_.clear();
}

int NativeFile::write_header_again(std::int64_t num_records) {
  const Changing changing(*this);
  errno = 0;
  if (header_.empty()) return NC_NOERR;
  const std::size_t behind = header_[3] == 5 ? 12 : 8;  // the number of records
  const auto put = [&](std::size_t from, std::size_t to) {
    return ::pwrite(fd_.get(), header_.data() + from, to - from, static_cast<off_t>(from)) ==
           static_cast<ssize_t>(to - from);
  };
  if (!put(0, 4) || !put(behind, header_.size())) return note_errno(NC_EWRITE);
  const auto records = static_cast<std::uint64_t>(std::max(num_records, records_in_header()));
  return write_num_records(fd_.get(), records) ? NC_NOERR : note_errno(NC_EWRITE);
}

/// Of one in define mode.
int NativeFile::find_fill_modes() { return amend(std::exchange(lost_fill_modes_, {})); }

}  // namespace staging
