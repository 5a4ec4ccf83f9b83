// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes memory of another process, which does nothing for it.
//
//   $ build/nnti_owner_cpp > owner.out &
//   $ until [ -s owner.out ]; do sleep 0.1; done
//   $ build/nnti_visitor_cpp "$(cat owner.out)"
//   the owner wrote: hello from the owner
//   $ wait; tail -n 1 owner.out; rm owner.out
//   the visitor wrote: hello from the visitor
#include <nnti/context.hpp>

#include <cstdio>
#include <cstdlib>

using namespace std::chrono_literals;
using nnti::Purpose;

/// Ends the program unless all went well.
template <class Outcome> Outcome demand(Outcome outcome) {
  if (outcome.ok()) return outcome;
  std::fprintf(stderr, "%s\n", outcome.error().to_string().c_str());
  std::exit(1);
}

int main(int argc, char **argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: visitor URL\n"), 2;
  char text[64] = "hello from the visitor", found[64];
  const auto context = *demand(nnti::Context::open({}));
  const auto owner = (*demand(context->connect(argv[1], nessie::Deadline::in(10s))))->process;
  const auto complete = [&](const nnti::BufferHandle &buffer) {
    const auto event = *demand(context->wait(buffer.local(), Purpose::kNone, nessie::Deadline::in(10s)));
    if (event.code != nessie::Code::kOk) std::exit(1);
  };

  // A message: where we want to be told how to reach the owner's memory.
  nnti::BufferHandle memory;
  auto place = *demand(context->register_memory(&memory, sizeof memory, 1, Purpose::kReceiveDestination));
  const auto question = *demand(context->register_memory(&place, sizeof place, 1, Purpose::kSendSource));
  (void)demand(context->send(owner, question.local(), nullptr));
  complete(question);
  complete(place);

  // Get, then put. Each is over when its completion was taken.
  const auto destination = *demand(context->register_memory(found, sizeof found, 1, Purpose::kLocalWrite));
  (void)demand(context->get(memory, 0, sizeof found, destination.local(), 0));
  complete(destination);
  std::printf("the owner wrote: %s\n", found);
  const auto source = *demand(context->register_memory(text, sizeof text, 1, Purpose::kLocalRead));
  (void)demand(context->put(source.local(), 0, sizeof text, memory, 0));
  complete(source);

  // Another message: a put makes no event at the owner.
  (void)demand(context->send(owner, question.local(), nullptr));
  complete(question);
}
