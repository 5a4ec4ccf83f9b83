// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/arguments.hpp>

#include <interpose/pnetcdf/engine/file.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace interpose {

bool asks_for_safe_mode() {
  const char *value = std::getenv("PNETCDF_SAFE_MODE");
  return value != nullptr && *value != '0';
}

namespace {

using Size = std::uint64_t;

/// Takes the next value off an encoding.
std::span<const std::byte> take(std::span<const std::byte> &encoding) {
  Size size = 0;
  std::memcpy(&size, encoding.data(), sizeof size);
  const auto value = encoding.subspan(sizeof size, size);
  encoding = encoding.subspan(sizeof size + size);
  return value;
}

}  // namespace

Arguments &Arguments::add(int code, std::span<const std::byte> value) {
  const Size size = value.size();
  const auto *bytes = reinterpret_cast<const std::byte *>(&size);
  codes_.push_back(code);
  encoding_.insert(encoding_.end(), bytes, bytes + sizeof size);
  encoding_.insert(encoding_.end(), value.begin(), value.end());
  return *this;
}

Arguments &Arguments::add_name(int code, const char *name) {
  if (name == nullptr) return add(code, std::span<const std::byte>());
  return add(code, std::as_bytes(std::span(name, std::strlen(name) + 1)));
}

int Arguments::difference(std::span<const std::byte> other) const {
  std::span<const std::byte> own = encoding_;
  for (const int code : codes_)
    if (!std::ranges::equal(take(own), take(other))) return code;
  return NC_NOERR;
}

int least(File &file, int code) {
  return file.is_safe() ? static_cast<int>(-file.ranks().max_now(-std::int64_t{code})) : code;
}

int compare(File &file, const Arguments &arguments, const std::function<int()> &check, Verdict verdict) {
  if (file.ranks().size() == 1) return NC_NOERR;
  auto roots = arguments.encoding();
  file.ranks().broadcast(roots);
  const int own = arguments.difference(roots);
  const int common = least(file, own);
  if (common == NC_NOERR) return NC_NOERR;
  if (const int error = least(file, check())) return error;
  return verdict == Verdict::kOwn && own != NC_NOERR ? own : common;
}

}  // namespace interpose
