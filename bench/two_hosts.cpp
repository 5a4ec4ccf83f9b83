// SPDX-License-Identifier: BSD-3-Clause
#include "two_hosts.hpp"

#include <base/config.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace bench {
namespace {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

constexpr int kHosts = 2;
constexpr auto kLimit = std::chrono::seconds(10);

/// In a process that was forked for it. False: it may not.
bool become_host(int host) {
  const std::string name = fmt::format("bench-{}", host);
  return ::unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") == 0 && ::sethostname(name.data(), name.size()) == 0;
}

/// Holds the name spaces until `from_parent` is closed.
int be_host(int host, int from_parent, int to_parent) {
  char word = become_host(host) ? '+' : '-';
  if (!write_all(to_parent, std::as_bytes(std::span(&word, 1)))) return 1;
  while (::read(from_parent, &word, 1) < 0 && errno == EINTR) {}
  return 0;
}

std::string cable_end(int host) { return fmt::format("bench{}", host); }

Error unsupported(const std::string &why) {
  return {Code::kUnsupported, "two hosts cannot be made of name spaces here: " + why};
}

}  // namespace

Result<std::unique_ptr<TwoHosts>> TwoHosts::make(const std::string &rate) {
  if (::geteuid() != 0) return unsupported("only root may");
  for (const char *tool : {"ip", "tc", "nsenter"})
    if (!on_path(tool)) return unsupported(fmt::format("there is no {}", tool));
  std::unique_ptr<TwoHosts> hosts(new TwoHosts);
  auto status = hosts->start();
  if (status.ok()) status = hosts->join(rate);
  if (!status.ok()) return status.error();
  return hosts;
}

// The later one has the earlier one's pipe open, too.
TwoHosts::~TwoHosts() {
  while (!hosts_.empty()) hosts_.pop_back();
}

Status TwoHosts::start() {
  for (int host = 0; host < kHosts; ++host)
    hosts_.push_back(std::make_unique<Partner>([host](int from, int to) { return be_host(host, from, to); }));
  for (auto &host : hosts_)
    if (char word = 0; !host->read_value(word) || word != '+') return unsupported("the kernel refuses");
  return {};
}

Status TwoHosts::join(const std::string &rate) const {
  std::vector<std::vector<std::string>> commands{
      nessie::split(fmt::format("ip link add {} netns {} type veth peer name {} netns {}", cable_end(0),
                                hosts_[0]->pid(), cable_end(1), hosts_[1]->pid()),
                    " ")};
  for (int host = 0; host < kHosts; ++host) {
    const auto end = cable_end(host);
    for (const auto &line :
         {std::string("ip link set lo up"), fmt::format("ip address add {}/24 dev {}", address(host), end),
          fmt::format("ip link set {} up", end)})
      commands.push_back(as_root_on(host, line));
    if (!rate.empty())
      commands.push_back(
          as_root_on(host, fmt::format("tc qdisc add dev {} root tbf rate {} burst 4mb latency 20ms", end, rate)));
  }
  for (const auto &command : commands)
    if (auto done = run_program(command, kLimit); !done) return unsupported(done.error().message);
  for (int host = 0; host < kHosts; ++host)
    if (auto status = await_link(host); !status.ok()) return status;
  return {};
}

/// The kernel takes up to a second to say that a cable is there.
Status TwoHosts::await_link(int host) const {
  const auto until = std::chrono::steady_clock::now() + kLimit;
  while (std::chrono::steady_clock::now() < until) {
    const auto link = run_program(as_root_on(host, "ip -o link show " + cable_end(host)), kLimit);
    if (!link) return unsupported(link.error().message);
    if (link->output.find("state UP") != std::string::npos) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return Error{Code::kTimedOut, "the cable between two hosts has no carrier"};
}

std::vector<std::string> TwoHosts::as_root_on(int host, const std::string &line) const {
  return nessie::split(fmt::format("nsenter --net --uts --ipc --mount --target {} --wd {}",
                                   hosts_[static_cast<std::size_t>(host)]->pid(), line),
                       " ");
}

std::vector<std::string> TwoHosts::on(int host, std::vector<std::string> words) const {
  auto command = as_root_on(
      host, fmt::format("--setuid {} --setgid {} env TMPDIR=/dev/shm XDG_RUNTIME_DIR=/dev/shm", kUser, kUser));
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

bool TwoHosts::enter_network(int host) const {
  const auto path = fmt::format("/proc/{}/ns/net", hosts_[static_cast<std::size_t>(host)]->pid());
  const int network = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = network >= 0 && ::setns(network, CLONE_NEWNET) == 0;
  if (network >= 0) ::close(network);
  return entered;
}

std::string TwoHosts::address(int host) { return fmt::format("10.88.0.{}", host + 1); }

}  // namespace bench
