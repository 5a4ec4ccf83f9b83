// SPDX-License-Identifier: BSD-3-Clause
#include <services/streams/geometry.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace streams {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 59;  // of 8 bytes: their bytes have a number

struct TypeName {
  ElementType type;
  std::size_t bytes;
  const char *name;
};
constexpr std::array<TypeName, 11> kTypes{{{ElementType::kInt8, 1, "int8"},
                                           {ElementType::kChar, 1, "char"},
                                           {ElementType::kInt16, 2, "int16"},
                                           {ElementType::kInt32, 4, "int32"},
                                           {ElementType::kFloat, 4, "float"},
                                           {ElementType::kDouble, 8, "double"},
                                           {ElementType::kUint8, 1, "uint8"},
                                           {ElementType::kUint16, 2, "uint16"},
                                           {ElementType::kUint32, 4, "uint32"},
                                           {ElementType::kInt64, 8, "int64"},
                                           {ElementType::kUint64, 8, "uint64"}}};

const TypeName *find_type(ElementType type) {
  const auto found = std::ranges::find(kTypes, type, &TypeName::type);
  return found == kTypes.end() ? nullptr : &*found;
}

/// Nothing: too many to be counted. Only what is counted can be zero.
std::optional<std::int64_t> counted(const std::vector<std::int64_t> &count) {
  std::int64_t elements = 1;
  for (const auto n : count)
    if (n < 0 || __builtin_mul_overflow(elements, std::max<std::int64_t>(n, 1), &elements) || elements > kMostElements)
      return std::nullopt;
  return std::ranges::find(count, 0) == count.end() ? elements : 0;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
}

}  // namespace

std::size_t size_of(ElementType type) {
  const auto *found = find_type(type);
  return found != nullptr ? found->bytes : 0;
}

const char *name_of(ElementType type) {
  const auto *found = find_type(type);
  return found != nullptr ? found->name : "unknown";
}

// --- checks -----------------------------------------------------------------------------------------------------------

Status check_name(const char *what, std::string_view name) {
  const auto bad = [&](const char *why) {
    return Error{Code::kInvalidArgument, fmt::format("the name of a {} {}: choose another one", what, why)};
  };
  if (name.empty()) return bad("is empty");
  if (name.size() > MOST_NAME) return bad("has more than 256 bytes");
  if (!is_printable(name)) return bad("has characters that cannot be printed");
  if (name.front() == ' ' || name.back() == ' ') return bad("begins or ends with a space");
  return {};
}

std::uint32_t home_of(std::string_view name, std::uint32_t servers) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::uint32_t>(hash % servers);
}

Status check(const VariableArgs &variable) {
  if (auto status = check_name("variable", variable.name); !status.ok()) return status;
  const auto bad = [&](std::string why) {
    return Error{Code::kInvalidArgument, fmt::format("variable '{}' {}", variable.name, why)};
  };
  if (size_of(variable.type) == 0) return bad("has a type that does not exist: use one of nessie::streams::Type");
  if (variable.shape.size() > MOST_DIMENSIONS) return bad("has more than 16 dimensions");
  if (!counted(variable.shape))
    return bad("has a shape with a negative extent, or with too many elements to be counted");
  if (!variable.fill.empty() && variable.fill.size() != size_of(variable.type))
    return bad(
        fmt::format("has a fill value of {} bytes; its type has {}", variable.fill.size(), size_of(variable.type)));
  return {};
}

Status check(const AttributeArgs &attribute) {
  if (auto status = check_name("attribute", attribute.name); !status.ok()) return status;
  const auto bytes = size_of(attribute.type);
  if (bytes == 0 || attribute.value.size() % bytes != 0 || attribute.value.size() > (1 << 20))
    return Error{Code::kInvalidArgument,
                 fmt::format("attribute '{}' has {} bytes, which are no elements of its type, or more than 1 MiB",
                             attribute.name, attribute.value.size())};
  return {};
}

bool is_box(const Box &box) {
  if (box.start.size() != box.count.size() || box.count.size() > MOST_DIMENSIONS || !counted(box.count)) return false;
  for (std::size_t d = 0; d < box.start.size(); ++d) {
    std::int64_t end = 0;
    if (box.start[d] < 0 || __builtin_add_overflow(box.start[d], box.count[d], &end)) return false;
  }
  return true;
}

