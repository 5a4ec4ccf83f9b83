// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/native_file.hpp>

#include <fmt/format.h>
#include <mpi.h>
#include <pnetcdf.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <tuple>

namespace staging {

namespace {

constexpr std::string_view kDataSieving = "romio_ds_write", kCollectiveBuffering = "romio_cb_";
/// Otherwise PnetCDF turns the bytes around where they lie, and back afterwards: pages would change while they drain,
/// and it takes longer.
constexpr std::string_view kSwapInPlace = "nc_in_place_swap", kSwapDefault = "auto";

/// Whether a hint is about what MPI-IO does with the data of several processes. A server is one, and ROMIO's ways for
/// several would read, and write again, what lies between its pieces, which may be another server's; or never end.
bool is_withheld(std::string_view key) {
  return key == kDataSieving || key == kSwapInPlace || key.starts_with(kCollectiveBuffering) ||
         key == "romio_no_indep_rw";
}

std::vector<Hint> withheld_of(const std::vector<Hint> &hints) {
  std::vector<Hint> withheld;
  std::ranges::copy_if(hints, std::back_inserter(withheld), [](const Hint &hint) { return is_withheld(hint.key); });
  return withheld;
}

/// An MPI_Info with the program's hints, but those that are withheld.
class Info {
 public:
  explicit Info(const std::vector<Hint> &hints) {
    MPI_Info_create(&info_);
    for (const auto &hint : hints)
      if (usable(hint)) MPI_Info_set(info_, hint.key.c_str(), hint.value.c_str());
    MPI_Info_set(info_, kDataSieving.data(), "disable");
    MPI_Info_set(info_, kSwapInPlace.data(), "disable");
  }
  ~Info() { MPI_Info_free(&info_); }
  Info(const Info &) = delete;
  operator MPI_Info() const { return info_; }

