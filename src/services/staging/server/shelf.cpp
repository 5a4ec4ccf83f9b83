// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/server/shelf.hpp>

#include <algorithm>

namespace staging {

namespace {

constexpr std::size_t kMostFiles = 256;

bool is_same(const CachedVariable &one, const CachedVariable &other) {
  const auto &a = one.variable, &b = other.variable;
  return a.name == b.name && a.type == b.type && a.is_record == b.is_record && a.shape == b.shape &&
         one.page_elements == other.page_elements;
}

}  // namespace

void Shelf::put(OpenFile &file) {
  drop(file.identity);
  const auto has_pages = [](const FileVariable &variable) { return !variable.cached->clean.empty(); };
  if (!file.keeps_clean || std::ranges::none_of(file.variables(), has_pages)) return;
  Entry entry{file.identity, file.native->stamp(), {}};
  for (auto &variable : file.variables()) {
    auto &cached = *variable.cached;
    auto &kept = *entry.variables.emplace_back(cached.cache->adopt(cached.variable));
    cached.cache->hand_over(cached, kept);
  }
  entries_.push_back(std::move(entry));
  if (entries_.size() > kMostFiles) entries_.pop_front();
}

void Shelf::take(OpenFile &file) {
  const auto found = std::ranges::find(entries_, file.identity, &Entry::identity);
  if (found == entries_.end()) return;
  auto &variables = file.variables();
  const auto same = [](const auto &kept, const FileVariable &variable) { return is_same(*kept, *variable.cached); };
  if (file.keeps_clean && found->stamp == file.native->stamp() && std::ranges::equal(found->variables, variables, same))
    for (std::size_t i = 0; i < variables.size(); ++i)
      variables[i].cached->cache->hand_over(*found->variables[i], *variables[i].cached);
  entries_.erase(found);
}

void Shelf::drop(const FileIdentity &identity) {
  std::erase_if(entries_, [&](const Entry &entry) { return entry.identity == identity; });
}

}  // namespace staging
