// SPDX-License-Identifier: BSD-3-Clause
// For the engine's tests: two contexts in this process, over each transport of the conformance suite. A thread keeps
// the server's progress going while the test uses both.
#pragma once

#include "nnti/conformance/conformance.hpp"

#include <nnti/context.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace nnti::engine_test {

using conformance::kWatchdog;
using conformance::Subject;
using namespace std::chrono_literals;

inline constexpr Purpose kTarget = Purpose::kRemoteRead | Purpose::kRemoteWrite;
inline constexpr Purpose kLocal = Purpose::kLocalRead | Purpose::kLocalWrite;

inline Deadline watchdog() { return Deadline::in(kWatchdog); }

/// A context that is open, and memory registered with it.
class Node {
 public:
  explicit Node(const Subject &subject, const nessie::Credential &credential = {}) {
    ContextOptions options;
    options.credential = credential;
    options.transports = {subject.transport};
    for (const auto &[key, value] : subject.settings) options.config.set(key, value);
    auto opened = Context::open(std::move(options));
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().to_string());
    if (opened.ok()) context = std::move(*opened);
  }
  Context *operator->() const { return context.get(); }
  std::shared_ptr<Context> context;
};

/// Memory of the test's, registered until the end of its scope.
struct Buffer {
  Buffer(const Node &node, std::size_t element, std::size_t elements, Purpose purposes)
      : node_(node), memory((element * elements + 7) / 8 * 8) {
    auto made = node->register_memory(memory.data(), element, elements, purposes);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    if (made.ok()) handle = *made;
  }
  ~Buffer() { (void)node_->unregister(id()).ok(); }
  BufferId id() const { return handle.local(); }
  void fill(unsigned seed) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(seed + i * 7);
  }
  std::uint64_t &word(std::size_t index) { return reinterpret_cast<std::uint64_t *>(memory.data())[index]; }

 private:
  const Node &node_;

 public:
  std::vector<std::byte> memory;
  BufferHandle handle;
};

/// Keeps a context's progress going.
class Progress {
 public:
  explicit Progress(const Node &node)
      : nothing_(node, 8, 1, Purpose::kReceiveDestination), thread_([this, context = node.context] {
          while (!stop_) (void)context->wait(nothing_.id(), Purpose::kNone, Deadline::in(20ms)).ok();
        }) {}
  ~Progress() {
    stop_ = true;
    thread_.join();
  }

 private:
  Buffer nothing_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class Engine : public conformance::Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped()) return;
    server = std::make_unique<Node>(subject());
    client = std::make_unique<Node>(subject());
    ASSERT_TRUE(server->context && client->context);
    progress = std::make_unique<Progress>(*server);
    auto connected = (*client)->connect((*server)->url(), watchdog());
    ASSERT_TRUE(connected.ok()) << connected.error().to_string();
    peer = (*connected)->process;
  }
  void TearDown() override { progress.reset(); }

  /// The completion of a client's request.
  Event finish(RequestId request) const {
    auto event = (*client)->wait(request, watchdog());
    EXPECT_TRUE(event.ok()) << (event.ok() ? "" : event.error().to_string());
    return event.ok() ? *event : failed();
  }
  Event receive(BufferId buffer) const {
    auto event = (*server)->wait(buffer, Purpose::kNone, watchdog());
    EXPECT_TRUE(event.ok()) << (event.ok() ? "" : event.error().to_string());
    return event.ok() ? *event : failed();
  }
  static Event failed() {
    Event event;
    event.code = Code::kInternal;
    return event;
  }
  Code put(Buffer &source, const BufferHandle &target, std::uint64_t from, std::uint64_t size, std::uint64_t to) const {
    RequestId request;
    auto started = (*client)->put(source.id(), from, size, target, to, &request);
    return started.ok() ? finish(request).code : started.code();
  }
  Code get(const BufferHandle &target, std::uint64_t from, std::uint64_t size, Buffer &local, std::uint64_t to) const {
    RequestId request;
    auto started = (*client)->get(target, from, size, local.id(), to, &request);
    return started.ok() ? finish(request).code : started.code();
  }
  RequestId send(const Buffer &message, const BufferHandle *destination = nullptr) const {
    RequestId request;
    auto started = (*client)->send(peer, message.id(), destination, &request);
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().to_string());
    return request;
  }

  std::unique_ptr<Node> server, client;
  std::unique_ptr<Progress> progress;
  ProcessId peer;  ///< the server, as the client sees it
};

}  // namespace nnti::engine_test
