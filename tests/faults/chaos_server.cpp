// SPDX-License-Identifier: BSD-3-Clause
// The serving role: an operation for each way in which a handler can run and move data. Each writes down the number of
// its call before it does anything else.
#include <signal.h>

#include <cstdio>

#include "chaos.hpp"

namespace chaos {

namespace {

/// Small, so that requests are turned away all the time.
constexpr nssi::Limits kLimits{24, 10, 6 << 20, 3 << 20};
constexpr milliseconds kStopsWithin{2000};

nssi::Runtime *told = nullptr;

void stop_when_done(int) {
  if (told == nullptr) ::_exit(0);  // it serves not yet, or no more
  told->stop_when_done(Deadline::in(kStopsWithin));
}

class Server {
 public:
  Server(nssi::Runtime &runtime, Journal &journal) : runtime_(runtime), journal_(journal) {
    using Kind = nssi::HandlerKind;
    add(kEcho, Kind::kFiber, &Server::echo);
    add(kShort, Kind::kShort, &Server::echo);
    add(kPull, Kind::kFiber, &Server::pull);
    add(kPush, Kind::kFiber, &Server::push);
    add(kPooledEcho, Kind::kFiber, &Server::echo, "work");
    add(kPooledPull, Kind::kFiber, &Server::pull, "work");
    add(kPooledPush, Kind::kFiber, &Server::push, "work");
    add(kNap, Kind::kFiber, &Server::nap);
    add(kPooledBlock, Kind::kFiber, &Server::block, "work");
    add(kFail, Kind::kFiber, &Server::fail);
    add(kBulkPull, Kind::kBulk, &Server::pull);
  }

 private:
  using Work = void (Server::*)(nssi::Request &, const Head &);

  void add(Op op, nssi::HandlerKind kind, Work work, const char *pool = "") {
    nssi::Operation operation{kInterface, 0, op, "chaos" + std::to_string(op), kind, {}};
    operation.handler = [this, work](nssi::Request &request) { execute(request, work); };
    operation.pool = pool;
    operation.reads_args_once = op == kEcho;
    if (auto status = runtime_.add_operation(std::move(operation)); !status.ok())
      throw std::runtime_error(status.error().to_string());
  }

  /// Arguments that are not what was sent are an error that no call may end with.
  void execute(nssi::Request &request, Work work) {
    const auto args = request.args();
    Head head;
    if (args.size() >= sizeof head) std::memcpy(&head, args.data(), sizeof head);
    journal_.append({.number = head.number, .kind = 'x', .op = static_cast<std::uint8_t>(request.op())});
    const bool is_right =
        args.size() == sizeof head + head.padding_bytes && is_pattern(head.number, args.subspan(sizeof head));
    if (!is_right) return (void)request.reply_error({Code::kInternal, "the arguments are not what was sent"});
    (this->*work)(request, head);
  }

  void echo(nssi::Request &request, const Head &head) {
    if (head.number % 2 == 0)
      return (void)request.reply(head.result_bytes, [&](auto bytes) { fill_pattern(head.number, bytes); });
    Bytes result(head.result_bytes);
    fill_pattern(head.number, result);
    (void)request.reply(result);
  }

  /// In two pieces, so that one can be interrupted between them. Replies one byte: whether all was right.
  void pull(nssi::Request &request, const Head &head) {
    Bytes bytes(request.data_bytes());
    const std::span<std::byte> all(bytes);
    const auto half = all.size() / 2;
    auto status = request.get_data(all.first(half));
    if (status.ok()) status = request.get_data(all.subspan(half), half);
    if (!status.ok()) return (void)request.reply_error(status.error());
    const bool is_right = is_pattern(head.number, all) &&
                          (request.view_data() == nullptr || is_pattern(head.number, request.view_data()->bytes()));
    (void)request.reply(Bytes{std::byte{is_right}});
  }

  void push(nssi::Request &request, const Head &head) {
    Bytes bytes(request.data_bytes());
    fill_pattern(head.number, bytes);
    const std::span<const std::byte> all(bytes);
    const auto half = all.size() / 2;
    auto status = request.put_data(all.first(half));
    if (status.ok()) status = request.put_data(all.subspan(half), half);
    (void)(status.ok() ? request.reply(Bytes{std::byte{1}}) : request.reply_error(status.error()));
  }

  void nap(nssi::Request &request, const Head &head) {
    runtime_.sleep_until(Deadline::in(milliseconds(head.number % 64)));
    echo(request, head);
  }

  void block(nssi::Request &request, const Head &head) {
    std::this_thread::sleep_for(std::chrono::microseconds(head.number % 4096));  // the work of this operation
    echo(request, head);
  }

  void fail(nssi::Request &request, const Head &) { (void)request.reply_error({Code::kIo, "as it was asked to"}); }

  nssi::Runtime &runtime_;
  Journal &journal_;
};

/// Complete, or not there.
void publish(const std::string &path, const std::string &text) {
  const auto draft = path + ".draft";
  auto *file = std::fopen(draft.c_str(), "w");
  if (file == nullptr || std::fputs(text.c_str(), file) < 0 || std::fclose(file) != 0 ||
      std::rename(draft.c_str(), path.c_str()) != 0)
    throw std::runtime_error("cannot write " + path);
}

}  // namespace

int serve(const std::string &transport, const std::string &journal_path, const std::string &url_file) {
  ::signal(SIGTERM, stop_when_done);
  Journal journal(journal_path);
  Watchdog watchdog([&] { journal.append({.kind = 'h'}); });
  nssi::RuntimeOptions options;
  options.endpoint.transports = {transport};
  options.pools.push_back({.name = "work", .threads = 2});
  options.limits = kLimits;
  options.bulk_quiet = std::chrono::microseconds(500);
  auto runtime = nssi::Runtime::open(std::move(options));
  if (!runtime.ok()) throw std::runtime_error(runtime.error().to_string());
  Server server(**runtime, journal);
  told = runtime->get();
  publish(url_file, (*runtime)->url());
  (*runtime)->run();
  ::signal(SIGTERM, SIG_IGN);
  told = nullptr;
  runtime->reset();
  journal.append({.kind = 'e'});
  return 0;
}

}  // namespace chaos