Status check_inside(const VariableArgs &variable, const Box &box) {
  const bool is_before = std::ranges::any_of(box.start, [](auto i) { return i < 0; });
  if (is_before && box.start.size() == variable.shape.size() && box.count.size() == variable.shape.size())
    return Error{Code::kOutOfRange, fmt::format("{} begins before the array", describe(variable.name, box))};
  if (!is_box(box) || box.count.size() != variable.shape.size())
    return Error{
        Code::kInvalidArgument,
        fmt::format("variable '{}' has {} dimensions; a box of it has as many starts and counts, none negative",
                    variable.name, variable.shape.size())};
  for (std::size_t d = 0; d < variable.shape.size(); ++d)
    if (box.start[d] + box.count[d] > variable.shape[d])
      return Error{Code::kOutOfRange, fmt::format("{} is not inside the array, whose dimension {} has {} elements",
                                                  describe(variable.name, box), d, variable.shape[d])};
  return {};
}

bool agree(const VariableArgs &a, const VariableArgs &b) {
  return a.type == b.type && a.shape == b.shape && a.fill == b.fill && a.is_constant == b.is_constant;
}

// --- boxes ------------------------------------------------------------------------------------------------------------

std::int64_t elements_of(const std::vector<std::int64_t> &count) {
  std::int64_t elements = 1;
  for (const auto n : count) elements *= n;
  return elements;
}

Box whole(const std::vector<std::int64_t> &shape) { return {std::vector<std::int64_t>(shape.size(), 0), shape}; }

std::optional<Box> intersection(const Box &a, const Box &b) {
  Box both;
  both.start.resize(a.start.size());
  both.count.resize(a.start.size());
  for (std::size_t d = 0; d < a.start.size(); ++d) {
    both.start[d] = std::max(a.start[d], b.start[d]);
    both.count[d] = std::min(a.start[d] + a.count[d], b.start[d] + b.count[d]) - both.start[d];
    if (both.count[d] <= 0) return std::nullopt;
  }
  return both;
}

bool overlap(const Box &a, const Box &b) {
  for (std::size_t d = 0; d < a.start.size(); ++d)
    if (std::min(a.start[d] + a.count[d], b.start[d] + b.count[d]) <= std::max(a.start[d], b.start[d])) return false;
  return true;
}

bool contains(const Box &outer, const Box &inner) {
  for (std::size_t d = 0; d < outer.start.size(); ++d)
    if (inner.start[d] < outer.start[d] || inner.start[d] + inner.count[d] > outer.start[d] + outer.count[d])
      return false;
  return true;
}

Box around(const Box &a, const Box &b) {
  if (elements_of(a) == 0) return b;
  if (elements_of(b) == 0) return a;
  Box both = a;
  for (std::size_t d = 0; d < a.start.size(); ++d) {
    both.start[d] = std::min(a.start[d], b.start[d]);
    both.count[d] = std::max(a.start[d] + a.count[d], b.start[d] + b.count[d]) - both.start[d];
  }
  return both;
}

std::string describe(std::string_view name, const Box &box) {
  std::string text(name);
  for (std::size_t d = 0; d < box.start.size(); ++d)
    text += fmt::format("{}{}:{}", d == 0 ? '[' : ',', box.start[d], box.start[d] + box.count[d] - 1);
  return box.start.empty() ? text : text + ']';
}

std::int64_t place_in(const Box &box, const Box &part) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < box.start.size(); ++d) place = place * box.count[d] + part.start[d] - box.start[d];
  return place;
}

bool is_run_of(const Box &box, const Box &part) {
  std::size_t d = 0;
  while (d < box.count.size() && part.count[d] == 1) ++d;
  for (++d; d < box.count.size(); ++d)
    if (part.count[d] != box.count[d]) return false;
  return true;
}

std::size_t run_bytes(const Box &box, const Box &part, std::size_t element_bytes) {
  std::int64_t elements = 1;
  for (auto d = part.count.size(); d-- > 0;) {
    elements *= part.count[d];
    if (part.count[d] != box.count[d]) break;
  }
  return static_cast<std::size_t>(elements) * element_bytes;
}

// --- copies -----------------------------------------------------------------------------------------------------------

