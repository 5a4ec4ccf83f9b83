// SPDX-License-Identifier: BSD-3-Clause
// The processes that this one has connected to, and connects to again when a connection is lost. Used by the driver.
#pragma once

#include <nssi/nssi.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace nssi {

struct Link {
  std::string url;
  PeerId name;                    ///< what callers know it by: its first connection
  PeerId connection;              ///< today's; none: value 0
  bool is_ready = true;           ///< requests may be sent
  std::uint64_t incarnation = 0;  ///< which start of the other process this is; 0: it has not said

  // While there is no connection, or the other side has not said who it is.
  Error why;
  Deadline give_up_at = Deadline::never(), try_at = Deadline::now();
  std::chrono::milliseconds pause{0};
  std::optional<nnti::ConnectAttempt> attempt;
};

/// What becomes of the links; Client's calls follow.
class LinkEvents {
 public:
  /// There is a connection again.
  virtual void on_link_connected(Link &link) = 0;
  /// There will be none. The link ends after this.
  virtual void on_link_given_up(Link &link, const Error &why) = 0;

 protected:
  ~LinkEvents() = default;
};

class Links {
 public:
  Links(Core &core, LinkEvents &events) : core_(core), events_(events) {}

  void add(std::string_view url, PeerId connection);
  /// Ends a link; it lives for as long as what is returned.
  std::unique_ptr<Link> remove(Link &link);
  /// Null: callers who know a peer by this id get no second connection.
  Link *named(PeerId name) const { return name.value < by_name_.size() ? by_name_[name.value].get() : nullptr; }
  Link *over(PeerId connection) const;
  /// The connection to whom callers know as `name`.
  PeerId connection_of(PeerId name) const {
    const auto *link = named(name);
    return link != nullptr ? link->connection : name;
  }

  /// The link's connection is gone: it is made again until so much time has passed.
  void reconnect(Link &link, const Error &why, std::chrono::milliseconds patience);
  /// There is a connection, but requests wait for set_ready(), for so long at most.
  void hold(Link &link, std::chrono::milliseconds patience);
  /// Requests may be sent again.
  void set_ready(Link &link);
  /// In each turn while one is not ready.
  void advance();
  /// Connects no more: the endpoint is about to end.
  void stop_connecting();
  Deadline next() const;

 private:
  void add_broken(Link &link, std::chrono::milliseconds patience);
  void advance(Link &link);
  void connected(Link &link, PeerId connection);
  void give_up(Link &link, Error why);

  Core &core_;
  LinkEvents &events_;
  std::vector<std::unique_ptr<Link>> by_name_;  ///< by PeerId: those are small, and counted up
  std::vector<Link *> broken_;
};

}  // namespace nssi
