// SPDX-License-Identifier: BSD-3-Clause
// Real processes: every rank runs every test, in step; started by mpiexec -n 3.
#include "nnti/conformance/conformance.hpp"

#include <nnti/mpi.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace nnti::conformance {
namespace {

constexpr std::size_t kBulkBytes = (40u << 20) + 12'345;  // several chunks, the last one short

int rank_of(MPI_Comm group) {
  int rank = 0;
  MPI_Comm_rank(group, &rank);
  return rank;
}

/// An endpoint of this rank, connected. Rank 0 serves; the others are its clients.
class Ranks {
 public:
  using Hook = std::function<void(Ranks &, PeerId, std::span<const std::byte>)>;

  /// `hook`: what the server does with messages, from the first one on.
  explicit Ranks(const Hook &hook = {}, MPI_Comm group = MPI_COMM_WORLD, const std::string &world = "")
      : group_(group), rank_(rank_of(group)) {
    if (serves() && hook)
      seen.message_hook = [this, hook](PeerId from, std::span<const std::byte> message) { hook(*this, from, message); };
    EndpointOptions options;
    options.transports = {"mpi"};
    options.extra_transports = {&mpi::transport_kind()};
    options.credential = *nessie::Credential::from_hex(std::string(64, '7'));
    options.listen = serves();
    options.config.set("nnti.mpi.world", world);
    auto opened = Endpoint::open(std::move(options), seen);
    if (!opened.ok()) throw std::runtime_error(opened.error().message);
    endpoint = std::move(*opened);
    tell_url();
    connect();
  }

  bool serves() const { return rank_ == 0; }
  std::size_t clients() const {
    int size = 0;
    MPI_Comm_size(group_, &size);
    return static_cast<std::size_t>(size - 1);
  }
  bool until(const std::function<bool()> &state) {
    return test::until(state, [this] {
      if (endpoint->progress() == 0) endpoint->wait(Deadline::in(10ms));
    });
  }
  /// Goes on serving until all ranks are here.
  void meet() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(group_, &request);
    EXPECT_TRUE(until([&, done = 0]() mutable {
      if (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    }));
  }
  Status get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local) {
    Outcome outcome;
    endpoint->get(peer, remote, offset, local, outcome);
    return finish(outcome);
  }
  Status put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local) {
    Outcome outcome;
    endpoint->put(peer, remote, offset, local, outcome);
    return finish(outcome);
  }
  Status finish(Outcome &outcome) {
    EXPECT_TRUE(until([&] { return outcome.times != 0; }));
    EXPECT_EQ(outcome.times, 1);
    return outcome.status;
  }
  /// The server's buffer, described to every client.
  void lend(const RegisteredBuffer &buffer) {
    for (auto client : seen.connected) {
      auto description = buffer.describe_for(client);
      ASSERT_TRUE(description.ok()) << description.error().to_string();
      ASSERT_TRUE(endpoint->send(client, raw(*description)).ok());
    }
  }
  RemoteBuffer borrow() {
    RemoteBuffer remote;
    EXPECT_TRUE(until([&] { return !seen.messages.empty(); }));
    if (!seen.messages.empty()) std::memcpy(&remote, seen.messages[0].data(), sizeof remote);
    seen.messages.clear();
    return remote;
  }

  Recorder seen;
  std::unique_ptr<Endpoint> endpoint;
  PeerId peer;  ///< a client's: the server
  std::string url;

 private:
  void tell_url() {
    std::array<char, 128> text{};
    std::strncpy(text.data(), endpoint->url().c_str(), text.size() - 1);
    MPI_Bcast(text.data(), text.size(), MPI_CHAR, 0, group_);
    url = text.data();
  }
  void connect() {
    if (serves()) {
      EXPECT_TRUE(until([&] { return seen.connected.size() == clients(); }));
      return;
    }
    auto connected = endpoint->connect(url, Deadline::in(kWatchdog));
    EXPECT_TRUE(connected.ok()) << connected.error().to_string();
    if (connected.ok()) peer = *connected;
  }

  MPI_Comm group_;
  int rank_;
};

