// SPDX-License-Identifier: BSD-3-Clause
// Lists of hosts, whoever wrote them: each host stands once in what is read, with no more slots than one may have.
#include "host_lists.hpp"

#include <base/testing/fuzz.hpp>

#include <set>
#include <string>

using namespace nessie::fuzz;
using namespace nessie::cli;

namespace {

void check(const HostList &hosts) {
  std::set<std::string_view> names;
  for (const auto &host : hosts) {
    require(!host.name.empty() && names.insert(host.name).second);
    require(host.slots >= 0 && host.slots <= kMostSlots && !host.here);
  }
  require(hosts.size() <= kMostHosts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  for (const auto read : {read_host_words, read_host_file, read_repeated_hosts, read_host_pairs, read_sge_file})
    check(read(text));
  const auto blank = text.find(' ');
  const auto hosts =
      read_slurm_hosts(text.substr(0, blank), blank == std::string_view::npos ? "" : text.substr(blank + 1));
  require(hosts.ok() || hosts.code() == nessie::Code::kInvalidArgument);
  if (hosts) check(*hosts);
  return 0;
}

std::vector<Bytes> nessie::fuzz::seeds() {
  std::vector<Bytes> seeds;
  for (const std::string text : {"a:4,[fd00::1]:2,user@b", "a slots=4\nb:2 # two\nrank 0=c slot=1\n", "a 4 b 4",
                                 "a 1 all.q@a UNDEFINED\n", "n[001-003,7],m1 16(x2),8", "r[0-1]n[1-2]-ib 4"}) {
    const auto *begin = reinterpret_cast<const std::byte *>(text.data());
    seeds.emplace_back(begin, begin + text.size());
  }
  return seeds;
}
