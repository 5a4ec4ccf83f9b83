// SPDX-License-Identifier: BSD-3-Clause
// Owns memory that another process reads and writes. visitor.cpp has the commands.
#include <nnti/context.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using nessie::Deadline;
using nnti::Purpose;

/// Ends the program unless all went well.
template <class Outcome> Outcome demand(Outcome outcome) {
  if (outcome.ok()) return outcome;
  std::fprintf(stderr, "%s\n", outcome.error().to_string().c_str());
  std::exit(1);
}

int main() {
  char board[64] = "hello from the owner";
  const auto context = *demand(nnti::Context::open({}));
  auto memory = *demand(context->register_memory(board, sizeof board, 1, Purpose::kRemoteRead | Purpose::kRemoteWrite));
  const auto inbox = *demand(context->allocate(sizeof(nnti::BufferHandle), 4, Purpose::kReceiveQueue));
  std::printf("%s\n", context->url().c_str());
  std::fflush(stdout);

  // The first message says where the visitor wants the answer: how to reach the board.
  auto event = *demand(context->wait(inbox.local(), Purpose::kNone, Deadline::never()));
  nnti::BufferHandle visitor;
  const auto messages = (*demand(context->memory_of(inbox.local()))).front();
  std::memcpy(&visitor, messages.data() + event.offset, sizeof visitor);
  (void)demand(context->release(inbox.local(), event.element));
  const auto answer = *demand(context->register_memory(&memory, sizeof memory, 1, Purpose::kSendSource));
  (void)demand(context->send(event.peer->process, answer.local(), &visitor));
  (void)demand(context->wait(answer.local(), Purpose::kNone, Deadline::never()));

  // The second one says that the visitor has written: all that it put before can be read here.
  (void)demand(context->wait(inbox.local(), Purpose::kNone, Deadline::never()));
  std::printf("the visitor wrote: %s\n", board);
}
