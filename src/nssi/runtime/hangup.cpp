// SPDX-License-Identifier: BSD-3-Clause
#include <nssi/runtime/hangup.hpp>

#include <atomic>
#include <cerrno>
#include <thread>

namespace nssi {

namespace {

std::atomic<HangupSink *> hung_up_for{nullptr};
std::atomic<int> handling{0};  ///< threads within on_hangup()

void on_hangup(int) {
  const int error = errno;
  handling.fetch_add(1);
  if (auto *sink = hung_up_for.load(); sink != nullptr) sink->on_hangup();
  handling.fetch_sub(1);
  errno = error;
}

}  // namespace

nessie::Result<Hangup> Hangup::watch(HangupSink &sink) {
  HangupSink *none = nullptr;
  if (!hung_up_for.compare_exchange_strong(none, &sink))
    return nessie::Error{nessie::Code::kExists,
                         "another runtime of this process reads its configuration anew on SIGHUP"};
  Hangup hangup;
  hangup.is_mine_ = true;
  struct sigaction action {};
  action.sa_handler = on_hangup;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, &hangup.before_);
  return hangup;
}

Hangup::~Hangup() {
  if (!is_mine_) return;
  ::sigaction(SIGHUP, &before_, nullptr);
  hung_up_for.store(nullptr);
  while (handling.load() != 0) std::this_thread::yield();
}

}  // namespace nssi
