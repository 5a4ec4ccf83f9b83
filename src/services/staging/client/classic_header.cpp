// SPDX-License-Identifier: BSD-3-Clause
#include <services/staging/client/classic_header.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace staging {

using nessie::Code;
using nessie::Error;
using nessie::Result;
using nessie::Status;

namespace {

constexpr std::uint32_t kDimensions = 10, kVariables = 11, kAttributes = 12;  // tags
constexpr std::array<int, 12> kTypeBytes = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
constexpr std::uint64_t kAlignment = 4;

std::uint64_t aligned(std::uint64_t size_bytes) { return (size_bytes + kAlignment - 1) / kAlignment * kAlignment; }

Error cut_off() { return {Code::kOutOfRange, "a file's header goes on behind what was read of it"}; }
Error no_header(const std::string &why) { return {Code::kBadMessage, "this is no header of a netCDF file: " + why}; }

/// Takes a header apart; what comes behind the first fault is zeros.
class Parser {
 public:
  explicit Parser(std::span<const std::byte> bytes) : all_(bytes), left_(bytes) {}

  Result<ClassicHeader> parse() {
    ClassicHeader header;
    take_format();
    const auto records = take_size();
    header.num_records = records == none() ? 0 : static_cast<std::int64_t>(records);
    for (auto count = take_list(kDimensions); count > 0 && fault_.ok(); --count) take_dimension();
    header.attributes = take_attributes();
    for (auto count = take_list(kVariables); count > 0 && fault_.ok(); --count)
      header.variables.push_back(take_variable());
    if (fault_.ok()) note_records(header);
    if (!fault_.ok()) return fault_.error();
    const auto own = all_.first(all_.size() - left_.size());
    header.bytes.assign(own.begin(), own.end());
    header.format = version_;
    header.dimensions = std::move(dimensions_);
    return header;
  }

 private:
  void fail(Error error) {
    if (fault_.ok()) fault_ = std::move(error);
    left_ = {};
  }
  std::span<const std::byte> take(std::uint64_t size_bytes) {
    if (size_bytes > left_.size()) return fail(cut_off()), std::span<const std::byte>();
    const auto taken = left_.first(size_bytes);
    left_ = left_.subspan(size_bytes);
    return taken;
  }
  std::uint64_t take_number(std::size_t size_bytes) {
    std::uint64_t number = 0;
    for (const auto byte : take(size_bytes)) number = number << 8 | std::to_integer<std::uint64_t>(byte);
    return number;
  }
  std::uint32_t take_word() { return static_cast<std::uint32_t>(take_number(4)); }
  /// A number of elements, or a length.
  std::uint64_t take_size() { return take_number(version_ == 5 ? 8 : 4); }
  std::uint64_t none() const { return version_ == 5 ? ~std::uint64_t{0} : ~std::uint32_t{0}; }