namespace {

/// One dimension of what is copied: so many rows, so far apart.
struct Level {
  std::int64_t count;
  std::int64_t source_step, target_step;  ///< in bytes
};

/// The dimensions of `part`, innermost first, those joined that follow each other in both arrays. The first is the row.
std::size_t make_levels(const Box &part, std::size_t element_bytes, const Box &source, const Box &target,
                        std::array<Level, MOST_DIMENSIONS + 1> &levels) {
  std::size_t used = 0;
  auto source_step = static_cast<std::int64_t>(element_bytes), target_step = source_step;
  levels[used++] = {source_step, 1, 1};
  for (auto d = part.count.size(); d-- > 0;) {
    auto &last = levels[used - 1];
    if (last.count * last.source_step == source_step && last.count * last.target_step == target_step)
      last.count *= part.count[d];
    else if (part.count[d] != 1)
      levels[used++] = {part.count[d], source_step, target_step};
    source_step *= source.count[d];
    target_step *= target.count[d];
  }
  return used;
}

void copy_levels(const std::array<Level, MOST_DIMENSIONS + 1> &levels, std::size_t level, const std::byte *source,
                 std::byte *target) {
  const auto &at = levels[level];
  if (level == 0) return (void)std::memcpy(target, source, static_cast<std::size_t>(at.count));
  if (level == 1) {
    const auto row = static_cast<std::size_t>(levels[0].count);
    for (std::int64_t i = 0; i < at.count; ++i, source += at.source_step, target += at.target_step)
      std::memcpy(target, source, row);
    return;
  }
  for (std::int64_t i = 0; i < at.count; ++i, source += at.source_step, target += at.target_step)
    copy_levels(levels, level - 1, source, target);
}

template <class Word>
void transpose_words(const std::vector<std::int64_t> &count, const Word *source, Word *target, bool to_fortran) {
  const auto dims = count.size();
  std::vector<std::int64_t> step(dims), at(dims, 0);  // of each dimension in Fortran order
  std::int64_t product = 1;
  for (std::size_t d = 0; d < dims; ++d) step[d] = std::exchange(product, product * count[d]);
  const auto inner = dims == 0 ? 1 : count.back(), inner_step = dims == 0 ? 1 : step.back();
  std::int64_t fortran = 0;
  for (std::int64_t c = 0; c < product; c += inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto f = fortran + i * inner_step;
      if (to_fortran)
        target[f] = source[c + i];
      else
        target[c + i] = source[f];
    }
    for (auto d = dims - (dims > 0 ? 1 : 0); d-- > 0;) {
      fortran += step[d];
      if (++at[d] < count[d]) break;
      fortran -= count[d] * step[d];
      at[d] = 0;
    }
  }
}

}  // namespace

void copy_part(const Box &part, std::size_t element_bytes, const std::byte *source, const Box &source_box,
               std::byte *target, const Box &target_box) {
  if (elements_of(part) == 0) return;
  std::array<Level, MOST_DIMENSIONS + 1> levels;
  const auto used = make_levels(part, element_bytes, source_box, target_box, levels);
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  copy_levels(levels, used - 1, source + place_in(source_box, part) * bytes,
              target + place_in(target_box, part) * bytes);
}

void transpose(const std::vector<std::int64_t> &count, std::size_t element_bytes, const std::byte *source,
               std::byte *target, bool to_fortran) {
  if (elements_of(count) == 0) return;
  const auto as = [&]<class Word>(Word) {
    transpose_words(count, reinterpret_cast<const Word *>(source), reinterpret_cast<Word *>(target), to_fortran);
  };
  switch (element_bytes) {
    case 1: return as(std::uint8_t{});
    case 2: return as(std::uint16_t{});
    case 4: return as(std::uint32_t{});
    default: return as(std::uint64_t{});
  }
}

void fill_with(std::byte *target, std::int64_t elements, const std::vector<std::byte> &value) {
  if (elements == 0) return;
  const auto total = static_cast<std::size_t>(elements) * value.size();
  std::memcpy(target, value.data(), value.size());
  for (auto done = value.size(); done < total; done *= 2)
    std::memcpy(target + done, target, std::min(done, total - done));
}

// --- slices -----------------------------------------------------------------------------------------------------------

Slices::Slices(const Box &box, std::size_t element_bytes, std::size_t most_bytes)
    : box_(box), at_(box.start.size(), 0) {
  done_ = elements_of(box) == 0;
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(most_bytes / element_bytes));
  std::int64_t below = 1;
  for (auto d = box.count.size(); d-- > 0;) {
    cut_ = d;
    step_ = std::clamp<std::int64_t>(most / below, 1, std::max<std::int64_t>(box.count[d], 1));
    if (step_ < box.count[d]) break;
    below *= box.count[d];
  }
  if (!done_) set();
}

void Slices::set() {
  slice_ = box_;
  for (std::size_t d = 0; d < at_.size() && d <= cut_; ++d) {
    slice_.start[d] = box_.start[d] + at_[d];
    slice_.count[d] = d < cut_ ? 1 : std::min(step_, box_.count[d] - at_[d]);
  }
  elements_ = elements_of(slice_);
}

void Slices::next() {
  if (at_.empty()) return (void)(done_ = true);
  at_[cut_] += step_;
  for (auto d = cut_; at_[d] >= box_.count[d]; --d) {
    if (d == 0) return (void)(done_ = true);
    at_[d] = 0;
    ++at_[d - 1];
  }
  set();
}

}  // namespace streams
