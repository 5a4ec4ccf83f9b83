// SPDX-License-Identifier: BSD-3-Clause
#include <interpose/pnetcdf/engine/packing.hpp>

#include <interpose/pnetcdf/engine/datatype.hpp>

#include <climits>
#include <cstring>
#include <utility>

namespace interpose {

namespace {

/// Calls function(position in the access, position in memory) for every row of the access, in C order. Positions are in
/// elements; a row is the last dimension.
template <class Function>
void for_each_row(std::span<const std::int64_t> count, std::span<const std::int64_t> imap, Function function) {
  std::vector<std::int64_t> index(count.size(), 0);
  const std::size_t last = count.size() - 1;
  for (std::int64_t position = 0;; position += count[last]) {
    std::int64_t mapped = 0;
    for (std::size_t i = 0; i < last; ++i) mapped += index[i] * imap[i];
    function(position, mapped);
    std::size_t dimension = last;
    while (dimension > 0 && ++index[dimension - 1] == count[dimension - 1]) index[--dimension] = 0;
    if (dimension == 0) return;
  }
}

template <class Word>
void gather_words(std::span<const std::int64_t> count, std::span<const std::int64_t> imap, const void *from, void *to) {
  const auto *words = static_cast<const Word *>(from);
  auto *packed = static_cast<Word *>(to);
  for_each_row(count, imap, [&](std::int64_t position, std::int64_t mapped) {
    for (std::int64_t i = 0; i < count.back(); ++i) packed[position + i] = words[mapped + i * imap.back()];
  });
}

template <class Word>
void scatter_words(std::span<const std::int64_t> count, std::span<const std::int64_t> imap, const void *from,
                   void *to) {
  const auto *packed = static_cast<const Word *>(from);
  auto *words = static_cast<Word *>(to);
  for_each_row(count, imap, [&](std::int64_t position, std::int64_t mapped) {
    for (std::int64_t i = 0; i < count.back(); ++i) words[mapped + i * imap.back()] = packed[position + i];
  });
}

template <class Function> void with_word(std::size_t size_bytes, Function function) {
  switch (size_bytes) {
    case 1: return function(std::uint8_t{});
    case 2: return function(std::uint16_t{});
    case 4: return function(std::uint32_t{});
    default: return function(std::uint64_t{});
  }
}

}  // namespace

MemoryLayout::MemoryLayout(MemoryLayout &&other) noexcept { *this = std::move(other); }

MemoryLayout &MemoryLayout::operator=(MemoryLayout &&other) noexcept {
  if (owns_datatype_) MPI_Type_free(&datatype_);
  address_ = other.address_;
  element_ = other.element_;
  contiguous_ = other.contiguous_;
  convert_ = other.convert_;
  owns_datatype_ = std::exchange(other.owns_datatype_, false);
  datatype_count_ = other.datatype_count_;
  datatype_ = other.datatype_;
  elements_ = other.elements_;
  imap_ = std::move(other.imap_);
  count_ = std::move(other.count_);
  return *this;
}

MemoryLayout::~MemoryLayout() {
  if (owns_datatype_) MPI_Type_free(&datatype_);
}

int MemoryLayout::decode(const Memory &memory, const Variable &variable, int format, std::int64_t elements) {
  address_ = memory.address;
  elements_ = elements;
  element_ = native_element(variable.type);
  if (memory.type != MPI_DATATYPE_NULL && memory.count == kTyped) {
    element_ = element_of(memory.type);
  } else if (memory.type != MPI_DATATYPE_NULL) {
    Datatype decoded;
    if (int error = interpose::decode(memory.type, decoded)) return error;
    if (decoded.elements * memory.count != elements) return NC_EIOMISMATCH;
    element_ = decoded.element;
    contiguous_ = decoded.contiguous;
    datatype_ = memory.type;
    if (!contiguous_ && memory.count > INT_MAX) return NC_EINTOVERFLOW;
    datatype_count_ = static_cast<int>(memory.count);
  }
  convert_ = needs_conversion(format, variable.type, element_);
  if (elements > INT_MAX) return NC_EINTOVERFLOW;
  return elements * variable.layout.element_bytes > INT_MAX ? NC_EMAX_REQ : NC_NOERR;
}

int MemoryLayout::map(std::span<const MPI_Offset> imap, std::span<const std::int64_t> count) {
  if (count.empty() || elements_ <= 1) return NC_NOERR;
  std::int64_t contiguous = 1;
  std::size_t dimension = count.size();
  while (dimension > 0 && contiguous == imap[dimension - 1]) contiguous *= count[--dimension];
  if (dimension == 0) return NC_NOERR;
  if (contiguous > INT_MAX || count[dimension - 1] > INT_MAX ||
      imap[dimension - 1] != static_cast<int>(imap[dimension - 1]))
    return NC_EINTOVERFLOW;
  imap_.assign(imap.begin(), imap.end());
  count_.assign(count.begin(), count.end());
  return NC_NOERR;
}

void MemoryLayout::keep_datatype() {
  if (contiguous_ || owns_datatype_) return;
  MPI_Type_dup(datatype_, &datatype_);
  owns_datatype_ = true;
}

const void *MemoryLayout::gather(Buffer &packed) const {
  if (contiguous_ && imap_.empty()) return address_;
  const std::size_t size_bytes = static_cast<std::size_t>(elements_) * size_of(element_);
  const void *source = address_;
  Buffer unfolded;
  if (!contiguous_) {
    unfolded = Buffer(size_bytes);
    int position = 0;
    MPI_Pack(address_, datatype_count_, datatype_, unfolded.data(), static_cast<int>(size_bytes), &position,
             MPI_COMM_SELF);
    source = unfolded.data();
  }
  if (imap_.empty()) {
    packed = std::move(unfolded);
  } else {
    packed = Buffer(size_bytes);
    with_word(size_of(element_), [&]<class Word>(Word) { gather_words<Word>(count_, imap_, source, packed.data()); });
  }
  return packed.data();
}

void MemoryLayout::scatter(const void *contiguous) const {
  const std::size_t size_bytes = static_cast<std::size_t>(elements_) * size_of(element_);
  Buffer folded;
  if (!imap_.empty()) {
    void *target = address_;
    if (!contiguous_) {
      folded = Buffer(size_bytes);
      target = folded.data();
    }
    with_word(size_of(element_), [&]<class Word>(Word) { scatter_words<Word>(count_, imap_, contiguous, target); });
    contiguous = target;
  }
  if (!contiguous_) {
    int position = 0;
    MPI_Unpack(contiguous, static_cast<int>(size_bytes), &position, address_, datatype_count_, datatype_,
               MPI_COMM_SELF);
  } else if (imap_.empty()) {
    std::memcpy(address_, contiguous, size_bytes);
  }
}

int MemoryLayout::pack(std::span<std::byte> external, const Variable &variable, std::span<const std::byte> fill) const {
  if (elements_ * static_cast<std::int64_t>(size_of(element_)) > INT_MAX) return NC_EINTOVERFLOW;
  Buffer packed;
  const void *contiguous = gather(packed);
  if (convert_)
    return to_external(element_, contiguous, variable.type, external.data(), static_cast<std::size_t>(elements_),
                       fill.data());
  std::memcpy(external.data(), contiguous, external.size());
  return NC_NOERR;
}

int MemoryLayout::unpack(std::span<std::byte> external, const Variable &variable) const {
  if (elements_ * static_cast<std::int64_t>(size_of(element_)) > INT_MAX) return NC_EINTOVERFLOW;
  if (!convert_) {
    scatter(external.data());
    return NC_NOERR;
  }
  const bool in_place = contiguous_ && imap_.empty();
  Buffer converted;
  if (!in_place) converted = Buffer(static_cast<std::size_t>(elements_) * size_of(element_));
  void *target = in_place ? address_ : converted.data();
  const int error =
      from_external(variable.type, external.data(), element_, target, static_cast<std::size_t>(elements_));
  if (!in_place && (error == NC_NOERR || error == NC_ERANGE)) scatter(target);
  return error;
}

}  // namespace interpose
