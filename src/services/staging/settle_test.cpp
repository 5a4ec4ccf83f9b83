// SPDX-License-Identifier: BSD-3-Clause
// Whoever waits for a file to be whole: by a request, or at the door.
#include <services/staging/twins_testing.hpp>

#include <poll.h>
#include <services/staging/board.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <cstddef>

namespace staging {
namespace {

using testing::contents;
using testing::IoThread;
using testing::program_file;
using testing::Schema;
using testing::Service;
using testing::StagingTest;
using testing::Twins;

TEST_P(StagingTest, ASecondFileWaitsForTheFirstOfItsName) {
  for (int i = 0; i < 3; ++i) {
    Twins file(*service_, *client_, "again");
    file.create();
    file.enddef(Schema::definitions());
    file.put(Schema::box(), all(Schema::box(), 0));
    file.put(Schema::scalar(), {});
    file.close(false);
    ASSERT_TRUE(client_->settle({{}, file.path()}).ok());
    file.expect_same_files();
  }
}

/// Comes to a server's door for a file, as the library in front of programs does.
nessie::Fd knock(const std::string &board_path, const FileIdentity &file) {
  const auto bytes = contents(board_path);
  const std::string_view door(bytes.data() + offsetof(nessie_board, door));
  nessie::Fd visitor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  door.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + door.size());
  EXPECT_EQ(::connect(visitor.get(), reinterpret_cast<const sockaddr *>(&address), size), 0);
  const nessie_board_place place{file.device, file.inode};
  EXPECT_EQ(::send(visitor.get(), &place, sizeof place, 0), static_cast<ssize_t>(sizeof place));
  return visitor;
}

bool is_answered(const nessie::Fd &visitor, int timeout_ms) {
  pollfd answer{visitor.get(), POLLIN, 0};
  char word = 0;
  return ::poll(&answer, 1, timeout_ms) == 1 && ::recv(visitor.get(), &word, 1, 0) == 1 && word == '+';
}

TEST(Staging, WhoComesToTheDoorInTheMiddleOfEnddef_IsLetInWhenThatIsOver) {
  Service service(1, Mode::kCaching, 8 << 20, "inproc", std::chrono::seconds(30), true);
  const auto client = service.client();
  ASSERT_NE(client, nullptr);
  const auto path = service.file("redef.nc");
  testing::create_file(*client, 9, path, Schema::definitions(), NC_CLOBBER);
  std::promise<void> busy, go_on;
  IoThread::get().queue().submit(Worker::Lane::kRequest, [&, go = go_on.get_future().share()] {
    busy.set_value();
    go.wait();
  });
  busy.get_future().wait();
  std::thread definer([&] {
    EndDefArgs definitions;
    definitions.file = 9;
    definitions.definitions = {testing::var("later", NC_DOUBLE, {0, 4, 5})};
    EXPECT_EQ(client->enddef(definitions, false)->nc_error, NC_NOERR);
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!IoThread::get().queue().waits(Worker::Lane::kRequest) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  const auto visitor = knock(service.board(0), identity_of(path));
  EXPECT_FALSE(is_answered(visitor, 100));
  go_on.set_value();
  EXPECT_TRUE(is_answered(visitor, 60'000));
  EXPECT_NE(contents(path).find("later"), std::string::npos);
  definer.join();
  EXPECT_EQ(*client->close(9, 0, Closing::kDurable, Order(1)), NC_NOERR);
}

}  // namespace
}  // namespace staging
