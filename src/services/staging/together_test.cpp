// SPDX-License-Identifier: BSD-3-Clause
// Direct mode: the parts of all processes in a collective call go to the file together, and are in it when they are
// answered.
#include <services/staging/testing.hpp>

#include <barrier>

namespace staging {
namespace {

using testing::contents;
using testing::Service;

constexpr std::int64_t kRows = 64, kRowElements = 4096;
constexpr FileToken kToken = 77;
const VariableLayout kRowsLayout{0, 4, false, {kRows, kRowElements}};

std::vector<Definition> definitions() {
  return {testing::dim("y", kRows), testing::dim("x", kRowElements), testing::var("rows", NC_INT, {0, 1})};
}

class TogetherTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    service_ = std::make_unique<Service>(GetParam(), Mode::kDirect, 8 << 20);
    path_ = service_->file("rows.nc");
  }

  void create(Client &client, std::uint32_t processes) {
    testing::create_file(client, kToken, path_, definitions(), NC_CLOBBER, processes);
  }

  /// One process's part of a collective call: every `step`th row from `first` on, a piece each.
  static void write_rows(Client &client, Order &order, std::int64_t first, std::int64_t step, std::int32_t value) {
    std::vector<std::int32_t> row(kRowElements, value);
    std::vector<Item> items;
    for (auto y = first; y < kRows; y += step)
      items.push_back({&kRowsLayout, Piece{0, {y, 0}, {1, kRowElements}, {}}, std::as_writable_bytes(std::span(row))});
    order.is_collective = true;
    const auto written = client.write(kToken, 0, order, items);
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(*written, NC_NOERR);
  }

  /// Elements of the file that are not `value`, read past the servers.
  std::size_t others_than(std::int32_t value) const {
    const auto bytes = contents(path_);
    const auto data = bytes.substr(bytes.size() - kRows * kRowElements * 4);
    std::size_t others = 0;
    for (std::size_t at = 0; at < data.size(); at += 4) {
      std::uint32_t element = 0;
      std::memcpy(&element, data.data() + at, sizeof element);
      others += static_cast<std::int32_t>(__builtin_bswap32(element)) == value ? 0 : 1;
    }
    return others;
  }

  std::unique_ptr<Service> service_;
  std::string path_;
};

TEST_P(TogetherTest, PartsOfAllProcessesAreInTheFileWhenTheyAreAnswered) {
  constexpr int kProcesses = 3;
  constexpr std::int32_t kCalls = 20;
  std::vector<std::unique_ptr<Client>> clients;
  for (int process = 0; process < kProcesses; ++process) clients.push_back(service_->client());
  create(*clients.front(), kProcesses);
  std::barrier all(kProcesses);
  std::vector<std::thread> processes;
  for (int process = 0; process < kProcesses; ++process)
    processes.emplace_back([&, process] {
      auto &client = *clients[static_cast<std::size_t>(process)];
      Order order(client.servers());
      for (std::int32_t call = 1; call <= kCalls; ++call) {
        write_rows(client, order, process, kProcesses, call);
        order.end_call();
        all.arrive_and_wait();
        if (process == 0) { EXPECT_EQ(others_than(call), 0u) << "after call " << call; }
        all.arrive_and_wait();
      }
    });
  for (auto &process : processes) process.join();
  EXPECT_EQ(*clients.front()->close(kToken, 0, Closing::kDurable, Order(GetParam())), NC_NOERR);
}

TEST_P(TogetherTest, WhoHasNothingToWriteHoldsUpNobody) {
  const auto one = service_->client(), other = service_->client();
  create(*one, 2);
  std::thread idle([&] {
    Order order(GetParam());
    order.is_collective = true;
    EXPECT_EQ(*other->write(kToken, 0, order, {}), NC_NOERR);
  });
  Order order(GetParam());
  write_rows(*one, order, 0, 1, 5);
  EXPECT_EQ(others_than(5), 0u);
  idle.join();
  EXPECT_EQ(*one->close(kToken, 0, Closing::kDurable, Order(GetParam())), NC_NOERR);
}

TEST_P(TogetherTest, WhoDoesNotComeIsNotWaitedForForEver) {
  const auto client = service_->client();
  create(*client, 5);
  Order order(GetParam());
  write_rows(*client, order, 0, 1, 9);
  EXPECT_EQ(others_than(9), 0u);
  EXPECT_EQ(*client->close(kToken, 0, Closing::kDurable, Order(GetParam())), NC_NOERR);
}

INSTANTIATE_TEST_SUITE_P(Servers, TogetherTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace staging
