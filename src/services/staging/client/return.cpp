// SPDX-License-Identifier: BSD-3-Clause
// A server that has died and is started again: this process comes back to it, gives it once more what it has open, and
// sends once more what had no answer. Whoever asks meanwhile waits, and gets his answer later than otherwise.
#include <services/staging/client/impl.hpp>

#include <base/log.hpp>

#include <algorithm>
#include <thread>

namespace staging {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;

namespace {

constexpr std::chrono::milliseconds kFirstPause{2}, kLongestPause{50};
constexpr std::chrono::seconds kAttempt{2};
constexpr nssi::PeerId kNobody{~std::uint64_t{0}};

}  // namespace

bool Client::Impl::await_return(int index, nssi::PeerId lost) {
  auto &server = at(index);
  while (server.is_returning) changed.wait(mutex);
  if (!server.returns || server.lost || !expects_return) return false;
  if (server.peer != lost) return true;
  server.is_returning = true;
  const auto status = come_back(index);
  server.is_returning = false;
  if (!status.ok()) {
    server.died = status.code() == Code::kPeerLost;
    server.lost = true;
    nessie::log::error("the staging server {} has died, and none has taken its place: {}", server.url,
                       status.error().message);
  }
  changed.notify_all();
  wake_watcher();
  return status.ok();
}

Status Client::Impl::come_back(int index) {
  auto &server = at(index);
  auto deadline = Deadline::in(timeout);
  auto pause = kFirstPause;
  for (;;) {
    auto peer = connect_again(index, Deadline::in(kAttempt).earlier(deadline));
    auto status = peer.ok() ? Status() : Status(peer.error());
    if (peer.ok()) {
      deadline = Deadline::in(timeout);  // one that dies again and again is waited for
      server.peer = *peer;
      server.stub = Stub(*runtime, *peer);
      server.max_inline_args = runtime->max_inline_args(*peer);
      server.views = runtime->can_view(*peer);
      status = greet(index);
      if (status.ok()) status = give_again(index);
      if (status.ok()) status = send_again(index);
      if (status.ok()) return status;
    }
    const bool may_come = status.code() == Code::kPeerLost || status.code() == Code::kTimedOut;
    if (!may_come || deadline.passed() || server.lost || is_ending) return status;
    const Unlocked others_go_on(mutex);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

/// One that is about to listen may be reached over a network before it is within this node, where files are given.
Result<nssi::PeerId> Client::Impl::connect_again(int index, Deadline deadline) {
  const bool was_here = at(index).is_here;
  const Unlocked others_go_on(mutex);
  auto peer = runtime->connect(at(index).url, deadline);
  if (!peer.ok() || !was_here || runtime->can_give_descriptors(*peer)) return peer;
  runtime->disconnect(*peer);
  return nessie::Error{nessie::Code::kPeerLost, "it does not listen within this node yet"};
}

HelloArgs Client::Impl::hello() const {
  HelloArgs args{Op::kVersion, program, id, {}};
  for (const auto &server : servers) args.servers.push_back(server.url);
  return args;
}

Status Client::Impl::greet(int index) {
  auto &server = at(index);
  auto hello = server.stub.hello_async(this->hello(), kPatient);
  const auto answer = answer_of(hello, index, Deadline::never());
  if (!answer.ok()) return answer.error();
  if (job.empty()) return {};
  auto belong = server.stub.belong_async(job, kPatient);
  return answer_of(belong, index, Deadline::never());
}

/// What this process has opened for its program.
Status Client::Impl::give_again(int index) {
  std::vector<FileToken> tokens;
  for (const auto &[token, file] : opened)
    if (file.file) tokens.push_back(token);
  for (const auto token : tokens) {
    const auto file = opened.find(token);
    if (file == opened.end()) continue;
    auto held = asking_with(file->second.file.get(), index, &Stub::hold_async, file->second.args)();
    if (auto answer = answer_of(held, index, Deadline::never()); !answer.ok()) return answer.error();
  }
  return {};
}

/// In the order in which it was sent first. Threads that wait for answers of the one that has died are about to be
/// told so.
Status Client::Impl::send_again(int index) {
  const auto is_waited_for = [=](const Message *message) { return message->server == index && message->is_waited_for; };
  while (std::ranges::any_of(awaited, is_waited_for)) changed.wait(mutex);
  std::vector<Message *> unanswered;
  for (auto *message : awaited) unanswered.push_back(message);
  for (const auto &message : messages) unanswered.push_back(message.get());
  std::erase_if(unanswered, [=](Message *message) {
    return message->server != index || (message->answer.test() && message->answer.wait().ok());
  });
  std::ranges::sort(unanswered, {}, [](const Message *message) { return message->args.number; });
  at(index).is_sent_again = true;
  for (auto *message : unanswered) {
    message->is_urgent = true;
    send(*message);
  }
  at(index).is_sent_again = false;
  auto returned = at(index).stub.returned_async(kPatient);
  return answer_of(returned, index, Deadline::never());
}

void Client::Impl::send(Message &message) {
  auto &server = at(message.server);
  if (server.is_returning && !server.is_sent_again) {  // it is to be sent in its turn
    message.answer = nssi::Future<NcResult>(Error{nessie::Code::kPeerLost, "the server is about to be back"});
    message.of = kNobody;
    return;
  }
  auto options = kPatient;
  if (message.buffer.valid()) options.data = &message.buffer;
  const auto op = !message.is_write   ? &Stub::read_async
                  : message.is_urgent ? &Stub::write_now_async
                                      : &Stub::write_async;
  message.of = server.peer;
  message.answer = (server.stub.*op)(message.args, options);
}

}  // namespace staging
