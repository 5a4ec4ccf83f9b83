// SPDX-License-Identifier: BSD-3-Clause
// What callers send to a directory, and what a directory sends to its callers.
#include <nssi/fuzz.hpp>
#include <services/directory/server/registry.hpp>
#include <xdr/codec.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

using namespace directory;

namespace {

using Input = std::span<const std::byte>;

void require(bool holds) {
  if (!holds) std::abort();
}

/// What is announced is listed under its name, once, until it is withdrawn.
void announce(const announcement &said) {
  std::size_t changes = 0;
  Registry registry({}, [&](const std::string &) { ++changes; });
  const bool is_good = check(said.what).ok();
  require(registry.announce(PeerId{1}, said, {}).ok() == is_good && changes == (is_good ? 1u : 0u));
  const query all{true, std::string()}, its_name{false, said.what.name};
  require(registry.list(all).size() == (is_good ? 1u : 0u));
  if (!is_good) return;
  require(registry.list(its_name).front() == said.what && registry.has_changed(its_name, 0));
  require(registry.withdraw(said.key) && registry.list(all).empty() && registry.has_changed(its_name, 1));
}

/// A query that is allowed matches what it is itself.
void ask(const query &query) {
  if (check(query).ok()) require(matches(query, query.text));
}

void believe(const listing &listing) {
  for (const auto &each : listing.instances) (void)check(each);
}

/// Whatever is accepted as a message must be one: its encoding is the input.
template <class Message, void (*use)(const Message &)> void decode(Input input) {
  const auto message = xdr::decode<Message>(input);
  if (!message.ok()) return;
  require(std::ranges::equal(xdr::encode(*message), input));
  use(*message);
}

constexpr std::array kDecoders = {decode<announcement, announce>, decode<query, ask>, decode<listing, believe>};

/// A message behind a byte that says which one it is meant to be.
template <class Message> std::vector<std::byte> seed(std::size_t decoder, const Message &message) {
  std::vector<std::byte> bytes{static_cast<std::byte>(decoder)};
  const auto encoded = xdr::encode(message);
  bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  kDecoders[data[0] % kDecoders.size()](std::as_bytes(std::span(data + 1, size - 1)));
  return 0;
}

std::vector<std::vector<std::byte>> nssi::fuzz::seeds() {
  instance plain{"job/a", "shm://a;ofi://b:1", 7, 1, 2, {}}, full = plain;
  full.attributes = std::vector<attribute>{{"rank", "0 of 2"}, {"zone", ""}};
  return {seed(0, announcement{{}, 1000, plain}), seed(0, announcement{{std::byte{1}}, 1, full}),
          seed(1, query{true, "job/"}), seed(1, query{false, "job/a"}), seed(2, listing{{1, 2}, {{plain, full}}})};
}
