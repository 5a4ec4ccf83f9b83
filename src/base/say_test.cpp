// SPDX-License-Identifier: BSD-3-Clause
#include "base/say.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <string>
#include <utility>

namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends) ::close(end);
  }
  std::array<int, 2> ends{};
};

bool is_pending(int signal) {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

}  // namespace

TEST(Say, WritesWhatIsLongerThanAPipeTakesAtOnce) {
  Pipe pipe;
  const std::string text(3 * PIPE_BUF + 7, 'x');
  nessie_say(pipe.ends[1], text.data(), text.size());
  std::string got(2 * text.size(), ' ');
  got.resize(static_cast<std::size_t>(::read(pipe.ends[0], got.data(), got.size())));
  EXPECT_EQ(got, text);
}

TEST(Say, IntoAPipeThatIsFull_Returns) {
  Pipe pipe;
  const std::string text(1 << 20, 'x');
  nessie_say(pipe.ends[1], text.data(), text.size());
  nessie_say(pipe.ends[1], text.data(), text.size());
}

// Nobody handles the signals here, so that they would end the test.
TEST(Say, WithoutAReader_RaisesNoSignal) {
  Pipe pipe;
  ::close(std::exchange(pipe.ends[0], -1));
  ::signal(SIGPIPE, SIG_DFL);
  errno = ENOENT;
  nessie_say(pipe.ends[1], "x", 1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(Say, BeyondTheLimitOnTheSizeOfFiles_RaisesNoSignal) {
  char name[] = "/tmp/nessie-say-XXXXXX";
  const int fd = ::mkstemp(name);
  ::unlink(name);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  nessie_say(fd, "abc", 3);
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(::lseek(fd, 0, SEEK_END), 2);
  ::close(fd);
}

TEST(Say, ASignalThatWasPending_StaysSo) {
  Pipe pipe;
  ::close(std::exchange(pipe.ends[0], -1));
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, SIGPIPE);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &signal, nullptr), 0);
  ::raise(SIGPIPE);
  nessie_say(pipe.ends[1], "x", 1);
  EXPECT_TRUE(is_pending(SIGPIPE));
  const timespec no_time{};
  ::sigtimedwait(&signal, nullptr, &no_time);
  ::pthread_sigmask(SIG_UNBLOCK, &signal, nullptr);
}

TEST(Say, WithoutADescriptor_SaysNothing) { nessie_say(-1, "x", 1); }
