// SPDX-License-Identifier: BSD-3-Clause
#include "this_host.hpp"

#include <base/host.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <set>

namespace nessie::cli {

namespace {

/// The addresses of this host's interfaces, as text.
std::set<std::string> own_addresses() {
  std::set<std::string> found;
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const auto *each = list; each != nullptr; each = each->ifa_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (each->ifa_addr == nullptr) continue;
    const void *address = nullptr;
    if (each->ifa_addr->sa_family == AF_INET)
      address = &reinterpret_cast<const sockaddr_in *>(each->ifa_addr)->sin_addr;
    else if (each->ifa_addr->sa_family == AF_INET6)
      address = &reinterpret_cast<const sockaddr_in6 *>(each->ifa_addr)->sin6_addr;
    if (address != nullptr && inet_ntop(each->ifa_addr->sa_family, address, text.data(), text.size()) != nullptr)
      found.insert(text.data());
  }
  freeifaddrs(list);
  return found;
}

}  // namespace

bool is_this_host(const std::string &host) {
  static const auto addresses = own_addresses();
  const auto name = host_name();
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == name ||
         name.starts_with(host + '.') || host.starts_with(name + '.') || addresses.contains(host);
}

}  // namespace nessie::cli
