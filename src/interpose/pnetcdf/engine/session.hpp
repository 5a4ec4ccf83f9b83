// SPDX-License-Identifier: BSD-3-Clause
// This process's connection to the staging servers, and what it was told by its settings.
#pragma once

#include <base/config.hpp>
#include <services/staging/client/client.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace interpose {

/// What a process found in its environment, which it may have cleared since; null: nothing.
struct Found {
  const char *servers = nullptr, *credential = nullptr, *job = nullptr;
};

/// Whether an error means that the server is gone, and not that it will not do what it was asked.
inline bool is_loss(const nessie::Error &error) {
  return error.code == nessie::Code::kPeerLost || error.code == nessie::Code::kTimedOut;
}

inline constexpr char kServersDied[] =
    "all staging servers have died; from now on that is so with all files of which nothing was in their memory only";

class Session {
 public:
  /// The process's session. Lives until exit.
  static Session &get();

  /// In a child of fork(): forgets its parent's session, over whose connection only the parent may speak. The child has
  /// one of its own.
  static void begin_in_child();

  void found(const Found &in_environment) { found_ = in_environment; }

  /// Connects on first use; afterwards says what came of that.
  bool connected();
  /// Why not, in a sentence.
  const std::string &reason() const { return reason_; }

  /// The client, for any thread. Only if connected().
  staging::Client *client() { return client_.get(); }

  /// Whether connected to servers in mode auto.
  bool is_auto() { return connected() && client_->mode() == staging::Mode::kAuto; }

  /// How many there are; 0 if not connected.
  int servers() const { return servers_.load(std::memory_order_relaxed); }

  /// Whether all servers have died for good, as far as this process knows.
  bool servers_died() const { return servers_died_; }
  void note_servers_died() { servers_died_ = true; }
  /// The same; asks them.
  bool look_for_servers();
  /// True once: to say it.
  bool is_first_to_tell() { return !told_of_death_.exchange(true); }

  /// Whether ncmpi_close waits until the data are in the file (NESSIE_CLOSE). After finish(), and in a child of fork(),
  /// it does: nobody else would.
  staging::Closing closing() const { return waits_at_close_ ? staging::Closing::kDurable : closing_; }

  /// The end of the process has come, or of its MPI. Destructors that are still to run may go on to use files.
  void finish();

  /// When the process ends, it waits until the servers have nothing of this file left to write, so that the next
  /// command of a script finds the file complete. Makes no MPI calls then; ends early when a server gives no sign of
  /// life.
  void settle_at_exit(const staging::SettleArgs &file);
  /// It does not any more: the servers have nothing of this file, and, if they have died, need not be asked again.
  void settle_no_more(const staging::FileIdentity &file);
  /// Whether that was said of the file after their death, whatever their boards still say.
  bool is_native_since_death(const staging::FileIdentity &file);

 private:
  Session() = default;
  void connect();
  void settle_files();

  std::mutex mutex_;
  std::unique_ptr<staging::Client> client_;
  std::string reason_;
  Found found_;
  std::vector<staging::SettleArgs> to_settle_;  ///< each file once
  std::vector<staging::FileIdentity> native_since_death_;
  std::atomic<int> servers_{0};
  std::atomic<bool> servers_died_{false}, told_of_death_{false};
  bool tried_ = false;
  std::atomic<bool> waits_at_close_{false};
  staging::Closing closing_ = staging::Closing::kIfSoon;
};

}  // namespace interpose
