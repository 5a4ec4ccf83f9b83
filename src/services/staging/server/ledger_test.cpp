// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/ledger.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

namespace staging {
namespace {

class LedgerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "ledger-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder + "/server.0.ledger";
    variable_.name = "temperature";
    variable_.element_bytes = 8;
    variable_.shape = {64, 64, 64};
  }
  void TearDown() override { (void)!std::system(("rm -r " + folder_).c_str()); }

  std::string folder_, path_;
  Variable variable_;
};

TEST_F(LedgerTest, InUse_IsNotTakenByAnotherServer) {
  auto ledger = Ledger::create(path_);
  ASSERT_TRUE(ledger.ok());
  (*ledger)->update((*ledger)->add("/scratch/out.nc", variable_), {2 << 20, 1 << 20, 1 << 20, {32 << 12, 64 << 12}});
  EXPECT_EQ(Ledger::create(path_).code(), nessie::Code::kExists);
  EXPECT_EQ(read_ledger(path_)->size(), 1u);
  ledger->reset();
  EXPECT_TRUE(Ledger::create(path_).ok());
}

TEST_F(LedgerTest, TellsWhatWasNotInTheFile) {
  {
    auto ledger = Ledger::create(path_);
    ASSERT_TRUE(ledger.ok());
    const auto slot = (*ledger)->add("/scratch/out.nc", variable_);
    (*ledger)->update(slot, {2 << 20, 1 << 20, 1 << 20, {32 << 12, 64 << 12}});
    const auto clean = (*ledger)->add("/scratch/done.nc", variable_);
    (*ledger)->update(clean, {2 << 20, 2 << 20, 0, {}});
  }
  auto files = read_ledger(path_);
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  const auto &file = files->front();
  EXPECT_EQ(file.path, "/scratch/out.nc");
  EXPECT_EQ(file.bytes_acknowledged, 2u << 20);
  EXPECT_EQ(file.bytes_in_file, 1u << 20);
  EXPECT_EQ(file.missing, std::vector<std::string>{"temperature[32:63,0:63,0:63]"});
}

TEST_F(LedgerTest, ForgetsFilesThatAreDone) {
  auto ledger = Ledger::create(path_);
  ASSERT_TRUE(ledger.ok());
  for (int i = 0; i < 1000; ++i) {
    const auto slot = (*ledger)->add("/scratch/out.nc", variable_);
    ASSERT_NE(slot, 0u);
    (*ledger)->update(slot, {8, 0, 8, {0, 1}});
    (*ledger)->remove(slot);
  }
  EXPECT_TRUE(read_ledger(path_)->empty());
}

TEST_F(LedgerTest, NamesFilesWhoseDefinitionsChange) {
  auto ledger = Ledger::create(path_);
  ASSERT_TRUE(ledger.ok());
  {
    const Ledger::Moving moving(ledger->get(), "/scratch/out.nc");
    const auto files = read_ledger(path_);
    ASSERT_TRUE(files.ok());
    ASSERT_EQ(files->size(), 1u);
    EXPECT_EQ(files->front().path, "/scratch/out.nc");
    EXPECT_NE(files->front().message.find("any of it may be damaged"), std::string::npos);
  }
  EXPECT_TRUE(read_ledger(path_)->empty());
}

TEST_F(LedgerTest, WithoutRoom_ItAsksAgainWhenSomethingIsRemoved) {
  auto ledger = Ledger::create(path_);
  ASSERT_TRUE(ledger.ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{std::filesystem::file_size(path_), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  Ledger::Slot first = 0;
  while (const auto slot = (*ledger)->add("/scratch/out.nc", variable_)) first = slot;
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ((*ledger)->add("/scratch/out.nc", variable_), 0u);
  (*ledger)->remove(first);
  EXPECT_EQ((*ledger)->add("/scratch/out.nc", variable_), first);
  EXPECT_NE((*ledger)->add("/scratch/out.nc", variable_), 0u);
}

TEST_F(LedgerTest, OfAServerThatDiedAsItMadeIt_ItTellsThatNothingIsLost) {
  for (const std::size_t bytes : {0, 8, 4096}) {
    std::ofstream(path_, std::ios::binary) << std::string(bytes, '\0');
    const auto files = read_ledger(path_);
    ASSERT_TRUE(files.ok()) << files.error().message;
    EXPECT_TRUE(files->empty());
  }
  std::ofstream(path_, std::ios::binary) << "short";
  EXPECT_EQ(read_ledger(path_).code(), nessie::Code::kBadMessage);
}

TEST_F(LedgerTest, ReadsAnyBytesWithoutHarm) {
  EXPECT_EQ(read_ledger(folder_ + "/none").code(), nessie::Code::kNotFound);
  {
    auto ledger = Ledger::create(path_);
    for (int i = 0; i < 40; ++i) (*ledger)->update((*ledger)->add("/scratch/out.nc", variable_), {8, 0, 8, {0, 1}});
  }
  std::ifstream in(path_, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    auto bad = good;
    for (int n = 0; n < 200; ++n) bad[random() % bad.size()] = static_cast<char>(random());
    bad.resize(random() % 3 == 0 ? random() % bad.size() : bad.size());
    std::ofstream(path_, std::ios::binary) << bad;
    auto files = read_ledger(path_);
    ASSERT_TRUE(files.ok() || files.code() == nessie::Code::kBadMessage);
  }
}

}  // namespace
}  // namespace staging
