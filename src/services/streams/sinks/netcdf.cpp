// SPDX-License-Identifier: BSD-3-Clause
#include "services/streams/sinks/netcdf.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netcdf.h>
#include <netcdf_mem.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace nessie::streams::sinks {

namespace {

struct Library {
  decltype(&::nc__create) create;
  decltype(&::nc_open) open;
  decltype(&::nc_open_mem) open_image;
  decltype(&::nc_set_fill) set_fill;
  decltype(&::nc_def_dim) define_dimension;
  decltype(&::nc_def_var) define_variable;
  decltype(&::nc_def_var_fill) define_fill;
  decltype(&::nc_put_att) put_attribute;
  decltype(&::nc__enddef) end_definitions;
  decltype(&::nc_redef) define_again;
  decltype(&::nc_put_vara) put;
  decltype(&::nc_get_vara) get;
  decltype(&::nc_sync) sync;
  decltype(&::nc_close) close;
  decltype(&::nc_inq) inquire;
  decltype(&::nc_inq_dim) inquire_dimension;
  decltype(&::nc_inq_var) inquire_variable;
  decltype(&::nc_inq_attname) attribute_name;
  decltype(&::nc_inq_att) inquire_attribute;
  decltype(&::nc_get_att) get_attribute;
  decltype(&::nc_strerror) text;
  std::string problem;
};

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr std::size_t kWriteOut = std::size_t{1} << 20;  ///< elements, after which the disk begins to write

template <class F> void resolve(void *handle, const char *name, F &function, std::string &problem) {
  function = reinterpret_cast<F>(::dlsym(handle, name));
  if (function == nullptr && problem.empty())
    problem = fmt::format("{} lacks {}; install netCDF-C 4.6.2 or newer", NESSIE_NETCDF_SONAME, name);
}

Library load() {
  Library library{};
  void *handle = ::dlopen(NESSIE_NETCDF_SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    library.problem = fmt::format("netCDF-C cannot be loaded, Debian's package libnetcdf19: {}", ::dlerror());
    return library;
  }
  const auto find = [&](const char *name, auto &function) { resolve(handle, name, function, library.problem); };
  find("nc__create", library.create);
  find("nc_open", library.open), find("nc_open_mem", library.open_image);
  find("nc_set_fill", library.set_fill), find("nc_def_dim", library.define_dimension);
  find("nc_def_var", library.define_variable), find("nc_def_var_fill", library.define_fill);
  find("nc_put_att", library.put_attribute), find("nc__enddef", library.end_definitions);
  find("nc_redef", library.define_again), find("nc_put_vara", library.put);
  find("nc_get_vara", library.get), find("nc_sync", library.sync), find("nc_close", library.close);
  find("nc_inq", library.inquire);
  find("nc_inq_dim", library.inquire_dimension), find("nc_inq_var", library.inquire_variable);
  find("nc_inq_attname", library.attribute_name), find("nc_inq_att", library.inquire_attribute);
  find("nc_get_att", library.get_attribute), find("nc_strerror", library.text);
  return library;
}

const Library &library() {
  static const auto &once = *new Library(load());  // never destroyed: threads that were left behind may use it
  return once;
}

std::mutex &turn() {
  static auto &once = *new std::mutex;
  return once;
}

Code code_of(int status) {
  switch (status) {
    case NC_ENOMEM: return Code::kNoMemory;
    case NC_EVARSIZE:
    case NC_EDIMSIZE:
    case NC_EMAXDIMS:
    case NC_EMAXVARS: return Code::kTooLarge;
    case NC_EBADNAME:
    case NC_ENAMEINUSE:
    case NC_EMAXNAME:
    case NC_EBADTYPE:
    case NC_EINVAL: return Code::kInvalidArgument;
    case NC_ENOTNC:
    case NC_ETRUNC: return Code::kBadMessage;
    case ENOENT: return Code::kNotFound;
    default: return Code::kIo;
  }
}

Status status_of(int status, const char *what, std::string_view of = {}) {
  if (status == NC_NOERR) return {};
  const auto named = of.empty() ? std::string() : fmt::format(" '{}'", of);
  return Error{code_of(status), fmt::format("netCDF cannot {}{}: {}", what, named, library().text(status)),
               Scope::kOperation, status};
}

/// Calls one function, alone.
template <class F, class... Arguments>
Status call(const char *what, std::string_view of, F Library::*function, Arguments... arguments) {
  if (!library().problem.empty()) return Error{Code::kUnsupported, library().problem};
  const std::lock_guard lock(turn());
  return status_of((library().*function)(arguments...), what, of);
}

int mode_of(int format) { return format == 1 ? 0 : format == 2 ? NC_64BIT_OFFSET : NC_64BIT_DATA; }

std::vector<std::size_t> sizes(const Extents &extents) { return {extents.begin(), extents.end()}; }

}  // namespace

