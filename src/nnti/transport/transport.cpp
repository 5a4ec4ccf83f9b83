// SPDX-License-Identifier: BSD-3-Clause
// What a connection answers to what its transport cannot do; where a transport listens.
#include "nnti/transport/transport.hpp"

#include <algorithm>
#include <string>

namespace nnti {

Result<PeerView> Connection::view(const RemoteBuffer &, std::uint64_t, std::size_t) {
  return Error{Code::kUnsupported, "this memory of the peer is not mapped here"};
}

Status Connection::give_descriptor(std::uint64_t, int) {
  return Error{Code::kUnsupported, "descriptors are given to processes of this node only"};
}

Result<int> Connection::take_descriptor(std::uint64_t) {
  return Error{Code::kNotFound, "the peer is not on this node, and gives no descriptors"};
}

Result<pid_t> Connection::process() const {
  return Error{Code::kUnsupported, "the peer is not on this node: nobody vouches for its process"};
}

Result<std::optional<nessie::Url>> place_to_listen(const nessie::Config &config, std::string_view name) {
  constexpr const char *kSetting = "nnti.listen_at";
  auto list = config.get_or(kSetting, "");
  if (list.empty()) return std::optional<nessie::Url>();
  std::ranges::replace(list, '|', ';');
  auto places = nessie::Url::parse_list(list);
  if (!places.ok()) return config.bad_value(kSetting, "what url() of an endpoint says");
  const auto found = std::ranges::find(*places, name, &nessie::Url::transport);
  return found == places->end() ? std::nullopt : std::optional(*found);
}

}  // namespace nnti
