// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include "base/printable.hpp"
#include "base/say.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

namespace nessie::log {
namespace {

Level level_from_environment() {
  const char *text = std::getenv("NESSIE_LOG");
  std::string_view name = text == nullptr ? "" : text;
  if (name == "error") return Level::kError;
  if (name == "info") return Level::kInfo;
  if (name == "debug") return Level::kDebug;
  return Level::kWarning;
}

std::atomic<Level> &threshold() {
  static std::atomic<Level> level{level_from_environment()};
  return level;
}

std::atomic<int> &descriptor() {
  static std::atomic<int> descriptor{STDERR_FILENO};
  return descriptor;
}

struct Program {
  std::mutex mutex;
  std::string name = "nessie";
};

/// Never destroyed: destructors of other statics may still log.
Program &program() {
  static auto *instance = new Program;
  return *instance;
}

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kError: return "error";
    case Level::kWarning: return "warning";
    case Level::kInfo: return "info";
    case Level::kDebug: return "debug";
  }
  return "?";
}

std::string program_name() {
  std::lock_guard lock(program().mutex);
  return program().name;
}

}  // namespace

Level level() { return threshold().load(std::memory_order_relaxed); }
void set_level(Level level) { threshold().store(level, std::memory_order_relaxed); }

void set_program(std::string name) {
  std::lock_guard lock(program().mutex);
  program().name = std::move(name);
}

void set_descriptor(int fd) { descriptor().store(fd, std::memory_order_relaxed); }

void write(Level level, std::string_view text) {
  auto line = fmt::format("{}[{}] {}: {}\n", program_name(), ::getpid(), name_of(level), printable(text));
  nessie_say(descriptor().load(std::memory_order_relaxed), line.data(), line.size());
}

}  // namespace nessie::log
