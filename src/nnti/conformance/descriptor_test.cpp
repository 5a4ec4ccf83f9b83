// SPDX-License-Identifier: BSD-3-Clause
#include "nnti/conformance/conformance.hpp"

#include "base/fd.hpp"
#include "nnti/conformance/given_file_testing.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace nnti::conformance {
namespace {

class Descriptors : public Conformance {};

using nnti::given::file_with;
using nnti::given::text_in;

/// Gives it, says so, and has the server take it; what the server got.
Result<int> hand_over(Pair &pair, std::uint64_t key, int descriptor) {
  if (auto given = pair.client.endpoint->give_descriptor(pair.to_server, key, descriptor); !given.ok())
    return given.error();
  Result<int> taken = Error{Code::kInternal, "no message came"};
  bool came = false;
  pair.server.seen.message_hook = [&](PeerId from, std::span<const std::byte>) {
    taken = pair.server.endpoint->take_descriptor(from, key);
    came = true;
  };
  EXPECT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("take it")).ok());
  EXPECT_TRUE(pair.drive_until([&] { return came; }));
  return taken;
}

TEST_P(Descriptors, AreThereForTheMessageThatFollows_OrRefusedBetweenNodes) {
  Pair pair(subject());
  auto file = file_with("of the client");
  auto taken = hand_over(pair, 7, file.get());
  EXPECT_EQ(pair.client.endpoint->can_give_descriptors(pair.to_server), taken.ok());
  EXPECT_EQ(pair.server.endpoint->can_give_descriptors(pair.to_client), taken.ok());
  if (!taken.ok()) {
    EXPECT_EQ(taken.code(), Code::kUnsupported);
    EXPECT_FALSE(pair.client.endpoint->can_view(pair.to_server));
    return;
  }
  file.reset();
  const nessie::Fd theirs(*taken);
  EXPECT_EQ(text_in(theirs.get()), "of the client");
  EXPECT_EQ(::fcntl(theirs.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(hand_over(pair, 8, theirs.get()).ok(), true) << "a second one";
}

TEST_P(Descriptors, AreGivenByTheAcceptingSideToo) {
  Pair pair(subject());
  auto file = file_with("of the server");
  Status given;
  Result<int> taken = Error{};
  bool came = false;
  pair.server.seen.message_hook = [&](PeerId from, std::span<const std::byte>) {
    given = pair.server.endpoint->give_descriptor(from, 7, file.get());
    EXPECT_TRUE(pair.server.endpoint->send(from, bytes_of("take it")).ok());
  };
  pair.client.seen.message_hook = [&](PeerId from, std::span<const std::byte>) {
    taken = pair.client.endpoint->take_descriptor(from, 7);
    came = true;
  };
  ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("give it")).ok());
  ASSERT_TRUE(pair.drive_until([&] { return came; }));
  if (!given.ok()) {
    EXPECT_EQ(given.code(), Code::kUnsupported);
    EXPECT_EQ(taken.code(), Code::kNotFound);
    return;
  }
  ASSERT_TRUE(taken.ok()) << taken.error().to_string();
  const nessie::Fd ours(*taken);
  EXPECT_EQ(text_in(ours.get()), "of the server");
}

TEST_P(Descriptors, AreTakenOnce) {
  Pair pair(subject());
  auto file = file_with("once");
  auto taken = hand_over(pair, 7, file.get());
  if (!taken.ok()) return;  // between nodes
  const nessie::Fd theirs(*taken);
  Result<int> again = Error{};
  pair.server.seen.message_hook = [&](PeerId from, std::span<const std::byte>) {
    again = pair.server.endpoint->take_descriptor(from, 7);
  };
  ASSERT_TRUE(pair.client.endpoint->send(pair.to_server, bytes_of("again")).ok());
  ASSERT_TRUE(pair.drive_until([&] { return again.code() != Error{}.code; }));
  EXPECT_EQ(again.code(), Code::kNotFound);
}

TEST_P(Descriptors, OfWhoGivesTooMany_AreClosed_AndTheConnectionGoesOn) {
  Pair pair(subject());
  auto file = file_with("many");
  for (std::uint64_t key = 100; key < 300; ++key)
    if (!pair.client.endpoint->give_descriptor(pair.to_server, key, file.get()).ok()) break;
  EXPECT_NE(hand_over(pair, 7, file.get()).code(), Code::kPeerLost);
}

TEST_P(Descriptors, OfNobodyAreNotFound) {
  Pair pair(subject());
  EXPECT_EQ(pair.client.endpoint->take_descriptor(PeerId{987654}, 1).code(), Code::kPeerLost);
  EXPECT_FALSE(pair.client.endpoint->can_give_descriptors(PeerId{987654}));
  EXPECT_EQ(pair.client.endpoint->take_descriptor(pair.to_server, 1).code(), Code::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Over, Descriptors, testing::ValuesIn(subjects()), testing::PrintToStringParamName());

}  // namespace
}  // namespace nnti::conformance