Result<NetcdfFile> NetcdfFile::create(const std::string &path, int format) {
  std::size_t buffer = kBuffer;
  int id = -1, before = 0;
  if (auto made = call("make", path, &Library::create, path.c_str(), NC_CLOBBER | mode_of(format), std::size_t{0},
                       &buffer, &id);
      !made.ok())
    return made.error();
  NetcdfFile file(id);
  file.disk_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (auto set = call("write to", path, &Library::set_fill, id, NC_NOFILL, &before); !set.ok()) return set.error();
  return file;
}

Result<NetcdfFile> NetcdfFile::open(const std::string &path, bool to_write) {
  int id = -1, before = 0;
  if (auto opened = call("open", path, &Library::open, path.c_str(), to_write ? NC_WRITE : NC_NOWRITE, &id);
      !opened.ok())
    return opened.error();
  NetcdfFile file(id);
  if (!to_write) return file;
  file.disk_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (auto set = call("write to", path, &Library::set_fill, id, NC_NOFILL, &before); !set.ok()) return set.error();
  return file;
}

Result<NetcdfFile> NetcdfFile::open_image(std::span<const std::byte> image) {
  int id = -1;
  auto *memory = const_cast<std::byte *>(image.data());  // with NC_NOWRITE it is only read
  if (auto opened = call("read a step's image", {}, &Library::open_image, "step", NC_NOWRITE, image.size(),
                         static_cast<void *>(memory), &id);
      !opened.ok())
    return Error{Code::kBadMessage, opened.error().message, Scope::kOperation, opened.error().cause};
  return NetcdfFile(id);
}

NetcdfFile::NetcdfFile(NetcdfFile &&other) noexcept
    : id_(std::exchange(other.id_, -1)), disk_(std::move(other.disk_)), unwritten_(other.unwritten_) {}

NetcdfFile &NetcdfFile::operator=(NetcdfFile &&other) noexcept {
  if (this != &other) {
    (void)close();
    id_ = std::exchange(other.id_, -1);
    disk_ = std::move(other.disk_);
    unwritten_ = other.unwritten_;
  }
  return *this;
}

NetcdfFile::~NetcdfFile() { (void)close(); }

Result<int> NetcdfFile::define_dimension(const std::string &name, std::int64_t length) {
  int number = -1;
  if (auto made = call("define dimension", name, &Library::define_dimension, id_, name.c_str(),
                       static_cast<std::size_t>(length), &number);
      !made.ok())
    return made.error();
  return number;
}

Result<int> NetcdfFile::define_variable(const std::string &name, Type type, const std::vector<int> &dimensions) {
  int number = -1;
  if (auto made = call("define variable", name, &Library::define_variable, id_, name.c_str(), static_cast<int>(type),
                       static_cast<int>(dimensions.size()), dimensions.data(), &number);
      !made.ok())
    return made.error();
  return number;
}

Status NetcdfFile::define_fill(int variable, std::span<const std::byte> value) {
  return call("define a fill value", {}, &Library::define_fill, id_, variable, NC_FILL,
              static_cast<const void *>(value.data()));
}

Status NetcdfFile::put_attribute(int variable, const std::string &name, Type type, std::span<const std::byte> value) {
  return call("write attribute", name, &Library::put_attribute, id_, variable, name.c_str(), static_cast<int>(type),
              value.size() / size_of(type), static_cast<const void *>(value.data()));
}

Status NetcdfFile::end_definitions(std::size_t reserve_bytes) {
  return call("define a file", {}, &Library::end_definitions, id_, reserve_bytes, std::size_t{4}, std::size_t{0},
              std::size_t{4});
}

Status NetcdfFile::define_again() { return call("change a file", {}, &Library::define_again, id_); }

Status NetcdfFile::put(int variable, const Box &box, const void *data) {
  const auto start = sizes(box.start), count = sizes(box.count);
  auto put = call("write a variable", {}, &Library::put, id_, variable, start.data(), count.data(), data);
  std::size_t elements = 1;
  for (const auto each : count) elements *= each;
  unwritten_ += elements;
  if (!put.ok() || !disk_ || unwritten_ < kWriteOut) return put;
  unwritten_ = 0;
  (void)::sync_file_range(disk_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);  // what is wrong with it a sync will tell
  return put;
}

