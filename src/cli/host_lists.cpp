// SPDX-License-Identifier: BSD-3-Clause
#include "host_lists.hpp"

#include <base/config.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

namespace nessie::cli {

namespace {

constexpr std::string_view kBlanks = " \t\r\v\f", kBlanksAndLineEnds = " \t\r\v\f\n";

/// A number that all of the text is, at most `most`.
std::optional<int> whole_number(std::string_view text, int most = kMostSlots) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most) return std::nullopt;
  return value;
}

int slots_in(std::string_view text) { return whole_number(text).value_or(0); }

/// Makes a list in which each host stands once.
class Gatherer {
 public:
  void add(std::string_view name, int slots) {
    if (name.empty() || list_.size() >= kMostHosts) return;
    const auto [place, is_new] = places_.try_emplace(std::string(name), list_.size());
    if (is_new) return list_.push_back({std::string(name), slots});
    auto &host = list_[place->second];
    host.slots = std::min(std::max(host.slots, 1) + std::max(slots, 1), kMostSlots);
  }
  HostList take() { return std::move(list_); }

 private:
  HostList list_;
  std::unordered_map<std::string, std::size_t> places_;
};

struct HostAndCount {
  std::string_view host;
  std::optional<std::string_view> count;
};

/// "user@node:4", "[::1]:4" and "::1".
HostAndCount read_word(std::string_view word) {
  if (const auto at = word.find('@'); at != std::string_view::npos) word.remove_prefix(at + 1);
  auto end = word.find(':');
  if (word.starts_with('[')) {
    end = word.find(']');
    const auto rest = end == std::string_view::npos ? "" : word.substr(end + 1);
    return {word.substr(1, end - 1), rest.starts_with(':') ? std::optional(rest.substr(1)) : std::nullopt};
  }
  const bool is_address = std::ranges::count(word, ':') > 1;  // of IPv6
  if (is_address || end == std::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, end), word.substr(end + 1)};
}

/// "slots=4" among the words behind a host's name.
int slots_among(const std::vector<std::string> &words) {
  for (const auto &word : words) {
    for (const std::string_view name : {"slots=", "cpu=", "count="})
      if (word.starts_with(name)) return slots_in(std::string_view(word).substr(name.size()));
  }
  return 0;
}

void read_rank(const std::vector<std::string> &words, Gatherer &hosts) {
  if (words.size() < 2) return;
  const auto equals = words[1].find('=');
  if (equals != std::string::npos) hosts.add(read_word(std::string_view(words[1]).substr(equals + 1)).host, 1);
}

void read_file_line(const std::vector<std::string> &words, Gatherer &hosts) {
  if (words.front() == "rank") return read_rank(words, hosts);
  if (words.front().starts_with('^')) return;  // one that is not to be used
  const auto [host, count] = read_word(words.front());
  hosts.add(host, count ? slots_in(*count) : slots_among(words));
}

Error no_slurm_list(std::string_view list, std::string_view why) {
  return {Code::kInvalidArgument,
          fmt::format("'{}' is no list of hosts as Slurm writes it: {}", list.substr(0, 80), why)};
}

/// Expands one list, and stops where it has too many hosts.
class SlurmList {
 public:
  explicit SlurmList(std::string_view list) : list_(list) {}

  Result<std::vector<std::string>> expand() {
    for (std::size_t begin = 0; begin <= list_.size();) {
      const auto end = end_of_name(begin);
      if (begin < end) expand_name("", list_.substr(begin, end - begin));
      begin = end + 1;
    }
    if (!why_.empty()) return no_slurm_list(list_, why_);
    return std::move(names_);
  }

 private:
  /// A comma that stands in no bracket ends a name.
  std::size_t end_of_name(std::size_t place) const {
    for (bool inside = false; place < list_.size(); ++place) {
      if (list_[place] == '[') inside = true;
      if (list_[place] == ']') inside = false;
      if (list_[place] == ',' && !inside) break;
    }
    return place;
  }

  void expand_name(const std::string &before, std::string_view name) {
    const auto open = name.find('['), close = name.find(']');
    if (open == std::string_view::npos && close == std::string_view::npos) return add(before + std::string(name));
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
      return fail("a bracket has no other");
    const auto head = before + std::string(name.substr(0, open));
    const auto ranges = split(name.substr(open + 1, close - open - 1), ",");
    if (ranges.empty()) return fail("there is nothing in the brackets");
    for (const auto &range : ranges) expand_range(head, range, name.substr(close + 1));
  }

