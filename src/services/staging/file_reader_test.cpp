// SPDX-License-Identifier: BSD-3-Clause
// Files of native PnetCDF's, read without it.
#include <services/staging/client/file_reader.hpp>
#include <services/staging/testing.hpp>

#include <sys/stat.h>

namespace staging {
namespace {

using nessie::Code;
using testing::IoThread;

constexpr std::int64_t kRecords = 3, kWidth = 5;  // of odd sizes, which need padding

class FileReaderTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "reader-" + std::to_string(::getpid()) + ".nc";
    IoThread::get().run([&] { return make(), 0; });
  }
  void TearDown() override { std::filesystem::remove(path_); }

  /// With one record variable, or two.
  void make() {
    const auto [mode, has_two] = GetParam();
    int file = -1, time = 0, width = 0, unused = 0;
    ASSERT_EQ(ncmpi_create(MPI_COMM_SELF, path_.c_str(), NC_CLOBBER | mode, MPI_INFO_NULL, &file), NC_NOERR);
    ncmpi_def_dim(file, "time", NC_UNLIMITED, &time);
    ncmpi_def_dim(file, "width", kWidth, &width);
    const std::array<int, 2> dims{time, width};
    ncmpi_def_var(file, "fixed", NC_INT, 1, &width, &unused);
    ncmpi_def_var(file, "scalar", NC_DOUBLE, 0, nullptr, &unused);
    ncmpi_def_var(file, "history", NC_SHORT, 2, dims.data(), &unused);
    if (has_two) ncmpi_def_var(file, "other", NC_BYTE, 2, dims.data(), &unused);
    ncmpi_put_att_text(file, NC_GLOBAL, "title", 5, "three");
    const std::array<short, 3> range{1, -2, 3};
    ncmpi_put_att_short(file, 2, "range", NC_SHORT, 3, range.data());
    ASSERT_EQ(ncmpi_enddef(file), NC_NOERR);
    for (std::size_t i = 0; i < fixed_.size(); ++i) fixed_[i] = -7 * static_cast<int>(i);
    for (std::size_t i = 0; i < history_.size(); ++i) history_[i] = static_cast<short>(300 * i), other_[i] = i;
    ncmpi_put_var_int_all(file, 0, fixed_.data());
    ncmpi_put_var_double_all(file, 1, &scalar_);
    const std::array<MPI_Offset, 2> start{0, 0}, count{kRecords, kWidth};
    ncmpi_put_vara_short_all(file, 2, start.data(), count.data(), history_.data());
    if (has_two) ncmpi_put_vara_schar_all(file, 3, start.data(), count.data(), other_.data());
    ASSERT_EQ(ncmpi_close(file), NC_NOERR);
  }
  FileIdentity identity() const { return identity_of(path_); }
  template <class T> std::vector<T> read(const FileReader &reader, const Piece &piece) {
    std::vector<T> data(static_cast<std::size_t>(piece.elements()));
    const auto status = reader.read(piece, std::as_writable_bytes(std::span(data)));
    EXPECT_TRUE(status.ok()) << status.error().message;
    return data;
  }

  std::string path_;
  std::array<int, kWidth> fixed_{};
  std::array<short, kRecords * kWidth> history_{};
  std::array<signed char, kRecords * kWidth> other_{};
  const double scalar_ = 0.375;
};

