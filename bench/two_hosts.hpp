// SPDX-License-Identifier: BSD-3-Clause
// Two hosts on this machine: name spaces of the network, of the host's name and of what is mounted, with a /dev/shm and
// folders for temporary files of their own, joined by a cable. Only root can make them.
#pragma once

#include "child.hpp"

#include <nessie/result.hpp>

#include <memory>
#include <string>
#include <vector>

namespace bench {

class TwoHosts {
 public:
  /// `rate`: what the cable carries each way, as tc(8) writes it ("8gbit"); empty: all that the machine can.
  /// kUnsupported: there can be none here, and why.
  static nessie::Result<std::unique_ptr<TwoHosts>> make(const std::string &rate);
  ~TwoHosts();
  TwoHosts(const TwoHosts &) = delete;

  /// The command that carries out `words` on host 0 or 1, as a user without rights: servers open no files by name for
  /// root of another host. Temporary files lie in the host's own /dev/shm.
  std::vector<std::string> on(int host, std::vector<std::string> words) const;
  /// Has the calling process go to the host's network. False: it cannot.
  bool enter_network(int host) const;
  /// A host's address.
  static std::string address(int host);
  /// Who carries out what is said, whose the files have to be.
  static constexpr uid_t kUser = 65534;

 private:
  TwoHosts() = default;
  nessie::Status start();
  std::vector<std::string> as_root_on(int host, const std::string &line) const;
  nessie::Status join(const std::string &rate) const;
  nessie::Status await_link(int host) const;

  std::vector<std::unique_ptr<Partner>> hosts_;  ///< each holds its name spaces
};

}  // namespace bench
