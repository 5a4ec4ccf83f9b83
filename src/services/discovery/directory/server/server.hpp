// SPDX-License-Identifier: BSD-3-Clause
// The directory's operations on a runtime.
#pragma once

#include <base/config.hpp>
#include <directory_rpc.hpp>
#include <nessie/provider.hpp>
#include <services/discovery/directory/server/registry.hpp>

#include <list>
#include <memory>

namespace directory {

struct ServerLimits {
  RegistryLimits registry;
  /// Who waits for changes at once.
  std::size_t watches = 4096, watches_per_caller = 256;
};

/// From directory.entries, directory.entries_per_caller, directory.watches, directory.watches_per_caller.
/// kInvalidArgument.
Result<ServerLimits> limits_of(const nessie::Config &config);

class Server final : public nessie::Provider, private DIRECTORY::ONE::Server {
 public:
  /// The provider type `directory`.
  static nessie::ProviderType type();
  /// kExists: the provider's number is taken.
  static Result<std::unique_ptr<nessie::Provider>> start(const nessie::ProviderContext &context,
                                                         const ServerLimits &limits);
  std::string describe() const override;
  /// What the peer announced goes.
  void peer_lost(PeerId peer) override { registry_.lose(peer); }
  /// Who waits for changes hears that the directory is being stopped, now and from now on.
  void quiesce() override;

 private:
  struct Watch {
    Watch(nssi::Runtime &runtime, PeerId its_caller, const query &asked)
        : caller(its_caller), what(asked), event(std::make_unique<nssi::Event>(runtime)) {}
    PeerId caller;
    const query &what;
    std::unique_ptr<nssi::Event> event;  ///< set: look again
  };
  class Watching;

  Server(nssi::Runtime &runtime, ServerLimits limits);
  nssi::Outcome<grant> ANNOUNCE(nssi::Request &request, const announcement &announcement) override;
  nssi::Outcome<bool> WITHDRAW(nssi::Request &request, const secret &key) override;
  nssi::Outcome<listing> LIST(nssi::Request &request, const query &query) override;
  nssi::Outcome<listing> WATCH(nssi::Request &request, const query &query, const mark &seen,
                               std::uint32_t timeout_ms) override;

  listing now(const query &query);
  bool has_changed(const query &query, const mark &seen) const;
  Status check_room_for_watch(PeerId caller) const;
  Status wait_for_change(nssi::Request &request, Watch &watch, const mark &seen, Deadline deadline);
  void tell_watches(const std::string &name);
  void expire_in_time();

  nssi::Runtime &runtime_;
  ServerLimits limits_;
  Registry registry_;
  const std::uint64_t incarnation_;
  std::list<Watch> watches_;
  bool is_ending_ = false;
  /// Wakes the fiber that expires leases, because one ends before it would wake by itself.
  std::unique_ptr<nssi::Event> alarm_;
  Deadline alarm_at_ = Deadline::never();
};

}  // namespace directory