 private:
  static bool usable(const Hint &hint) {
    return !is_withheld(hint.key) && !hint.key.empty() && hint.key.size() <= MPI_MAX_INFO_KEY && !hint.value.empty() &&
           hint.value.size() < MPI_MAX_INFO_VAL;
  }
  MPI_Info info_;
};

/// A name of an open file that PnetCDF and MPI-IO take, whatever it is called.
std::string path_of(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

/// The name by which the kernel knows an open file now.
std::string name_of(int fd) {
  std::array<char, PATH_MAX> name{};
  const auto size = ::readlink(path_of(fd).c_str(), name.data(), name.size());
  return {name.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

/// The same from `at` on, where the kernel does not do it.
bool copy_by_hand(int from, int to, off_t at) {
  std::vector<char> some(1 << 20);
  for (;;) {
    const auto got = ::pread(from, some.data(), some.size(), at);
    if (got <= 0) return got == 0;
    if (::pwrite(to, some.data(), static_cast<std::size_t>(got), at) != got) return false;
    at += got;
  }
}

/// Copies all that is in a file to the beginning of another one.
bool copy_file(int from, int to) {
  loff_t read_at = 0, write_at = 0;
  struct stat status {};
  if (::fstat(from, &status) != 0) return false;
  while (read_at < status.st_size) {
    const auto size = static_cast<std::size_t>(status.st_size - read_at);
    const auto copied = ::copy_file_range(from, &read_at, to, &write_at, size, 0);
    if (copied < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP))
      return copy_by_hand(from, to, read_at);
    if (copied <= 0) return false;
  }
  return true;
}

int type_bytes(nc_type type) {
  switch (type) {
    case NC_SHORT:
    case NC_USHORT: return 2;
    case NC_INT:
    case NC_UINT:
    case NC_FLOAT: return 4;
    case NC_DOUBLE:
    case NC_INT64:
    case NC_UINT64: return 8;
    default: return 1;
  }
}

/// The width of the header's number of records, big-endian at offset 4: 4 bytes, 8 in CDF-5. 0: no such file.
std::size_t records_width(int fd) {
  std::array<char, 4> magic{};
  if (::pread(fd, magic.data(), magic.size(), 0) != 4 || std::memcmp(magic.data(), "CDF", 3) != 0) return 0;
  return magic[3] == 5 ? 8 : 4;
}

bool read_num_records(int fd, std::uint64_t &value) {
  std::array<unsigned char, 8> bytes{};
  const auto width = records_width(fd);
  if (width == 0 || ::pread(fd, bytes.data(), width, 4) != static_cast<ssize_t>(width)) return false;
  value = 0;
  for (std::size_t i = 0; i < width; ++i) value = value << 8 | bytes[i];
  return true;
}

bool write_num_records(int fd, std::uint64_t value) {
  std::array<unsigned char, 8> bytes{};
  const auto width = records_width(fd);
  for (std::size_t i = 0; i < width; ++i) bytes[i] = static_cast<unsigned char>(value >> 8 * (width - 1 - i));
  return width != 0 && ::pwrite(fd, bytes.data(), width, 4) == static_cast<ssize_t>(width);
}

/// Whether a program has emptied the file, or written over its beginning.
bool lost_header(int fd) {
  std::array<char, 12> begin{};
  const auto size = ::pread(fd, begin.data(), begin.size(), 0);
  return size >= 0 && (size < static_cast<ssize_t>(begin.size()) || std::memcmp(begin.data(), "CDF", 3) != 0);
}

MPI_Offset offset(std::int64_t n) { return static_cast<MPI_Offset>(n); }

std::vector<MPI_Offset> offsets(const Extents &extents) {
  std::vector<MPI_Offset> out(extents.begin(), extents.end());
  if (out.empty()) out.push_back(0);  // a scalar has none, but PnetCDF looks at the pointer
  return out;
}

}  // namespace

bool errno_may_pass(int system_error) {
  constexpr std::array faults = {ENOSPC, EDQUOT, EIO, ESTALE, ENETDOWN, ETIMEDOUT};
  return std::ranges::find(faults, system_error) != faults.end();
}

bool FileStamp::operator==(const FileStamp &other) const {
  const auto tied = [](const FileStamp &one) {
    return std::tie(one.modified.tv_sec, one.modified.tv_nsec, one.changed.tv_sec, one.changed.tv_nsec, one.size_bytes);
  };
  return tied(*this) == tied(other);
}

/// What happens to the file as long as one of these exists is this process's doing.
class NativeFile::Changing {
 public:
  explicit Changing(NativeFile &file) : file_(file) {
    const std::lock_guard lock(file_.stamp_mutex_);
    if (file_.changing_++ == 0) file_.look_at_stamp();
  }
  ~Changing() {
    const std::lock_guard lock(file_.stamp_mutex_);
    if (--file_.changing_ == 0) file_.stamp_ = file_.stamp_now();
  }
  Changing(const Changing &) = delete;

 private:
  NativeFile &file_;
};

FileStamp NativeFile::stamp_now() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return {};
  return {status.st_mtim, status.st_ctim, status.st_size};
}

void NativeFile::look_at_stamp() {
  const auto now = stamp_now();
  if (now == stamp_) return;
  ++changes_by_others_;
  stamp_ = now;
}

std::uint64_t NativeFile::changes_by_others() {
  const std::lock_guard lock(stamp_mutex_);
  if (changing_ == 0) look_at_stamp();
  return changes_by_others_;
}

FileStamp NativeFile::stamp() {
  const std::lock_guard lock(stamp_mutex_);
  return stamp_;
}

NativeFile::~NativeFile() {
  if (ncid_ >= 0) close(0);
}

NativeFile::Opened NativeFile::create(nessie::Fd &&file, int cmode, const std::vector<Hint> &hints) {
  int ncid = -1;
  const Info info(hints);
  const int error = ncmpi_create(MPI_COMM_SELF, path_of(file.get()).c_str(), cmode & ~NC_NOCLOBBER, info, &ncid);
  if (error != NC_NOERR) return {error, nullptr};
  return {NC_NOERR, std::unique_ptr<NativeFile>(new NativeFile(ncid, std::move(file), withheld_of(hints), true, true))};
}

NativeFile::Opened NativeFile::open(nessie::Fd &&file, int omode, const std::vector<Hint> &hints) {
  int ncid = -1;
  const Info info(hints);
  const bool writable = (omode & NC_WRITE) != 0;
  const int error = ncmpi_open(MPI_COMM_SELF, path_of(file.get()).c_str(), omode, info, &ncid);
  if (error != NC_NOERR && error != NC_ENULLPAD) return {error, nullptr};
  return {error,
          std::unique_ptr<NativeFile>(new NativeFile(ncid, std::move(file), withheld_of(hints), writable, false))};
}

namespace {

int put_attribute(int ncid, const Definition &d) {
  if (d.length < 0 || static_cast<std::size_t>(d.length) > d.value.size() / type_bytes(d.type)) return NC_EINVAL;
  return ncmpi_put_att(ncid, d.varid, d.name.c_str(), d.type, offset(d.length), d.value.data());
}

int define_fill(int ncid, const Definition &d) {
  nc_type type = NC_NAT;
  if (int error = ncmpi_inq_vartype(ncid, d.varid, &type); error != NC_NOERR) return error;
  const bool usable = d.value.size() >= static_cast<std::size_t>(type_bytes(type));
  return ncmpi_def_var_fill(ncid, d.varid, d.type, usable ? d.value.data() : nullptr);
}

int apply(int ncid, const Definition &d) {
  int id = 0;
  switch (d.kind) {
    case DefinitionKind::kDefDim: return ncmpi_def_dim(ncid, d.name.c_str(), offset(d.length), &id);
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

std::string NativeFile::renamed_from(const std::string &path) const {
  struct stat own {};
  if (::fstat(fd_.get(), &own) != 0) return {};
  const auto is_found_by = [&](const std::string &name) {
    struct stat found {};
    return ::stat(name.c_str(), &found) == 0 && found.st_dev == own.st_dev && found.st_ino == own.st_ino;
  };
  std::error_code error;
  if (is_found_by(path)) return {};
  auto name = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd_.get()), error).string();
  return is_found_by(name) ? name : std::string();
}

int NativeFile::describe(HeaderResult &result) const {
  MPI_Offset size = 0;
  if (int error = ncmpi_inq_header_size(ncid_, &size); error != NC_NOERR) return error;
  result.header.resize(static_cast<std::size_t>(size));
  const auto got = ::pread(fd_.get(), result.header.data(), result.header.size(), 0);
  if (got != size) return NC_EREAD;
  MPI_Offset read = 0;
  if (ncmpi_inq_get_size(ncid_, &read) == NC_NOERR) result.bytes_read = read;
  result.num_records = num_records();
  result.identity = identity();
  MPI_Info info = MPI_INFO_NULL;
  if (ncmpi_inq_file_info(ncid_, &info) != NC_NOERR) return NC_NOERR;
  int keys = 0, found = 0;
  std::array<char, MPI_MAX_INFO_KEY + 1> key{};
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  MPI_Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    MPI_Info_get_nthkey(info, i, key.data());
    MPI_Info_get(info, key.data(), MPI_MAX_INFO_VAL, value.data(), &found);
    const auto is_same = [&](const Hint &hint) { return hint.key == key.data(); };
    if (found == 0 || key.data() == kDataSieving || std::ranges::any_of(withheld_, is_same)) continue;
    result.hints.push_back({key.data(), key.data() == kSwapInPlace ? kSwapDefault.data() : value.data()});
  }
  std::ranges::copy(withheld_, std::back_inserter(result.hints));
  MPI_Info_free(&info);
  return NC_NOERR;
}

int NativeFile::variables(std::vector<Variable> &variables) {
  int count = 0, unlimited = -1;
  if (int error = ncmpi_inq(ncid_, nullptr, &count, nullptr, &unlimited); error != NC_NOERR) return error;
  for (int varid = 0; varid < count; ++varid) {
    std::array<char, NC_MAX_NAME + 1> name{};
    int dims = 0;
    if (int error = ncmpi_inq_varndims(ncid_, varid, &dims); error != NC_NOERR) return error;
    std::vector<int> ids(static_cast<std::size_t>(dims) + 1);
    Variable variable;
    if (int error = ncmpi_inq_var(ncid_, varid, name.data(), &variable.type, nullptr, ids.data(), nullptr);
        error != NC_NOERR)
      return error;
    variable.varid = varid;
    variable.name = name.data();
    variable.element_bytes = type_bytes(variable.type);
    variable.is_record = dims > 0 && ids[0] == unlimited;
    for (int d = 0; d < dims; ++d) {
      MPI_Offset length = 0;
      if (!(d == 0 && variable.is_record)) ncmpi_inq_dimlen(ncid_, ids[static_cast<std::size_t>(d)], &length);
      variable.shape.push_back(length);
    }
    has_records_ = has_records_ || variable.is_record;
    variables.push_back(std::move(variable));
  }
  return NC_NOERR;
}

std::int64_t NativeFile::num_records() const {
  int unlimited = -1;
  MPI_Offset length = 0;
  if (ncmpi_inq_unlimdim(ncid_, &unlimited) == NC_NOERR && unlimited >= 0) ncmpi_inq_dimlen(ncid_, unlimited, &length);
  return length;
}

/// Keeps what errno says after a write. Where it was lost on the way up, a file system without room explains itself.
int NativeFile::note_errno(int nc_error) {
  const int cause = errno;
  if (nc_error == NC_NOERR) return nc_error;
  struct statvfs room {};
  constexpr std::array likely = {EFBIG, EACCES, EPERM, EROFS, EBADF};
  write_errno_ = errno_may_pass(cause) || std::ranges::find(likely, cause) != likely.end() ? cause : 0;
  if (write_errno_ == 0 && ::fstatvfs(fd_.get(), &room) == 0 && room.f_bavail == 0) write_errno_ = ENOSPC;
  return nc_error;
}

std::int64_t NativeFile::records_in_header() const {
  std::uint64_t present = 0;
  return read_num_records(fd_.get(), present) ? static_cast<std::int64_t>(present) : 0;
}

template <class Put> int NativeFile::put(Put put) {
  const Changing changing(*this);
  const auto before = has_records_ ? records_in_header() : 0;
  if (has_records_) see_records(before);
  errno = 0;
  const int error = note_errno(put());
  if (has_records_) correct_num_records(before);
  return error;
}

/// PnetCDF has written the number of records that it knows of. Another server may have written a larger one; and of a
/// record that it counts there may be a part only.
void NativeFile::correct_num_records(std::int64_t before) {
  const auto own = num_records(), present = records_in_header();
  const auto correct = std::max(before, std::min(own, allowed_records_.load()));
  if (present < correct || (present == own && own > correct))
    write_num_records(fd_.get(), static_cast<std::uint64_t>(correct));
}

/// Whether a strided access goes over the records of a variable that has no other dimension. PnetCDF 1.12.3 takes its
/// elements for neighbours in the file.
bool NativeFile::strides_over_records(const Piece &piece) const {
  if (piece.stride.size() != 1 || piece.stride[0] == 1 || piece.count[0] < 2) return false;
  int dimid = -1, unlimited = -1;
  ncmpi_inq_vardimid(ncid_, piece.varid, &dimid);
  ncmpi_inq_unlimdim(ncid_, &unlimited);
  return unlimited >= 0 && dimid == unlimited;
}

template <class Transfer> int NativeFile::each_record(const Piece &piece, std::byte *data, Transfer transfer) {
  nc_type type = NC_NAT;
  ncmpi_inq_vartype(ncid_, piece.varid, &type);
  for (std::int64_t i = 0; i < piece.count[0]; ++i) {
    const Piece record{piece.varid, {piece.start[0] + i * piece.stride[0]}, {1}, {}};
    if (int error = transfer(record, data + i * type_bytes(type)); error != NC_NOERR) return error;
  }
  return NC_NOERR;
}

int NativeFile::write(const Piece &piece, std::byte *data) {
  if (strides_over_records(piece))
    return each_record(piece, data, [&](const Piece &record, std::byte *at) { return write(record, at); });
  const auto start = offsets(piece.start), count = offsets(piece.count);
  if (piece.stride.empty())
    return put(
        [&] { return ncmpi_put_vara_all(ncid_, piece.varid, start.data(), count.data(), data, 0, MPI_DATATYPE_NULL); });
  const auto stride = offsets(piece.stride);
  return put([&] {
    return ncmpi_put_vars_all(ncid_, piece.varid, start.data(), count.data(), stride.data(), data, 0,
                              MPI_DATATYPE_NULL);
  });
}

namespace {

/// Boxes as ncmpi_put_varn and ncmpi_get_varn take them.
struct Lists {
  explicit Lists(const std::vector<Box> &boxes) {
    extents.reserve(2 * boxes.size());
    for (const auto &box : boxes) {
      starts.push_back(extents.emplace_back(offsets(box.start)).data());
      counts.push_back(extents.emplace_back(offsets(box.count)).data());
    }
  }
  int size() const { return static_cast<int>(starts.size()); }
  std::vector<std::vector<MPI_Offset>> extents;
  std::vector<MPI_Offset *> starts, counts;
};

}  // namespace

int NativeFile::write(int varid, const std::vector<Box> &boxes, std::byte *data) {
  if (boxes.size() == 1) return write(Piece{varid, boxes[0].start, boxes[0].count, {}}, data);
  const Lists lists(boxes);
  return put([&] {
    return ncmpi_put_varn_all(ncid_, varid, lists.size(), lists.starts.data(), lists.counts.data(), data, 0,
                              MPI_DATATYPE_NULL);
  });
}

int NativeFile::write(const std::vector<Block> &blocks) {
  std::vector<int> requests, statuses(blocks.size());
  const auto post = [&](const Block &block) {
    const auto start = offsets(block.box.start), count = offsets(block.box.count);
    return ncmpi_iput_vara(ncid_, block.varid, start.data(), count.data(), block.data, 0, MPI_DATATYPE_NULL,
                           &requests.emplace_back(NC_REQ_NULL));
  };
  return put([&] {
    for (const auto &block : blocks)
      if (const int error = post(block); error != NC_NOERR)
        return ncmpi_cancel(ncid_, NC_REQ_ALL, nullptr, nullptr), error;
    const int error = ncmpi_wait_all(ncid_, static_cast<int>(requests.size()), requests.data(), statuses.data());
    const auto failed = std::ranges::find_if(statuses, [](int status) { return status != NC_NOERR; });
    return error != NC_NOERR || failed == statuses.end() ? error : *failed;
  });
}

/// The first element that does not end before the end of the file: it and those behind it, which lie behind it in the
/// file, too, cannot be read.
std::int64_t NativeFile::first_missing(const Variable &variable) const {
  MPI_Offset begin = 0, record_bytes = 0;
  struct stat status {};
  const bool is_known = ncmpi_inq_varoffset(ncid_, variable.varid, &begin) == NC_NOERR &&
                        ncmpi_inq_recsize(ncid_, &record_bytes) == NC_NOERR && ::fstat(fd_.get(), &status) == 0;
  if (!is_known) return INT64_MAX;
  if (status.st_size <= begin) return 0;
  const std::int64_t bytes = status.st_size - begin, element_bytes = variable.element_bytes;
  if (!variable.is_record || record_bytes == 0) return bytes / element_bytes;
  const auto extent = variable.extent_elements();
  return bytes / record_bytes * extent + std::min<std::int64_t>(extent, bytes % record_bytes / element_bytes);
}

namespace {

/// Of data that were read, those of the elements from `first` on.
void clear_from(const Variable &variable, const Piece &piece, std::int64_t first, std::byte *data) {
  if (bounds(variable, piece).end <= first) return;
  for (RunCursor cursor(variable, piece); !cursor.done();) {
    const auto run = cursor.run();
    const auto there = std::clamp(first - run.begin, std::int64_t{0}, run.size());
    std::memset(data + there * variable.element_bytes, 0,
                static_cast<std::size_t>((run.size() - there) * variable.element_bytes));
    data += run.size() * variable.element_bytes;
    cursor.consume(run.size());
  }
}

}  // namespace

int NativeFile::read(const Variable &variable, const std::vector<Box> &boxes, std::int64_t known_records,
                     std::byte *data) {
  std::int64_t records = 0;
  for (const auto &box : boxes)
    if (variable.is_record) records = std::max(records, box.start[0] + box.count[0]);
  if (records <= known_records)
    if (int error = see_records(records); error != NC_NOERR) return error;
  const Lists lists(boxes);
  const auto missing = first_missing(variable);
  const int error = ncmpi_get_varn_all(ncid_, variable.varid, lists.size(), lists.starts.data(), lists.counts.data(),
                                       data, 0, MPI_DATATYPE_NULL);
  if (error != NC_NOERR) return error;
  for (const auto &box : boxes) {
    clear_from(variable, {variable.varid, box.start, box.count, {}}, missing, data);
    data += box.elements() * variable.element_bytes;
  }
  return NC_NOERR;
}

int NativeFile::read(const Variable &variable, const Piece &piece, std::int64_t known_records, std::byte *data) {
  if (variable.is_record && piece.count[0] > 0) {
    const auto stride = piece.step(0);
    const auto end = piece.start[0] + (piece.count[0] - 1) * stride + 1;
    if (end <= known_records)
      if (int error = see_records(end); error != NC_NOERR) return error;
  }
  const auto get = [&](const Piece &record, std::byte *at) { return read(variable, record, known_records, at); };
  if (strides_over_records(piece)) return each_record(piece, data, get);
  const auto start = offsets(piece.start), count = offsets(piece.count), stride = offsets(piece.stride);
  const auto missing = first_missing(variable);
  const int error = piece.stride.empty()
                        ? ncmpi_get_vara_all(ncid_, piece.varid, start.data(), count.data(), data, 0, MPI_DATATYPE_NULL)
                        : ncmpi_get_vars_all(ncid_, piece.varid, start.data(), count.data(), stride.data(), data, 0,
                                             MPI_DATATYPE_NULL);
  // What lies behind the end of a file reads as zeros, and never as what was in MPI-IO's memory before.
  if (error == NC_NOERR) clear_from(variable, piece, missing, data);
  return error;
}

// What another handle has written of a record is there before the record counts.
int NativeFile::read_present(const Variable &variable, const Box &box, std::byte *data) {
  return put([&] { return read(variable, {variable.varid, box.start, box.count, {}}, INT64_MAX, data); });
}

int NativeFile::fill_record(int varid, std::int64_t record) {
  const auto fill = [&] { return put([&] { return ncmpi_fill_var_rec(ncid_, varid, offset(record)); }); };
  const int error = fill();
  if (error != NC_ENOTFILL || lost_fill_modes_.empty()) return error;
  if (int failed = end_define({}); failed != NC_NOERR) return failed;
  return fill();
}

int NativeFile::raise_num_records(std::int64_t num_records) {
  const Changing changing(*this);
  errno = 0;
  std::uint64_t present = 0;
  if (num_records <= 0 || !writable_ || lost_header(fd_.get())) return NC_NOERR;  // natively nobody looks
  if (!read_num_records(fd_.get(), present)) return note_errno(NC_EREAD);
  if (present >= static_cast<std::uint64_t>(num_records)) return NC_NOERR;
  return write_num_records(fd_.get(), static_cast<std::uint64_t>(num_records)) ? NC_NOERR : note_errno(NC_EWRITE);
}

// PnetCDF reads the number of records when it opens a file, and never again.
int NativeFile::see_records(std::int64_t num_records) {
  if (num_records <= this->num_records()) return NC_NOERR;
  return writable_ ? extend_to(num_records) : reopen_to_read();
}

int NativeFile::reopen_to_read() {
  const Info info({});
  int ncid = -1;
  if (int error = ncmpi_open(MPI_COMM_SELF, path_of(fd_.get()).c_str(), NC_NOWRITE, info, &ncid); error != NC_NOERR)
    return error;
  ncmpi_close(ncid_);
  ncid_ = ncid;
  return NC_NOERR;
}

// Opening it again would lose what PnetCDF keeps in memory of a file that it has laid out, and with which it lays it
// out once more. Writing none of the records after the last has it know of them all; it then writes that number, which
// must not be less than what the header has.
int NativeFile::extend_to(std::int64_t num_records) {
  const Changing changing(*this);
  std::vector<Variable> all;
  if (int error = variables(all); error != NC_NOERR) return error;
  const auto record = std::ranges::find_if(all, [](const Variable &variable) { return variable.is_record; });
  if (record == all.end()) return NC_NOERR;
  std::vector<MPI_Offset> start(record->shape.size(), 0), count(record->shape.size(), 0);
  start[0] = std::max(num_records, records_in_header());
  const char nothing = 0;
  return ncmpi_put_vara_all(ncid_, record->varid, start.data(), count.data(), &nothing, 0, MPI_DATATYPE_NULL);
}

int NativeFile::sync() {
  const Changing changing(*this);
  errno = 0;
  return note_errno(ncmpi_sync(ncid_));
}

int NativeFile::close(std::int64_t num_records) {
  const Changing changing(*this);
  errno = 0;
  const int error = note_errno(ncmpi_close(ncid_));
  ncid_ = -1;
  const int raised = raise_num_records(num_records);
  return error != NC_NOERR ? error : raised;
}

int NativeFile::abort() {
  const int error = ncmpi_abort(ncid_);
  ncid_ = -1;
  return error;
}

// The directory, too: a new file is found after a power failure only if its name is on the disk.
int NativeFile::sync_to_disk() {
  if (::fdatasync(fd_.get()) != 0) return note_errno(NC_EWRITE);
  const std::string name = name_of(fd_.get());
  const nessie::Fd parent(::open(name.substr(0, name.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent) (void)::fsync(parent.get());
  return NC_NOERR;
}

void NativeFile::forget_cached() { (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); }

int NativeFile::save_to(const std::string &path) {
  const auto unfinished = path + ".part";
  const nessie::Fd copy(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool is_saved = copy && copy_file(fd_.get(), copy.get()) && ::fsync(copy.get()) == 0 &&
                        ::rename(unfinished.c_str(), path.c_str()) == 0;
  return is_saved ? NC_NOERR : NC_EWRITE;
}

bool NativeFile::restore(int file, const std::string &path) {
  const nessie::Fd saved(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  return saved && ::fstat(saved.get(), &status) == 0 && copy_file(saved.get(), file) &&
         ::ftruncate(file, status.st_size) == 0 && ::fsync(file) == 0;
}

// ncmpi_abort() would remove the file, and only ncmpi_close() lets go of it otherwise: of what MPI-IO holds for it, 16
// MiB with ROMIO. That writes a header, which goes again.
void NativeFile::date_back(const timespec &when) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return;
  const auto &changed = status.st_mtim;
  if (std::tie(changed.tv_sec, changed.tv_nsec) <= std::tie(when.tv_sec, when.tv_nsec)) return;
  const Changing changing(*this);
  const timespec times[] = {{0, UTIME_OMIT}, when};
  (void)::futimens(fd_.get(), times);
}

int NativeFile::close_and_empty() {
  const int error = ncmpi_close(ncid_);
  ncid_ = -1;
  return ::ftruncate(fd_.get(), 0) == 0 ? error : NC_EWRITE;
}

// PnetCDF writes some of its sentences into one buffer of the process.
std::string native_message(int nc_error, int system_error) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string native = ncmpi_strerror(nc_error);
  return system_error == 0 ? native : fmt::format("{} ({})", std::strerror(system_error), native);
}

// ncmpi_inq_libvers() says "1.12.3 of 21 Apr 2022".
std::string native_version() {
  const std::string text = ncmpi_inq_libvers();
  return text.substr(0, text.find(' '));
}

}  // namespace staging
