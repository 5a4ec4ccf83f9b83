// SPDX-License-Identifier: BSD-3-Clause
// One of the processes of chaos_test.py.
//
//   chaos_peer serve TRANSPORT JOURNAL URL_FILE           serves; SIGTERM: finishes what it has accepted
//   chaos_peer call TRANSPORT JOURNAL ID URL_FILE...      calls the servers whose URLs are in those files, until
//   SIGTERM
//
// ID, not 0, is this start's alone; all that the process rolls dice for follows from it. The journal is a file of
// `chaos::Record`. Settings come from the environment.
#include <signal.h>

#include <cstdio>
#include <exception>

#include "chaos.hpp"

namespace chaos {

std::atomic<bool> is_told_to_end{false};

namespace {

int run(const std::vector<std::string> &words) {
  if (words.size() == 4 && words[0] == "serve") return serve(words[1], words[2], words[3]);
  if (words.size() < 5 || words[0] != "call") return 2;
  ::signal(SIGTERM, [](int) { is_told_to_end.store(true); });
  const auto id = static_cast<std::uint32_t>(std::stoul(words[3]));
  return call(words[1], words[2], id, {words.begin() + 4, words.end()});
}

}  // namespace
}  // namespace chaos

int main(int argc, char **argv) {
  try {
    return chaos::run({argv + 1, argv + argc});
  } catch (const std::exception &e) {
    std::fprintf(stderr, "chaos_peer: %s\n", e.what());
    return 1;
  }
}
