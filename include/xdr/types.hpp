// SPDX-License-Identifier: BSD-3-Clause
// Types that the interface compiler's C++ uses beside the standard library's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

namespace xdr {

/// A string, or an array, of at most `kMostElements` elements: T<kMostElements> of an interface file. A longer one can
/// be made, but neither encoded nor decoded.
template <class T, std::uint32_t kMostElements> struct Bounded : T {
  static constexpr std::size_t kMost = kMostElements;
  using T::T;
  Bounded() = default;
  Bounded(T value) : T(std::move(value)) {}  // NOLINT(google-explicit-constructor): it is one
};

/// Nothing, or a value of a type that contains itself: `node *next`. A chain of them is destroyed link by link, however
/// long it is.
template <class T> class Box {
 public:
  Box() = default;
  Box(Box &&other) noexcept = default;
  Box &operator=(Box &&other) noexcept {
    auto mine = std::exchange(value_, std::move(other.value_));
    Box(std::move(mine)).reset();
    return *this;
  }
  ~Box() { reset(); }

  explicit operator bool() const { return value_ != nullptr; }
  /// Null: nothing.
  T *get() { return value_.get(); }
  const T *get() const { return value_.get(); }
  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return value_.get(); }
  const T *operator->() const { return value_.get(); }
  T &emplace() {
    reset();
    value_ = std::make_unique<T>();
    return *value_;
  }
  void reset() {
    if constexpr (requires(T & value) { xdr_next(value); }) {
      for (auto rest = std::move(value_); rest;) rest = std::exchange(xdr_next(*rest).value_, nullptr);
    } else {
      value_.reset();
    }
  }

 private:
  explicit Box(std::unique_ptr<T> value) : value_(std::move(value)) {}
  std::unique_ptr<T> value_;
};

/// A union's arm number `kArm`, to or from an archive (codec.hpp).
template <std::size_t kArm, class Archive, class... Arms> void arm(Archive &archive, std::variant<Arms...> &arms) {
  if constexpr (Archive::kReads) {
    arms.template emplace<kArm>();
  } else if (arms.index() != kArm) {
    return archive.fail("a union holds another arm than it says");
  }
  if constexpr (!std::is_same_v<std::variant_alternative_t<kArm, std::variant<Arms...>>, std::monostate>)
    archive(*std::get_if<kArm>(&arms));
}

/// A struct whose last field, `next`, is optional and of its own type: link after link, without recursion. `fields` are
/// the others'.
template <class Archive, class Node, class Fields> void chain(Archive &archive, Node &first, Fields fields) {
  for (Node *node = &first; node != nullptr; node = xdr_next(*node).get()) {
    fields(archive, *node);
    auto &next = xdr_next(*node);
    bool more = next.get() != nullptr;
    archive(more);
    if constexpr (Archive::kReads) {
      if (!more)
        next.reset();
      else if (!next)
        next.emplace();
    }
  }
}

}  // namespace xdr