TEST_P(FileReaderTest, WhatNativePnetcdfWroteIsRead) {
  const bool has_two = std::get<1>(GetParam());
  const auto reader = FileReader::open(path_, identity(), 0);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const auto &header = reader->header();
  EXPECT_EQ(header.num_records, kRecords);
  ASSERT_EQ(header.variables.size(), has_two ? 4U : 3U);
  EXPECT_TRUE(header.variables[2].is_record);
  EXPECT_EQ(header.variables[2].dimensions, (std::vector<std::string>{"time", "width"}));
  const ClassicAttribute title{
      "title", NC_CHAR, {std::byte{'t'}, std::byte{'h'}, std::byte{'r'}, std::byte{'e'}, std::byte{'e'}}};
  EXPECT_EQ(header.attributes, std::vector{title});
  ASSERT_EQ(header.variables[2].attributes.size(), 1U);
  short range[3];
  ASSERT_EQ(header.variables[2].attributes[0].value.size(), sizeof range);
  std::memcpy(range, header.variables[2].attributes[0].value.data(), sizeof range);
  EXPECT_EQ(range[1], -2);
  EXPECT_EQ(read<int>(*reader, {0, {0}, {kWidth}, {}}), std::vector<int>(fixed_.begin(), fixed_.end()));
  EXPECT_EQ(read<double>(*reader, {1, {}, {}, {}}), std::vector{scalar_});
  EXPECT_EQ(read<short>(*reader, {2, {0, 0}, {kRecords, kWidth}, {}}),
            std::vector<short>(history_.begin(), history_.end()));
  EXPECT_EQ(read<short>(*reader, {2, {1, 2}, {2, 2}, {}}),
            (std::vector<short>{history_[7], history_[8], history_[12], history_[13]}));
  if (has_two) EXPECT_EQ(read<signed char>(*reader, {3, {2, 4}, {1, 1}, {}}).at(0), other_.back());
  EXPECT_EQ(header.find("history"), &header.variables[2]);
  EXPECT_EQ(header.find("none"), nullptr);
}

TEST_P(FileReaderTest, WhatLiesBehindTheEndIsZeros_AndWhatLiesNowhereIsSaid) {
  const auto reader = FileReader::open(path_, identity(), 0);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(read<short>(*reader, {2, {100, 0}, {1, kWidth}, {}}), std::vector<short>(kWidth));
  std::array<std::byte, 4> word{};
  for (const Piece &piece : {Piece{9, {0}, {1}, {}}, Piece{-1, {0}, {1}, {}}, Piece{0, {kWidth}, {1}, {}},
                             Piece{0, {0}, {2}, {}}, Piece{0, {0}, {1}, {2}}})
    EXPECT_EQ(reader->read(piece, word).code(), Code::kInvalidArgument);
}

TEST_P(FileReaderTest, AFileThatIsNotAsItWasLeftIsNotFound) {
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  const auto changed = status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec;
  const auto reader = FileReader::open(path_, identity(), changed);
  ASSERT_TRUE(reader.ok());
  (void)read<int>(*reader, {0, {0}, {kWidth}, {}});
  EXPECT_EQ(FileReader::open(path_, identity(), changed - 1).code(), Code::kNotFound);
  EXPECT_EQ(FileReader::open(path_, {0, identity().inode + 1}, 0).code(), Code::kNotFound);
  EXPECT_EQ(FileReader::open(path_ + ".none", identity(), 0).code(), Code::kNotFound);
  std::filesystem::rename(path_, path_ + ".renamed");  // changes it
  std::array<std::byte, 4> word{};
  EXPECT_EQ(reader->read({0, {0}, {1}, {}}, word).code(), Code::kNotFound);
  std::filesystem::rename(path_ + ".renamed", path_);
}

TEST_P(FileReaderTest, AHeaderThatIsCutOffOrDamagedIsSaid) {
  const auto whole = testing::contents(path_);
  const auto bytes = std::as_bytes(std::span(whole));
  ASSERT_TRUE(parse_classic_header(bytes).ok());
  EXPECT_EQ(parse_classic_header(bytes.first(40)).code(), Code::kOutOfRange);
  EXPECT_EQ(parse_classic_header({}).code(), Code::kOutOfRange);
  auto damaged = std::vector<std::byte>(bytes.begin(), bytes.end());
  damaged[0] = std::byte{'X'};
  EXPECT_EQ(parse_classic_header(damaged).code(), Code::kBadMessage);
  EXPECT_EQ(parse_classic_header(std::vector<std::byte>(64, std::byte{'C'})).code(), Code::kBadMessage);
}

INSTANTIATE_TEST_SUITE_P(Formats, FileReaderTest,
                         ::testing::Combine(::testing::Values(0, NC_64BIT_OFFSET, NC_64BIT_DATA), ::testing::Bool()));

}  // namespace
}  // namespace staging
