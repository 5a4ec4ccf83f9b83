// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/places.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace streams {

namespace {

constexpr std::string_view kOfRun = "run.", kEnding = ".contact";

}  // namespace

std::string contact_folder() {
  const char *runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return fmt::format("{}/nessie/streams", runtime);
  return fmt::format("/tmp/nessie-{}/streams", ::getuid());
}

std::string name_of_run(pid_t run) { return fmt::format("{}{}", kOfRun, run); }

std::string contact_of(const std::string &name) { return fmt::format("{}/{}{}", contact_folder(), name, kEnding); }

bool is_run(const std::string &name) { return name.starts_with(kOfRun); }

bool is_of_run(const std::string &at) {
  const auto name = std::string_view(at).substr(at.rfind('/') + 1);
  return at.starts_with("file:") && name.starts_with(kOfRun) && name.ends_with(kEnding);
}

void forget_ended_runs() {
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator(contact_folder(), ignored)) {
    const auto path = entry.path().string();
    int run = 0;
    if (!is_of_run("file:" + path)) continue;
    if (std::sscanf(entry.path().filename().c_str() + kOfRun.size(), "%d", &run) != 1 || run <= 0) continue;
    if (::kill(run, 0) != 0 && errno == ESRCH) std::filesystem::remove(path, ignored);
  }
}

}  // namespace streams
