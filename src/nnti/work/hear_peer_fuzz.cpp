// SPDX-License-Identifier: BSD-3-Clause
// A context that hears anything at all from a raw endpoint. Ids of buffers are unguessable, so that a fuzzer would
// never hit one: the first byte of each message says which of the context's own to put where one is expected. The
// context sends a large message, too, and the numbers that it gives to its transfers can be had likewise. An input is a
// list of messages: for each that byte, two of length, and the message.
#include "nnti/work/wire.hpp"

#include <base/testing/fuzz.hpp>
#include <nnti/context.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

namespace {

using namespace nnti;
using nessie::fuzz::Bytes;
using wire::Control;
using wire::Kind;

struct Deaf final : EventSink {
  void on_message(PeerId, std::span<const std::byte> message) override {
    const auto control = wire::parse(message);
    if (control && control->kind == Kind::kWriteTo) to_write = control->buffer;
    if (control && control->kind == Kind::kSendLarge) announced = control->operation;
  }
  void on_peer_lost(PeerId, const Error &) override { lost = true; }
  bool lost = true;
  std::uint64_t to_write = 0;   ///< what the context wants us to write
  std::uint64_t announced = 0;  ///< what the context would send us
};

/// Which numbers of a message are replaced by the context's own, besides those of buffers.
constexpr std::uint8_t kToWrite = 200, kAnnounced = 201;

/// A context with buffers of every kind, and a peer that says what it likes.
class World {
 public:
  World() {
    ContextOptions options;
    options.transports = {"inproc"};
    options.config.set("nnti.rendezvous.write_from", "0");
    auto opened = Context::open(std::move(options));
    if (!opened.ok()) return;
    context_ = std::move(*opened);
    const std::span<std::byte> pieces[] = {{memory_.data(), 100}, {memory_.data() + 200, 50}};
    add(context_->register_memory(memory_.data(), 64, 4, Purpose::kReceiveQueue));
    add(context_->register_memory(memory_.data() + 256, 128, 1, Purpose::kReceiveDestination | Purpose::kRemoteRead));
    add(context_->register_segments(pieces, Purpose::kRemoteWrite | Purpose::kWithEvents | Purpose::kAtomics));
    add(context_->register_memory(memory_.data() + 512, 64, 1, Purpose::kLocalRead));
    ids_.push_back(1);  // the atomic variables
    if (auto large = context_->register_memory(large_.data(), large_.size(), 1, Purpose::kSendSource); large.ok())
      large_id_ = large->local();
    EndpointOptions peer;
    peer.transports = {"inproc"};
    auto endpoint = Endpoint::open(std::move(peer), deaf_);
    if (endpoint.ok()) endpoint_ = std::move(*endpoint);
  }

  void run(std::span<const std::byte> bytes) {
    if (!context_ || !endpoint_ || !connect()) return;
    while (bytes.size() >= 3 && !deaf_.lost) {
      const auto size = std::min<std::size_t>(
          static_cast<std::size_t>(bytes[1]) | static_cast<std::size_t>(bytes[2]) << 8, bytes.size() - 3);
      say(bytes[0], bytes.subspan(3, size));
      bytes = bytes.subspan(3 + size);
    }
    drain();
  }

 private:
  void add(const Result<BufferHandle> &made) {
    if (made.ok()) ids_.push_back(made->id);
  }

  bool connect() {
    if (!deaf_.lost) return true;
    Result<PeerId> connected = Error{};
    std::atomic<bool> done{false};
    std::thread accepts([&] {
      while (!done) (void)context_->wait(BufferId{ids_[0]}, Purpose::kNone, Deadline::in(std::chrono::seconds(1))).ok();
    });
    connected = endpoint_->connect(context_->url(), Deadline::in(std::chrono::seconds(20)));
    done = true;
    context_->interrupt();
    accepts.join();
    (void)context_->wait(BufferId{ids_[0]}, Purpose::kNone, Deadline::now()).ok();  // takes an interrupt that is left
    if (!connected.ok()) return false;
    peer_ = *connected;
    deaf_.lost = false;
    Control hello{.buffer = 42 + ++greetings_};
    if (!endpoint_->send(peer_, std::as_bytes(std::span(&hello, 1))).ok()) return false;
    drain();
    (void)context_->send({hello.buffer}, large_id_, nullptr).ok();
    return true;
  }