Status NetcdfFile::get(int variable, const Box &box, void *data) {
  const auto start = sizes(box.start), count = sizes(box.count);
  return call("read a variable", {}, &Library::get, id_, variable, start.data(), count.data(), data);
}

Status NetcdfFile::sync() { return call("write a file", {}, &Library::sync, id_); }

Status NetcdfFile::close() {
  if (id_ < 0) return {};
  return call("close a file", {}, &Library::close, std::exchange(id_, -1));
}

Result<std::vector<NetcdfDimension>> NetcdfFile::dimensions() {
  int count = 0, unlimited = -1;
  int *const unwanted = nullptr;
  if (auto asked = call("read a file", {}, &Library::inquire, id_, &count, unwanted, unwanted, &unlimited); !asked.ok())
    return asked.error();
  std::vector<NetcdfDimension> all;
  for (int number = 0; number < count; ++number) {
    std::array<char, NC_MAX_NAME + 1> name{};
    std::size_t length = 0;
    if (auto asked = call("read a file", {}, &Library::inquire_dimension, id_, number, name.data(), &length);
        !asked.ok())
      return asked.error();
    all.push_back({name.data(), static_cast<std::int64_t>(length), number == unlimited});
  }
  return all;
}

Result<std::vector<NetcdfVariable>> NetcdfFile::variables() {
  int count = 0;
  int *const unwanted = nullptr;
  if (auto asked = call("read a file", {}, &Library::inquire, id_, unwanted, &count, unwanted, unwanted); !asked.ok())
    return asked.error();
  std::vector<NetcdfVariable> all;
  for (int number = 0; number < count; ++number) {
    std::array<char, NC_MAX_NAME + 1> name{};
    std::array<int, NC_MAX_VAR_DIMS> dimensions{};
    int type = 0, rank = 0;
    if (auto asked = call("read a file", {}, &Library::inquire_variable, id_, number, name.data(), &type, &rank,
                          dimensions.data(), unwanted);
        !asked.ok())
      return asked.error();
    if (size_of(static_cast<Type>(type)) == 0)
      return Error{Code::kBadMessage, fmt::format("variable '{}' has a type that no stream has", name.data())};
    all.push_back({name.data(), static_cast<Type>(type), {dimensions.begin(), dimensions.begin() + rank}});
  }
  return all;
}

Result<std::vector<Attribute>> NetcdfFile::attributes(int variable) {
  std::vector<Attribute> all;
  for (int number = 0;; ++number) {
    std::array<char, NC_MAX_NAME + 1> name{};
    const auto named = call("read a file", {}, &Library::attribute_name, id_, variable, number, name.data());
    if (!named.ok() && named.error().cause == NC_ENOTATT) return all;
    if (!named.ok()) return named.error();
    int type = 0;
    std::size_t count = 0;
    const char *const key = name.data();
    if (auto asked = call("read attribute", key, &Library::inquire_attribute, id_, variable, key, &type, &count);
        !asked.ok())
      return asked.error();
    Attribute each{{}, key, static_cast<Type>(type), {}};
    if (size_of(each.type) == 0) continue;
    each.value.resize(count * size_of(each.type));
    void *const value = each.value.data();
    if (auto got = call("read attribute", key, &Library::get_attribute, id_, variable, key, value); !got.ok())
      return got.error();
    all.push_back(std::move(each));
  }
}

namespace {
template <class T> std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
}  // namespace

std::vector<std::byte> usual_fill(Type type) {
  switch (type) {
    case Type::kInt8: return bytes_of<std::int8_t>(NC_FILL_BYTE);
    case Type::kChar: return bytes_of<char>(NC_FILL_CHAR);
    case Type::kInt16: return bytes_of<std::int16_t>(NC_FILL_SHORT);
    case Type::kInt32: return bytes_of<std::int32_t>(NC_FILL_INT);
    case Type::kFloat: return bytes_of<float>(NC_FILL_FLOAT);
    case Type::kDouble: return bytes_of<double>(NC_FILL_DOUBLE);
    case Type::kUint8: return bytes_of<std::uint8_t>(NC_FILL_UBYTE);
    case Type::kUint16: return bytes_of<std::uint16_t>(NC_FILL_USHORT);
    case Type::kUint32: return bytes_of<std::uint32_t>(NC_FILL_UINT);
    case Type::kInt64: return bytes_of<std::int64_t>(NC_FILL_INT64);
    case Type::kUint64: return bytes_of<std::uint64_t>(NC_FILL_UINT64);
  }
  return {};
}

}  // namespace nessie::streams::sinks