TEST(MpiProcesses, ReachEachOthersMemory) {
  Ranks ranks;
  Bytes memory = pattern(kBulkBytes, 7);
  auto buffer = ranks.endpoint->register_memory(memory, Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  if (ranks.serves()) {
    ranks.lend(*buffer);
  } else {
    const auto remote = ranks.borrow();
    Bytes local(kBulkBytes);
    const auto got = ranks.get(remote, 0, local);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_TRUE(local == pattern(kBulkBytes, 7));
    // Each client writes its own half.
    const auto half = kBulkBytes / 2, at = half * static_cast<std::size_t>(rank_of(MPI_COMM_WORLD) - 1);
    ASSERT_TRUE(ranks.get(remote, at, std::span(local).first(half)).ok());
    ranks.meet();
    ASSERT_TRUE(ranks.put(remote, at, pattern(half, 20 + static_cast<unsigned>(at > 0))).ok());
    EXPECT_EQ(ranks.get(remote, kBulkBytes - 5000, std::span(local).first(5001)).code(), Code::kOutOfRange);
  }
  if (ranks.serves()) ranks.meet();
  ranks.meet();
  if (!ranks.serves()) return;
  const auto half = kBulkBytes / 2;
  EXPECT_TRUE(std::ranges::equal(std::span(memory).first(half), pattern(half, 20)));
  EXPECT_TRUE(std::ranges::equal(std::span(memory).subspan(half, half), pattern(half, 21)));
}

TEST(MpiProcesses, SeeThatAPeerLeaves) {
  Ranks ranks;
  if (ranks.serves()) {
    ASSERT_TRUE(ranks.until([&] { return ranks.seen.lost.size() == ranks.clients(); }));
    EXPECT_EQ(ranks.seen.messages.size(), ranks.clients());
    for (const auto &[peer, error] : ranks.seen.lost) EXPECT_EQ(error.code, Code::kPeerLost);
  } else {
    ASSERT_TRUE(ranks.endpoint->send(ranks.peer, bytes_of("farewell")).ok());
    ranks.endpoint.reset();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Large transfers of a client's that are under way with the server; and what follows them over another connection.
struct Pending {
  explicit Pending(Ranks &all) : ranks(all), remote(all.borrow()) {
    for (std::size_t i = 0; i < local.size(); i += 2) {
      ranks.endpoint->get(ranks.peer, remote, 0, local[i], outcomes[i]);
      ranks.endpoint->put(ranks.peer, remote, 0, memory, outcomes[i + 1]);
    }
  }
  void expect_ended(Code otherwise) const {
    for (const auto &outcome : outcomes) {
      EXPECT_EQ(outcome.times, 1);
      EXPECT_TRUE(outcome.status.ok() || outcome.status.code() == otherwise);
    }
  }
  /// Whatever was on its way does not get into what follows.
  void begin_anew() {
    auto again = ranks.endpoint->connect(ranks.url, Deadline::in(kWatchdog));
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    ranks.peer = *again;
    remote = ranks.borrow();
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(ranks.get(remote, 0, local[i]).ok());
      EXPECT_TRUE(local[i] == memory);
    }
  }

  Ranks &ranks;
  RemoteBuffer remote;
  const Bytes memory = pattern(kBulkBytes, 5);
  std::vector<Bytes> local = std::vector<Bytes>(8, Bytes(kBulkBytes));
  std::vector<Outcome> outcomes = std::vector<Outcome>(8);
};

/// The server's part in that: its clients connect twice, and use the same buffer.
void lend_twice(Ranks &server) {
  Bytes memory = pattern(kBulkBytes, 5);
  auto buffer = server.endpoint->register_memory(memory, Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  server.lend(*buffer);
  ASSERT_TRUE(server.until([&] { return server.seen.connected.size() == 4; }));
  server.seen.connected.erase(server.seen.connected.begin(), server.seen.connected.begin() + 2);
  server.lend(*buffer);
  server.meet();
}

TEST(MpiProcesses, CompleteWhatIsPendingWhenThePeerLeavesAndBeginAnew) {
  Ranks ranks([](Ranks &server, PeerId from, std::span<const std::byte>) { server.endpoint->disconnect(from); });
  if (ranks.serves()) return lend_twice(ranks);
  Pending pending(ranks);
  ASSERT_TRUE(ranks.endpoint->send(ranks.peer, bytes_of("leave me")).ok());
  int before_loss = 0;
  ranks.seen.lost_hook = [&](PeerId) {
    for (const auto &outcome : pending.outcomes) before_loss += outcome.times;
  };
  ASSERT_TRUE(ranks.until([&] { return !ranks.seen.lost.empty(); }));
  EXPECT_EQ(before_loss, 8);
  pending.expect_ended(Code::kPeerLost);
  pending.begin_anew();
  ranks.meet();
}

TEST(MpiProcesses, CancelWhatIsPendingWhenTheyDisconnectAndBeginAnew) {
  Ranks ranks;
  if (ranks.serves()) return lend_twice(ranks);
  Pending pending(ranks);
  ASSERT_TRUE(ranks.until([&, turns = 0]() mutable { return ++turns > 20; }));
  ranks.endpoint->disconnect(ranks.peer);
  pending.expect_ended(Code::kCancelled);
  pending.begin_anew();
  ranks.meet();
}

TEST(MpiProcesses, RefuseWhatIsLeftOfATransferWhenItsBufferGoes) {
  Ranks ranks;
  Bytes memory = pattern(kBulkBytes, 5);
  auto buffer = ranks.endpoint->register_memory(memory, Rights::kReadWrite);
  ASSERT_TRUE(buffer.ok());
  if (ranks.serves()) {
    ranks.lend(*buffer);
    ASSERT_TRUE(ranks.until([&] { return ranks.seen.messages.size() == 2; }));
    buffer->reset();
    std::ranges::fill(memory, std::byte{0});
    ranks.meet();
    EXPECT_EQ(memory, Bytes(kBulkBytes)) << "it was written after its registration had ended";
    return;
  }
  const auto remote = ranks.borrow();
  std::vector<Bytes> local(6, Bytes(kBulkBytes, std::byte{1}));
  std::vector<Outcome> outcomes(6);
  ASSERT_TRUE(ranks.endpoint->send(ranks.peer, bytes_of("it begins")).ok());
  for (std::size_t i = 0; i < 6; i += 2) {
    ranks.endpoint->put(ranks.peer, remote, 0, local[i], outcomes[i]);
    ranks.endpoint->get(ranks.peer, remote, 0, local[i + 1], outcomes[i + 1]);
  }
  for (auto &outcome : outcomes) {
    const auto status = ranks.finish(outcome);
    EXPECT_TRUE(status.ok() || status.code() == Code::kRefused) << status.error().to_string();
  }
  EXPECT_TRUE(ranks.seen.lost.empty());
  ranks.meet();
}

/// What an application does meanwhile: it receives whatever comes on MPI_COMM_WORLD, and sends to everybody.
class Application {
 public:
  Application() {
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (std::size_t i = 0; i < requests_.size(); ++i) receive(i);
  }
  void send_to_all() {
    const std::array<int, 2> words{kMark, sent_++};
    for (int to = 0; to < size_; ++to) MPI_Send(words.data(), 2, MPI_INT, to, 4096 + to, MPI_COMM_WORLD);
  }
  /// Takes what has come. False: something that no application sent.
  bool take() {
    int index = 0, done = 0, size_bytes = 0;
    MPI_Status status;
    for (;;) {
      MPI_Testany(static_cast<int>(requests_.size()), requests_.data(), &index, &done, &status);
      if (!done || index == MPI_UNDEFINED) return true;
      MPI_Get_count(&status, MPI_BYTE, &size_bytes);
      const auto &words = words_[static_cast<std::size_t>(index)];
      if (size_bytes != sizeof words || words[0] != kMark) return false;
      ++received_;
      receive(static_cast<std::size_t>(index));
    }
  }
  bool has_all() const { return received_ == sent_ * size_; }
  /// Nothing is left; the receives that are still posted can be taken back.
  bool is_quiet() {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    int cancelled = 0;
    for (auto &request : requests_) {
      MPI_Status status;
      int taken_back = 0;
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      MPI_Test_cancelled(&status, &taken_back);
      cancelled += taken_back;
    }
    return !there && cancelled == static_cast<int>(requests_.size());
  }

 private:
  static constexpr int kMark = 0x600df00d;
  void receive(std::size_t i) {
    MPI_Irecv(words_[i].data(), 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests_[i]);
  }
  std::array<std::array<int, 2>, 16> words_{};
  std::array<MPI_Request, 16> requests_;
  int size_ = 0, sent_ = 0, received_ = 0;
};

TEST(MpiProcesses, AreInvisibleToAnApplicationThatReceivesEverything) {
  MPI_Barrier(MPI_COMM_WORLD);
  Application application;
  Ranks ranks;  // also sets up connections under the application's eyes
  Bytes memory = pattern(kBulkBytes, 9);
  auto buffer = ranks.endpoint->register_memory(memory, Rights::kRemoteRead);
  ASSERT_TRUE(buffer.ok());
  if (ranks.serves()) ranks.lend(*buffer);
  const auto remote = ranks.serves() ? RemoteBuffer() : ranks.borrow();
  Bytes local(ranks.serves() ? 0 : kBulkBytes);
  for (int round = 0; round < 20; ++round) {
    application.send_to_all();
    Outcome got;
    if (!ranks.serves()) {
      ranks.endpoint->get(ranks.peer, remote, 0, local, got);
      for (int i = 0; i < 20; ++i) ASSERT_TRUE(ranks.endpoint->send(ranks.peer, pattern(100)).ok());
    }
    ASSERT_TRUE(ranks.until([&] { return !application.take() || ranks.serves() || got.times != 0; }));
    EXPECT_TRUE(ranks.serves() || got.status.ok());
  }
  EXPECT_TRUE(ranks.until([&] { return !application.take() || application.has_all(); }));
  EXPECT_TRUE(application.has_all());
  const std::size_t expected = ranks.serves() ? 800 : 0;
  EXPECT_TRUE(ranks.until([&] { return ranks.seen.messages.size() == expected; }));
  ranks.meet();
  EXPECT_TRUE(application.is_quiet());
  EXPECT_TRUE(ranks.serves() || local == memory);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiWorlds, OfSomeOfTheRanksNeedOnlyThose) {
  const int rank = rank_of(MPI_COMM_WORLD);
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, -rank, &some);
  if (some != MPI_COMM_NULL) {  // ranks 2 and 0, in this order
    auto world = mpi::join(some, Deadline::in(kWatchdog));
    ASSERT_TRUE(world.ok()) << world.error().to_string();
    Ranks ranks({}, some, *world);
    if (!ranks.serves()) {
      ASSERT_TRUE(ranks.endpoint->send(ranks.peer, bytes_of("among us")).ok());
    } else {
      ASSERT_TRUE(ranks.until([&] { return !ranks.seen.messages.empty(); }));
      EXPECT_EQ(text_of(ranks.seen.messages[0]), "among us");
    }
    ranks.meet();
    MPI_Comm_free(&some);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiWorlds, ThatOthersAreMissingFromTimeOutAndGoOnWhenTheyCome) {
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &group);
  const int rank = rank_of(group);
  if (rank == 0) { EXPECT_EQ(mpi::join(group, Deadline::in(50ms)).code(), Code::kTimedOut); }
  MPI_Barrier(MPI_COMM_WORLD);
  auto world = mpi::join(group, Deadline::in(kWatchdog));
  ASSERT_TRUE(world.ok()) << world.error().to_string();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&group);
}

TEST(MpiWorlds, ThatAreNotOursCannotBeReachedAndTheReasonIsGiven) {
  Ranks ranks;
  const auto connected = ranks.endpoint->connect("mpi://0123456789abcdef/0/1", Deadline::in(kWatchdog));
  EXPECT_EQ(connected.code(), Code::kUnsupported);
  EXPECT_NE(connected.error().message.find("MPI_Comm_connect"), std::string::npos) << connected.error().message;
  for (const char *url : {"mpi://0123456789abcdef/0", "mpi://0123456789abcdef/-1/1", "mpi://0123456789abcdef/0/4096",
                          "mpi://x/0/1", "mpi://0123456789abcdef/99999999999/1"})
    EXPECT_EQ(ranks.endpoint->connect(url, Deadline::in(kWatchdog)).code(), Code::kUnsupported) << url;
  ranks.meet();
}

/// MPI_Finalize() with an endpoint still open: its peers are lost, and nothing calls MPI any more.
bool survives_the_end_of_mpi() {
  Ranks ranks;
  ranks.meet();
  const auto peers = ranks.serves() ? ranks.clients() : 1;
  MPI_Finalize();
  if (!ranks.until([&] { return ranks.seen.lost.size() == peers; })) return false;
  Recorder seen;
  EndpointOptions options;
  options.transports = {"mpi"};
  options.extra_transports = {&mpi::transport_kind()};
  auto opened = Endpoint::open(std::move(options), seen);
  return opened.code() == Code::kUnsupported;
}

/// The others would wait for ever for a rank that fails.
class EndAllRanks final : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo &test) override {
    if (!test.result()->Failed()) return;
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
};

}  // namespace
}  // namespace nnti::conformance

int main(int argc, char **argv) {
  ::alarm(280);
  int provided = 0, size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 3) {
    std::fprintf(stderr, "start this test with mpiexec -n 3\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new nnti::conformance::EndAllRanks);
  if (RUN_ALL_TESTS() != 0) return 1;
  return nnti::conformance::survives_the_end_of_mpi() ? 0 : 1;
}
