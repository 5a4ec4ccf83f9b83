// SPDX-License-Identifier: BSD-3-Clause
// What callers send to a directory, and what a directory sends to its callers.
#include <services/discovery/directory/server/registry.hpp>
#include <xdr/testing/decoders.hpp>

using namespace directory;
using namespace nessie::fuzz;

namespace {

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

constexpr std::array<Decoder, 3> kDecoders = {decode<announcement, announce>, decode<query, ask>,
                                              decode<listing, believe>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  decode_one_of(kDecoders, std::as_bytes(std::span(data, size)));
  return 0;
}

std::vector<nessie::fuzz::Bytes> nessie::fuzz::seeds() {
  instance plain{"job/a", "shm://a;ofi://b:1", 7, 1, 2, {}}, full = plain;
  full.attributes = std::vector<attribute>{{"rank", "0 of 2"}, {"zone", ""}};
  return {seed(0, announcement{{}, 1000, plain}), seed(0, announcement{{std::byte{1}}, 1, full}),
          seed(1, query{true, "job/"}), seed(1, query{false, "job/a"}), seed(2, listing{{1, 2}, {{plain, full}}})};
}