  void say(std::byte where, std::span<const std::byte> message) {
    scratch_.assign(message.begin(), message.end());
    const auto choice = static_cast<std::size_t>(where);
    if (choice != 0 && scratch_.size() >= sizeof(Control) && !ids_.empty()) {
      const auto id = choice == kToWrite ? deaf_.to_write : ids_[choice % ids_.size()];
      if (choice != kAnnounced) std::memcpy(scratch_.data() + offsetof(Control, buffer), &id, sizeof id);
      if (choice == kAnnounced)
        std::memcpy(scratch_.data() + offsetof(Control, operation), &deaf_.announced, sizeof deaf_.announced);
    }
    if (scratch_.size() <= endpoint_->max_message_bytes(peer_)) (void)endpoint_->send(peer_, scratch_).ok();
    drain();
  }

  /// Both sides go on, and what has arrived is taken.
  void drain() {
    for (int i = 0; i < 2; ++i) {
      for (std::size_t b = 0; b + 1 < ids_.size(); ++b) {
        auto event = context_->wait(BufferId{ids_[b]}, Purpose::kNone, Deadline::now());
        if (event.ok() && event->element != Event::kNoElement)
          (void)context_->release(event->buffer, event->element).ok();
      }
      endpoint_->progress();
    }
  }

  std::array<std::byte, 1024> memory_{};
  Bytes large_ = Bytes(64 << 10);
  BufferId large_id_;
  Deaf deaf_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<Endpoint> endpoint_;
  PeerId peer_;
  std::uint64_t greetings_ = 0;
  std::vector<std::uint64_t> ids_;
  Bytes scratch_;
};

void append(Bytes &out, std::uint8_t where, const Control &control, std::span<const std::byte> payload) {
  const std::size_t size = sizeof control + payload.size();
  out.push_back(static_cast<std::byte>(where));
  out.push_back(static_cast<std::byte>(size));
  out.push_back(static_cast<std::byte>(size >> 8));
  const auto head = std::as_bytes(std::span(&control, 1));
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), payload.begin(), payload.end());
}

/// A message of which half is read and half written, and what the context would send is asked for.
Bytes rendezvous() {
  Bytes all;
  const RemoteBuffer memory{1, 2, 30, 3, 4, Rights::kReadWrite};
  const auto remote = std::as_bytes(std::span(&memory, 1));
  Control control{.kind = Kind::kSendLarge, .operation = 5, .length = 60};
  for (const std::uint64_t readable : {0, 30}) {
    control.offset = readable;
    append(all, 0, control, remote.first(readable == 0 ? 0 : remote.size()));
    Control written{.kind = Kind::kWritten};
    append(all, kToWrite, written, {});
  }
  control.kind = Kind::kWriteTo;
  control.offset = 32 << 10;
  control.length = 30;
  append(all, kAnnounced, control, remote);
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  static World world;
  world.run(std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  std::vector<Bytes> corpus;
  Bytes all;
  std::array<std::byte, 80> payload{};
  const RemoteBuffer memory{1, 2, 60, 3, 4, Rights::kReadWrite};
  std::memcpy(payload.data(), &memory, sizeof memory);
  for (auto kind = Kind::kHello; kind <= Kind::kWritten; kind = static_cast<Kind>(static_cast<int>(kind) + 1)) {
    Bytes one;
    for (std::uint8_t where = 0; where < 6; ++where) {
      Control control{.kind = kind, .operation = where, .offset = where};
      if (kind == Kind::kAccessed) control.operation = 8;
      const bool message = kind == Kind::kSend || kind == Kind::kResend;
      const bool remote = kind == Kind::kSendLarge || kind == Kind::kDescribed || kind == Kind::kWriteTo;
      const std::size_t size = message ? 60 : remote ? sizeof(RemoteBuffer) : 0;
      control.length = kind == Kind::kAccessed ? 8 : 60;
      if (kind == Kind::kSendLarge) control.offset = 60;
      append(one, where, control, std::span(payload).first(size));
    }
    all.insert(all.end(), one.begin(), one.end());
    if (kind != Kind::kHello) corpus.push_back(std::move(one));
  }
  corpus.push_back(std::move(all));
  corpus.push_back(rendezvous());
  return corpus;
}
