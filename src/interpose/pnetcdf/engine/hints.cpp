// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/hints.hpp>

#include <base/log.hpp>
#include <services/staging/durability.hpp>

#include <algorithm>
#include <cstdlib>

namespace interpose {

namespace {

void put(Hints &hints, std::string key, std::string value) {
  const auto same = [&key](const staging::Hint &hint) { return hint.key == key; };
  const auto found = std::find_if(hints.begin(), hints.end(), same);
  if (found != hints.end())
    found->value = std::move(value);
  else
    hints.push_back({std::move(key), std::move(value)});
}

/// The one word of `text`, or nothing.
std::string_view only_word(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(" \t") + 1 - first);
  return text.find_first_of(" \t") == std::string_view::npos ? text : std::string_view{};
}

Hints hints_of(MPI_Info info) {
  Hints hints;
  int count = 0;
  if (info != MPI_INFO_NULL) MPI_Info_get_nkeys(info, &count);
  for (int i = 0; i < count; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "", value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    MPI_Info_get_nthkey(info, i, key);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL - 1, value, &found);
    if (found != 0) put(hints, key, value);
  }
  return hints;
}

}  // namespace

Hints parse_hints(std::string_view text) {
  Hints hints;
  while (!text.empty()) {
    const auto end = std::min(text.find(';'), text.size());
    const auto pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const auto key = only_word(pair.substr(0, equals)), value = only_word(pair.substr(equals + 1));
    if (!key.empty() && !value.empty()) put(hints, std::string(key), std::string(value));
  }
  return hints;
}

staging::Durability durability_hint(const Hints &hints) {
  const auto *hint = find_hint(hints, "nessie_durability");
  if (hint == nullptr) return staging::Durability::kInherited;
  const auto named = staging::durability_named(*hint);
  if (named.ok()) return *named;
  nessie::log::warning("the hint nessie_durability: {}; it is left out", named.error().message);
  return staging::Durability::kInherited;
}

bool is_kept_by_hint(const Hints &hints) {
  const auto *hint = find_hint(hints, "nessie_durability");
  const auto named = hint != nullptr ? staging::durability_named(*hint) : staging::Durability::kMemory;
  return named.ok() && *named != staging::Durability::kMemory;
}

Hints collect_hints(MPI_Info info) {
  Hints hints = hints_of(info);
  if (const char *text = std::getenv("PNETCDF_HINTS"))
    for (staging::Hint &hint : parse_hints(text)) put(hints, std::move(hint.key), std::move(hint.value));
  return hints;
}

const std::string *find_hint(const Hints &hints, std::string_view key) {
  for (const staging::Hint &hint : hints)
    if (hint.key == key) return &hint.value;
  return nullptr;
}

Info::Info(const Hints &hints) {
  if (hints.empty()) return;
  MPI_Info_create(&info_);
  for (const staging::Hint &hint : hints) MPI_Info_set(info_, hint.key.c_str(), hint.value.c_str());
}

Info::~Info() {
  if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
}

}  // namespace interpose