  void take_format() {
    const auto magic = take(4);
    if (!fault_.ok()) return;
    version_ = std::to_integer<int>(magic[3]);
    const bool is_classic =
        std::memcmp(magic.data(), "CDF", 3) == 0 && (version_ == 1 || version_ == 2 || version_ == 5);
    if (!is_classic) fail(no_header("it begins otherwise"));
  }
  std::string take_name() {
    const auto size = take_size();
    const auto bytes = take(size);
    std::string name(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    take(aligned(size) - size);
    return name;
  }
  /// How many there are in the list that begins here.
  std::uint64_t take_list(std::uint32_t tag) {
    const auto found = take_word();
    const auto count = take_size();
    if (fault_.ok() && found != tag && (found != 0 || count != 0)) fail(no_header("a list begins otherwise"));
    return fault_.ok() ? count : 0;
  }
  void take_dimension() {
    ClassicDimension dimension;
    dimension.name = take_name();
    dimension.length = static_cast<std::int64_t>(take_size());
    if (dimension.length < 0) fail(no_header("a dimension is too long"));
    dimensions_.push_back(std::move(dimension));
  }
  int take_type() {
    const auto type = static_cast<int>(take_word());
    if (fault_.ok() && classic_type_bytes(type) == 0) fail(no_header("it has a type that there is not"));
    return type;
  }
  std::vector<ClassicAttribute> take_attributes() {
    std::vector<ClassicAttribute> attributes;
    for (auto count = take_list(kAttributes); count > 0 && fault_.ok(); --count) {
      auto &attribute = attributes.emplace_back();
      attribute.name = take_name();
      attribute.type = take_type();
      const auto element_bytes = static_cast<std::uint64_t>(classic_type_bytes(attribute.type));
      const auto elements = take_size();
      if (elements > left_.size()) fail(cut_off());
      const auto bytes = take(elements * element_bytes);
      attribute.value.assign(bytes.begin(), bytes.end());
      swap_elements(attribute.value, static_cast<int>(element_bytes));
      if (fault_.ok()) take(aligned(elements * element_bytes) - elements * element_bytes);
    }
    return attributes;
  }
  ClassicVariable take_variable() {
    ClassicVariable variable;
    variable.name = take_name();
    variable.varid = variables_++;
    for (auto count = take_size(); count > 0 && fault_.ok(); --count) add_dimension(variable, take_size());
    variable.attributes = take_attributes();
    variable.type = take_type();
    variable.element_bytes = classic_type_bytes(variable.type);
    take_size();  // what it takes, which its shape says
    variable.begin = take_number(version_ == 1 ? 4 : 8);
    if (variable.begin > INT64_MAX) fail(no_header("a variable begins behind all files"));
    return variable;
  }
  void add_dimension(ClassicVariable &variable, std::uint64_t dimension) {
    if (!fault_.ok()) return;
    if (dimension >= dimensions_.size()) return fail(no_header("a variable has a dimension that there is not"));
    const auto &[name, length] = dimensions_[dimension];
    if (length == 0 && !variable.shape.empty()) return fail(no_header("records are not the first dimension"));
    variable.is_record = variable.is_record || length == 0;
    variable.shape.push_back(length);
    variable.dimensions.push_back(name);
  }
  /// Those of several variables are aligned; of one alone they are not.
  void note_records(ClassicHeader &header) {
    std::size_t variables = 0;
    std::uint64_t bytes = 0;
    for (const auto &variable : header.variables) {
      std::uint64_t size = 1;
      for (std::size_t d = variable.is_record ? 1 : 0; d < variable.shape.size(); ++d)
        if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(variable.shape[d]), &size)) return too_large();
      if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(variable.element_bytes), &size) ||
          size > INT64_MAX - kAlignment)
        return too_large();
      if (!variable.is_record) continue;
      ++variables, bytes = size;
      if (__builtin_add_overflow(header.record_bytes, aligned(size), &header.record_bytes)) return too_large();
    }
    if (variables == 1) header.record_bytes = bytes;
  }
  void too_large() { fail(no_header("a variable is too large")); }

  const std::span<const std::byte> all_;
  std::span<const std::byte> left_;
  int version_ = 1, variables_ = 0;
  std::vector<ClassicDimension> dimensions_;
  Status fault_;
};

}  // namespace

const ClassicVariable *ClassicHeader::find(const std::string &name) const {
  const auto found = std::ranges::find(variables, name, &ClassicVariable::name);
  return found == variables.end() ? nullptr : &*found;
}

Result<ClassicHeader> parse_classic_header(std::span<const std::byte> bytes) { return Parser(bytes).parse(); }

int classic_type_bytes(int type) {
  return type > 0 && static_cast<std::size_t>(type) < kTypeBytes.size() ? kTypeBytes[static_cast<std::size_t>(type)]
                                                                        : 0;
}

namespace {

template <class Word> void swap_words(std::span<std::byte> data) {
  for (std::size_t at = 0; at + sizeof(Word) <= data.size(); at += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, data.data() + at, sizeof word);
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(data.data() + at, &word, sizeof word);
  }
}

}  // namespace

void swap_elements(std::span<std::byte> data, int element_bytes) {
  if constexpr (std::endian::native == std::endian::big) return;
  if (element_bytes == 2) swap_words<std::uint16_t>(data);
  if (element_bytes == 4) swap_words<std::uint32_t>(data);
  if (element_bytes == 8) swap_words<std::uint64_t>(data);
}

}  // namespace staging