  /// "001-003", "7": numbers have as many digits as the first one.
  void expand_range(const std::string &head, std::string_view range, std::string_view tail) {
    const auto dash = range.find('-');
    const auto low = range.substr(0, dash), high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const auto first = whole_number(low, kMostNumber), last = whole_number(high, kMostNumber);
    if (!first || !last || *last < *first || low.size() > kMostDigits) return fail("its numbers are none");
    for (int value = *first; value <= *last && why_.empty(); ++value)
      expand_name(fmt::format("{}{:0{}}", head, value, low.size()), tail);
  }

  void add(std::string name) {
    if (names_.size() >= kMostHosts) return fail("it has too many");
    names_.push_back(std::move(name));
  }

  void fail(std::string_view why) {
    if (why_.empty()) why_ = why;
  }

  static constexpr int kMostNumber = 999'999'999;
  static constexpr std::size_t kMostDigits = 9;
  std::string_view list_;
  std::vector<std::string> names_;
  std::string_view why_;
};

/// "16(x2),8", one after the other.
class SlurmCounts {
 public:
  explicit SlurmCounts(std::string_view text) : words_(split(text, ",")) {}

  int next() {
    if (left_ == 0 && !read_word()) return 0;
    --left_;
    return count_;
  }

 private:
  bool read_word() {
    if (place_ == words_.size()) return false;
    const std::string_view word = words_[place_++];
    const auto open = word.find("(x");
    count_ = slots_in(word.substr(0, open));
    left_ = 1;
    if (open != std::string_view::npos && word.ends_with(')'))
      left_ = std::max(slots_in(word.substr(open + 2, word.size() - open - 3)), 1);
    return true;
  }

  std::vector<std::string> words_;
  std::size_t place_ = 0;
  int count_ = 0, left_ = 0;
};

}  // namespace

HostList read_host_words(std::string_view list) {
  Gatherer hosts;
  for (const auto &word : split(list, ",")) {
    const auto [host, count] = read_word(word);
    hosts.add(host, count ? slots_in(*count) : 1);
  }
  return hosts.take();
}

HostList read_host_file(std::string_view text) {
  Gatherer hosts;
  for (const auto &line : split(text, "\n")) {
    const auto words = split(std::string_view(line).substr(0, line.find('#')), kBlanks);
    if (!words.empty()) read_file_line(words, hosts);
  }
  return hosts.take();
}

HostList read_repeated_hosts(std::string_view text) {
  Gatherer hosts;
  for (const auto &host : split(text, kBlanksAndLineEnds)) hosts.add(host, 1);
  return hosts.take();
}

HostList read_host_pairs(std::string_view text) {
  Gatherer hosts;
  const auto words = split(text, kBlanksAndLineEnds);
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) hosts.add(words[i], slots_in(words[i + 1]));
  return hosts.take();
}

HostList read_sge_file(std::string_view text) {
  Gatherer hosts;
  for (const auto &line : split(text, "\n")) {
    const auto words = split(line, kBlanks);
    if (!words.empty()) hosts.add(words[0], words.size() > 1 ? slots_in(words[1]) : 0);
  }
  return hosts.take();
}

Result<std::vector<std::string>> expand_slurm_hosts(std::string_view list) { return SlurmList(list).expand(); }

Result<HostList> read_slurm_hosts(std::string_view list, std::string_view counts) {
  const auto names = expand_slurm_hosts(list);
  if (!names) return names.error();
  Gatherer hosts;
  SlurmCounts slots(counts);
  for (const auto &name : *names) hosts.add(name, slots.next());
  return hosts.take();
}

std::string to_host_words(const HostList &hosts, int otherwise) {
  std::string list;
  for (const auto &host : hosts) {
    const int slots = host.slots > 0 ? host.slots : otherwise;
    const bool is_address = host.name.find(':') != std::string::npos;
    if (!list.empty()) list += ',';
    list += is_address ? '[' + host.name + ']' : host.name;
    if (slots > 0) list += fmt::format(":{}", slots);
  }
  return list;
}

}  // namespace nessie::cli
