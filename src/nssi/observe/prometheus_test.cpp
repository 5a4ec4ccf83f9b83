// SPDX-License-Identifier: BSD-3-Clause
// The Prometheus endpoint, asked through a bare socket.
#include <nssi/statistics.hpp>

#include <gtest/gtest.h>

#include <nssi/observe/page_server.hpp>
#include <nssi/observe/prometheus.hpp>
#include <nssi/testing/testing.hpp>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <charconv>

namespace nssi::testing {
namespace {

/// A connection to "127.0.0.1:PORT".
class Socket {
 public:
  explicit Socket(const std::string &address) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto colon = address.find(':');
    std::uint16_t port = 0;
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    (void)::inet_pton(AF_INET, address.substr(0, colon).c_str(), &where.sin_addr);
    is_connected = ::connect(fd_, reinterpret_cast<sockaddr *>(&where), sizeof where) == 0;
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket &) = delete;
  void send(std::string_view text) const { (void)::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// What comes until the other side ends; not more than 20 s.
  std::string receive() const {
    std::string all;
    char buffer[4096];
    for (pollfd ready{fd_, POLLIN, 0}; ::poll(&ready, 1, 20000) == 1;) {
      const auto got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }
  bool is_connected = false;

 private:
  int fd_;
};

std::string ask(const std::string &address, std::string_view request) {
  Socket socket(address);
  if (!socket.is_connected) return "not connected";
  socket.send(request);
  return socket.receive();
}

constexpr const char *kAskForPage = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

RuntimeOptions with_endpoint(const std::string &address) {
  auto options = options_for("shm", true);
  options.endpoint.config.set("nssi.prometheus", address);
  return options;
}

TEST(NssiPrometheus, TellsWhatWasCounted) {
  ServiceThread service(with_endpoint("127.0.0.1:0"));
  auto client = open_runtime(options_for("shm", false));
  auto peer = client->connect(service.runtime->url(), Deadline::in(std::chrono::seconds(10)));
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(client->call(at(*peer), kFail, {}).wait().code(), Code::kIo);
  const auto address = service.runtime->statistics().prometheus;
  constexpr const char *kLabels = R"({program="0x20000001",version="1",provider="0",op="10",name="test10")";
  EXPECT_TRUE(eventually([&] {
    return ask(address, kAskForPage).find(std::string("nessie_nssi_calls_total") + kLabels + "} 1\n") !=
           std::string::npos;
  })) << ask(address, kAskForPage);
  const auto page = ask(address, kAskForPage);
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(page.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(page.find("# TYPE nessie_nssi_calls_total counter\n"), std::string::npos);
  EXPECT_NE(page.find(std::string("nessie_nssi_errors_total") + kLabels + ",code=\"IO\"} 1\n"), std::string::npos);
  EXPECT_NE(page.find(std::string("nessie_nssi_execution_seconds_bucket") + kLabels + ",le=\"+Inf\"} 1\n"),
            std::string::npos);
}

TEST(NssiPrometheus, EveryLineIsACommentOrASample) {
  ServiceThread service(with_endpoint("127.0.0.1:0"));
  const auto page = to_prometheus(service.runtime->statistics());
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP nessie_nssi_") || line.starts_with("# TYPE nessie_nssi_")) continue;
    EXPECT_TRUE(line.starts_with("nessie_nssi_")) << line;
    EXPECT_NE(line.find_last_of("0123456789"), std::string::npos) << line;
  }
}

TEST(NssiPrometheus, BucketsAreCumulative) {
  Statistics statistics;
  auto &operation = statistics.operations.emplace_back();
  operation.execution = {6, 1000, 1'000'000'000, {{500, 1}, {900'000, 2}, {1'000'000'000, 3}}};
  const auto page = to_prometheus(statistics);
  EXPECT_NE(page.find("le=\"1e-06\"} 1\n"), std::string::npos) << page;
  EXPECT_NE(page.find("le=\"0.001\"} 3\n"), std::string::npos);
  EXPECT_NE(page.find("le=\"1\"} 6\n"), std::string::npos);
}

TEST(NssiPrometheus, AnswersOtherPathsAndMethodsWithWhatIsThere) {
  ServiceThread service(with_endpoint("127.0.0.1:0"));
  const auto address = service.runtime->statistics().prometheus;
  EXPECT_TRUE(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(ask(address, kAskForPage).starts_with("HTTP/1.1 200 "));
}

TEST(NssiPrometheus, ClosesAConnectionThatSaysTooMuch) {
  ServiceThread service(with_endpoint("127.0.0.1:0"));
  const auto address = service.runtime->statistics().prometheus;
  EXPECT_EQ(ask(address, std::string(20000, 'x')).find("200 OK"), std::string::npos);
  EXPECT_TRUE(ask(address, kAskForPage).starts_with("HTTP/1.1 200 "));
}

TEST(NssiPrometheus, ServesOthersWhileSomeSayNothing) {
  ServiceThread service(with_endpoint("127.0.0.1:0"));
  const auto address = service.runtime->statistics().prometheus;
  std::vector<std::unique_ptr<Socket>> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(std::make_unique<Socket>(address));
  EXPECT_TRUE(ask(address, kAskForPage).starts_with("HTTP/1.1 200 "));
}

TEST(NssiPrometheus, TellsOfARuntimeThatNobodyDrives) {
  auto runtime = open_runtime(with_endpoint("127.0.0.1:0"));
  EXPECT_TRUE(ask(runtime->statistics().prometheus, kAskForPage).starts_with("HTTP/1.1 200 "));
}

TEST(NssiPrometheus, AtAnAddressThatIsTakenIsAnErrorThatSaysSo) {
  auto runtime = open_runtime(with_endpoint("127.0.0.1:0"));
  const auto second = Runtime::open(with_endpoint(runtime->statistics().prometheus));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::kIo);
  EXPECT_EQ(second.error().cause, EADDRINUSE);
  EXPECT_NE(second.error().message.find("nssi.prometheus"), std::string::npos);
}

TEST(NssiPrometheus, AtWhatIsNoAddressIsAnError) {
  for (const auto *address : {"9464", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:123456"})
    EXPECT_EQ(Runtime::open(with_endpoint(address)).error().code, Code::kInvalidArgument) << address;
}

TEST(NssiPrometheus, EndsWithItsRuntime) {
  auto runtime = open_runtime(with_endpoint("127.0.0.1:0"));
  const auto address = runtime->statistics().prometheus;
  runtime.reset();
  EXPECT_FALSE(Socket(address).is_connected);
}

}  // namespace
}  // namespace nssi::testing
