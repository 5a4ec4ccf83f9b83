// SPDX-License-Identifier: BSD-3-Clause
#include "notes.hpp"

#include <base/credential.hpp>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace nessie::cli {

namespace {

constexpr std::size_t kMostSentences = 32, kMostAtOnce = 64, kLongest = 1024;

sockaddr_un abstract(const std::string &name, socklen_t &length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace

Result<Notes> Notes::open() {
  const auto name = fmt::format("nessie-notes-{:016x}{:016x}", random_u64(), random_u64());
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  socklen_t length = 0;
  const auto address = abstract(name, length);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr *>(&address), length) == 0) return Notes(fd, name);
  const Error error{Code::kIo, "no socket for notes", Scope::kProcess, errno};
  if (fd >= 0) ::close(fd);
  return error;
}

Notes::Notes(Notes &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)), sentences_(std::move(other.sentences_)) {}

Notes::~Notes() {
  if (fd_ >= 0) ::close(fd_);
}

void Notes::take() {
  std::array<char, kLongest> text{};
  for (std::size_t taken = 0; taken < kMostAtOnce; ++taken) {
    const auto size = ::recv(fd_, text.data(), text.size(), MSG_DONTWAIT);
    if (size < 0) return;
    std::string sentence(text.data(), static_cast<std::size_t>(size));
    const bool known = std::ranges::find(sentences_, sentence) != sentences_.end();
    if (!known && !sentence.empty() && sentences_.size() < kMostSentences) sentences_.push_back(std::move(sentence));
  }
}

}  // namespace nessie::cli
