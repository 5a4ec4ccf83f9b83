// SPDX-License-Identifier: BSD-3-Clause
// Every pair of types, with extreme values: what conversion.hpp makes of them, beside what native PnetCDF writes to and
// reads from a file in memory.
#include <interpose/pnetcdf/engine/conversion.hpp>
#include <interpose/pnetcdf/engine/mirror.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace interpose {
namespace {

constexpr int kCount = 64;
const std::array kTypes{NC_BYTE,  NC_SHORT,  NC_INT,  NC_FLOAT, NC_DOUBLE,
                        NC_UBYTE, NC_USHORT, NC_UINT, NC_INT64, NC_UINT64};
using Raw = std::array<std::byte, std::size_t{kCount} * 8>;

/// Values as they lie in a message, right behind something else: not aligned.
class Packed {
 public:
  explicit Packed(const Raw &raw = {}) { std::memcpy(data(), raw.data(), raw.size()); }
  std::byte *data() { return bytes_.data() + 1; }

 private:
  alignas(8) std::array<std::byte, sizeof(Raw) + 1> bytes_;
};

template <class T> std::vector<T> extremes() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{Limits::lowest(), Limits::max(), T(0), T(1), static_cast<T>(-1)};
  for (const double edge : {127., 128., 255., 256., 32767., 32768., 65535., 65536., 2147483647., 2147483648.,
                            4294967295., 4294967296., 9223372036854775000., 3e38, 1e39}) {
    for (const double value : {edge, -edge, edge + 0.5, -edge - 0.5, edge - 0.5}) {
      if (value > static_cast<double>(Limits::lowest()) && value < static_cast<double>(Limits::max()))
        values.push_back(static_cast<T>(value));
    }
  }
  values.resize(kCount, T(7));
  return values;
}

class NativeFile {
 public:
  explicit NativeFile(int cmode) {
    EXPECT_TRUE(mirror_.create(cmode, MPI_INFO_NULL));
    int dimension = 0;
    ncmpi_def_dim(mirror_.id(), "n", kCount, &dimension);
    for (const nc_type type : kTypes) {
      int varid = -1;
      const auto name = std::string("v").append(std::to_string(type));
      if (ncmpi_def_var(mirror_.id(), name.c_str(), type, 1, &dimension, &varid) == NC_NOERR)
        variables_.push_back({type, varid});
    }
    EXPECT_EQ(ncmpi_enddef(mirror_.id()), NC_NOERR);
  }
  int id() const { return mirror_.id(); }
  struct Variable {
    nc_type type;
    int id;
  };
  const std::vector<Variable> &variables() const { return variables_; }

 private:
  Mirror mirror_;
  std::vector<Variable> variables_;
};

/// Writes `values` natively and by to_external; then compares what native PnetCDF reads back, as bytes.
template <class T> void compare_writes(const NativeFile &file, int format, MPI_Datatype type) {
  const auto values = extremes<T>();
  for (const auto &[external, varid] : file.variables()) {
    SCOPED_TRACE(testing::Message() << "external type " << external << ", format " << format);
    Raw native{};
    Packed ours;
    double fill = 0;
    ncmpi_inq_var_fill(file.id(), varid, nullptr, &fill);
    const int expected = ncmpi_put_var_all(file.id(), varid, values.data(), kCount, type);
    ASSERT_EQ(ncmpi_get_var_all(file.id(), varid, native.data(), kCount, MPI_DATATYPE_NULL), NC_NOERR);
    const Element element = element_of(type);
    if (needs_conversion(format, external, element)) {
      EXPECT_EQ(to_external(element, values.data(), external, ours.data(), kCount, &fill), expected);
    } else {
      std::memcpy(ours.data(), values.data(), kCount * sizeof(T));
    }
    const auto size = kCount * size_of(native_element(external));
    EXPECT_EQ(std::memcmp(native.data(), ours.data(), size), 0);
  }
}

template <class T> void compare_reads(const NativeFile &file, int format, MPI_Datatype type) {
  for (const auto &[external, varid] : file.variables()) {
    SCOPED_TRACE(testing::Message() << "external type " << external << ", format " << format);
    Raw stored{}, native{};
    Packed ours;
    ASSERT_EQ(ncmpi_get_var_all(file.id(), varid, stored.data(), kCount, MPI_DATATYPE_NULL), NC_NOERR);
    const int expected = ncmpi_get_var_all(file.id(), varid, native.data(), kCount, type);
    const Element element = element_of(type);
    if (!needs_conversion(format, external, element)) continue;
    EXPECT_EQ(from_external(external, Packed(stored).data(), element, ours.data(), kCount), expected);
    EXPECT_EQ(std::memcmp(native.data(), ours.data(), kCount * sizeof(T)), 0);
  }
}

template <class Function> void for_each_memory_type(Function function) {
  function((signed char)0, MPI_SIGNED_CHAR);
  function((unsigned char)0, MPI_UNSIGNED_CHAR);
  function(short{}, MPI_SHORT);
  function((unsigned short)0, MPI_UNSIGNED_SHORT);
  function(int{}, MPI_INT);
  function(0U, MPI_UNSIGNED);
  function(long{}, MPI_LONG);
  function(float{}, MPI_FLOAT);
  function(double{}, MPI_DOUBLE);
  function(0LL, MPI_LONG_LONG_INT);
  function(0ULL, MPI_UNSIGNED_LONG_LONG);
}

/// Fills every variable with the extremes of its own type.
void store_extremes(const NativeFile &file) {
  for (const auto &[external, varid] : file.variables())
    for_each_memory_type([&, external = external, varid = varid]<class T>(T, MPI_Datatype type) {
      if (element_of(type) != native_element(external)) return;
      ASSERT_EQ(ncmpi_put_var_all(file.id(), varid, extremes<T>().data(), kCount, type), NC_NOERR);
    });
}

class Conversion : public testing::TestWithParam<int> {
 protected:
  int format() const { return GetParam() == NC_64BIT_DATA ? 5 : GetParam() == NC_64BIT_OFFSET ? 2 : 1; }
  NativeFile file{GetParam()};
};

TEST_P(Conversion, WritesWhatNativePnetcdfWrites) {
  for_each_memory_type([this]<class T>(T, MPI_Datatype type) { compare_writes<T>(file, format(), type); });
}

TEST_P(Conversion, ReadsWhatNativePnetcdfReads) {
  store_extremes(file);
  for_each_memory_type([this]<class T>(T, MPI_Datatype type) { compare_reads<T>(file, format(), type); });
}

INSTANTIATE_TEST_SUITE_P(Formats, Conversion, testing::Values(0, NC_64BIT_OFFSET, NC_64BIT_DATA));

class Mpi : public testing::Environment {
  void SetUp() override { MPI_Init(nullptr, nullptr); }
  void TearDown() override { MPI_Finalize(); }
};
const auto *const kMpi = testing::AddGlobalTestEnvironment(new Mpi);

}  // namespace
}  // namespace interpose
