// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include "base/fd.hpp"
#ifdef NNTI_HAVE_MPI
#include <nnti/mpi.hpp>
#endif

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <stdexcept>

namespace nnti::conformance {

namespace {

/// Transports of libraries of their own.
std::vector<const TransportKind *> extra_transports() {
  std::vector<const TransportKind *> extra;
#ifdef NNTI_HAVE_MPI
  extra.push_back(&mpi::transport_kind());
#endif
  return extra;
}

/// A network that does everything that networks do, in moderation.
Settings faults(Settings more = {}) {
  more.insert(more.end(), {{"nnti.faulty.seed", "20111"},
                           {"nnti.faulty.loss", "0.005"},
                           {"nnti.faulty.duplicate", "0.005"},
                           {"nnti.faulty.delay", "0.005:2ms"},
                           {"nnti.faulty.reorder", "0.01"},
                           {"nnti.faulty.transient", "0.02"},
                           {"nnti.faulty.break", "0.0005:20ms"},
                           {"nnti.peer_timeout", "10s"}});
  return more;
}

}  // namespace

/// The suite's subjects: one line each.
const std::vector<Subject> &subjects() {
  static const std::vector<Subject> all = {
      {"inproc", "inproc", {}, false},
      {"shm", "shm", {}, true},
      {"shm_without_cma", "shm", {{"nnti.shm.cma", "off"}}, true},
      {"sealed_inproc", "inproc", {{"nnti.encrypt", "all"}}, false},
      {"sealed_shm", "shm", {{"nnti.encrypt", "all"}, {"nnti.mailbox", "33344"}}, true},
      {"sealed_tcp", "tcp", {{"nnti.encrypt", "network"}, {"nnti.tcp.address", "127.0.0.1"}}, true},
      {"sealed_ofi", "ofi", {{"nnti.encrypt", "network"}, {"nnti.ofi.address", "127.0.0.1"}}, true},
      {"shm_in_advance", "shm", {{"nnti.channel_setup", "in-advance"}}, true},
      {"shm_shared_queue", "shm", {{"nnti.channel", "shared-queue"}}, true},
      {"shm_shared_queue_without_cma", "shm", {{"nnti.channel", "shared-queue"}, {"nnti.shm.cma", "off"}}, true},
      {"tcp", "tcp", {{"nnti.tcp.address", "127.0.0.1"}}, true},
      {"ofi", "ofi", {{"nnti.ofi.address", "127.0.0.1"}}, true},
      {"ofi_shm", "ofi", {{"nnti.ofi.provider", "shm"}}, true},
      {"ofi_mr_local", "ofi", {{"nnti.ofi.address", "127.0.0.1"}, {"nnti.ofi.mr_local", "on"}}, true},
      {"ucx", "ucx", {{"nnti.ucx.address", "127.0.0.1"}}, true},
      {"ucx_tcp", "ucx", {{"nnti.ucx.address", "127.0.0.1"}, {"nnti.ucx.tls", "tcp"}}, true},
#ifdef NNTI_HAVE_MPI
      {"mpi", "mpi", {}, false},  // between processes: transports/mpi/processes_test.cpp
#endif
      {"faulty_inproc", "faulty+inproc", faults(), false},
      {"faulty_shm", "faulty+shm", faults(), true},
      {"faulty_tcp", "faulty+tcp", faults({{"nnti.tcp.address", "127.0.0.1"}}), true},
      {"faulty_ofi", "faulty+ofi", faults({{"nnti.ofi.address", "127.0.0.1"}}), true},
      {"faulty_ucx", "faulty+ucx", faults({{"nnti.ucx.address", "127.0.0.1"}}), true},
      {"faulty_ucx_tcp", "faulty+ucx", faults({{"nnti.ucx.address", "127.0.0.1"}, {"nnti.ucx.tls", "tcp"}}), true},
#ifdef NNTI_HAVE_MPI
      {"faulty_mpi", "faulty+mpi", faults(), false},
#endif
  };
  return all;
}

const std::vector<Subject> &subjects_for_upper_floors() {
  static const auto chosen = [] {
    constexpr std::array kNames = {"inproc",  "shm", "shm_shared_queue", "sealed_inproc", "tcp",       "ofi", "ucx",
                                   "ucx_tcp", "mpi", "faulty_inproc",    "faulty_ofi",    "faulty_tcp"};
    std::vector<Subject> some;
    std::ranges::copy_if(subjects(), std::back_inserter(some),
                         [&](const Subject &subject) { return std::ranges::count(kNames, subject.name) != 0; });
    return some;
  }();
  return chosen;
}

std::ostream &operator<<(std::ostream &out, const Subject &subject) { return out << subject.name; }

Bytes bytes_of(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

void Recorder::on_message(PeerId from, std::span<const std::byte> message) {
  if (message_hook) return message_hook(from, message);
  messages.emplace_back(message.begin(), message.end());
}

void Recorder::on_peer_lost(PeerId peer, const Error &error) {
  lost.emplace_back(peer, error);
  if (lost_hook) lost_hook(peer);
}

Node::Node(const Subject &subject, const nessie::Credential &credential, bool listen, const Settings &settings) {
  EndpointOptions options;
  options.transports = {subject.transport};
  options.extra_transports = extra_transports();
  options.credential = credential;
  options.listen = listen;
  for (const auto &[key, value] : subject.settings) options.config.set(key, value);
  for (const auto &[key, value] : settings) options.config.set(key, value);
  auto opened = Endpoint::open(std::move(options), seen);
  if (!opened.ok()) {
    ADD_FAILURE() << opened.error().to_string();
    throw std::runtime_error("no endpoint");
  }
  endpoint = std::move(*opened);
}

bool drive(std::initializer_list<Node *> nodes, const std::function<bool()> &state) {
  auto watchdog = Deadline::in(kWatchdog);
  while (!state()) {
    std::size_t events = 0;
    for (auto *node : nodes) events += node->endpoint->progress();
    if (events == 0 && nodes.size() == 1) (*nodes.begin())->endpoint->wait(Deadline::in(100ms).earlier(watchdog));
    if (events == 0 && watchdog.passed()) return state();
  }
  return true;
}

Driver::Driver(Node &node)
    : endpoint_(*node.endpoint), thread_([this] {
        while (!stop_.load())
          if (endpoint_.progress() == 0) endpoint_.wait(Deadline::in(kWatchdog));
      }) {}

Driver::~Driver() {
  stop_.store(true);
  endpoint_.wake();
  thread_.join();
}

Pair::Pair(const Subject &subject, const Settings &settings)
    : server(subject, credential, true, settings), client(subject, credential, false, settings) {
  {
    Driver driver(server);
    auto connected = client.endpoint->connect(server.endpoint->url(), Deadline::in(kWatchdog));
    EXPECT_TRUE(connected.ok()) << connected.error().to_string();
    if (connected.ok()) to_server = *connected;
  }
  EXPECT_TRUE(drive_until([&] { return !server.seen.connected.empty(); }));
  if (!server.seen.connected.empty()) to_client = server.seen.connected[0];
}

const Status &Pair::finish(Outcome &outcome) {
  EXPECT_TRUE(drive_until([&] { return outcome.times != 0; }));
  EXPECT_EQ(outcome.times, 1);
  return outcome.status;
}

Status Pair::get(const RemoteBuffer &remote, std::uint64_t offset, std::span<std::byte> local) {
  Outcome outcome;
  client.endpoint->get(to_server, remote, offset, local, outcome);
  return finish(outcome);
}

Status Pair::put(const RemoteBuffer &remote, std::uint64_t offset, std::span<const std::byte> local) {
  Outcome outcome;
  client.endpoint->put(to_server, remote, offset, local, outcome);
  return finish(outcome);
}

RemoteBuffer Pair::describe(const RegisteredBuffer &buffer) {
  auto description = buffer.describe_for(to_client);
  EXPECT_TRUE(description.ok()) << description.error().to_string();
  return description.ok() ? *description : RemoteBuffer();
}

Child::Child(const Subject &subject, const nessie::Credential &credential, const std::string &listen_at) {
  std::vector<std::string> words = {"/proc/self/exe", "--child", subject.name, credential.to_hex(), listen_at};
  std::vector<char *> arguments;
  for (auto &word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  nessie::Fd output(ends[0]), input(ends[1]);
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(input.get(), STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  input.reset();
  char c;
  while (::read(output.get(), &c, 1) == 1 && c != '\n') url_ += c;
  EXPECT_FALSE(url_.empty()) << "the child did not come up";
}

Child::~Child() {
  kill();
  reap();
}

void Child::kill() {
  if (process_ > 0) ::kill(process_, SIGKILL);
}

namespace {

/// What libfabric's shm has under the name of a process, and leaves there if that is killed.
void remove_shared_memory_of(pid_t process) {
  const auto mine = std::to_string(process) + ":";
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator("/dev/shm", ignored))
    if (entry.path().filename().string().starts_with(mine)) std::filesystem::remove(entry.path(), ignored);
}

}  // namespace

int Child::reap() {
  if (process_ <= 0) return 0;
  int status = 0;
  const auto process = std::exchange(process_, -1);
  ::waitpid(process, &status, 0);
  remove_shared_memory_of(process);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

bool Subject::lossy() const { return transport.starts_with("faulty+"); }

void Conformance::SetUp() {
  const auto name = subject().lossy() ? subject().transport.substr(sizeof "faulty+" - 1) : subject().transport;
  for (const auto &info : Endpoint::survey({}, extra_transports()))
    if (info.name == name) {
      if (!info.available) GTEST_SKIP() << subject().transport << " is not available here: " << info.explanation;
      return;
    }
  GTEST_SKIP() << subject().transport << " was not built in";
}

}  // namespace nnti::conformance
