// SPDX-License-Identifier: BSD-3-Clause
// A step on its way from a stream to wherever it is handed on, and who hands it on.
#pragma once

#include <nessie/streams.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nessie::streams::sinks {

/// How much of a variable is moved at once: what a sink needs of memory.
inline constexpr std::size_t kSlabBytes = std::size_t{4} << 20;
/// What stays in a processor's cache while one thing is done with it after the other.
inline constexpr std::size_t kCachedBytes = std::size_t{1} << 20;

/// Which stream.
struct Origin {
  std::string stream;  ///< its name
  /// Of this stream, and no other one that had or will have its name; 0: not known.
  std::uint64_t identity = 0;
  bool operator==(const Origin &) const = default;
};

/// Whether steps of the one go on where those of the other end.
inline bool is_same(const Origin &a, const Origin &b) {
  return a.stream == b.stream && (a.identity == b.identity || a.identity == 0 || b.identity == 0);
}

/// One step, wherever it comes from: a stream, a file, an image.
class Step {
 public:
  virtual ~Step() = default;
  virtual std::uint64_t number() const = 0;
  /// Constants of earlier steps, too.
  virtual const std::vector<Variable> &variables() const = 0;
  virtual const std::vector<Attribute> &attributes() const = 0;
  /// Whether a constant was, or may have been, put in this step.
  virtual bool is_new(const Variable &constant) const = 0;
  /// What it is of a program's files; null: of none.
  virtual const Source *source() const { return nullptr; }
  /// Whether a variable is to be handed on: then it is among those above, as soon as it is there.
  virtual bool is_wanted(std::string_view) const { return true; }
  /// As Reader::get(), in C order.
  virtual Status get(const Variable &variable, const Box &box, std::span<std::byte> destination) = 0;
};

/// Null: there is none of that name.
inline const Variable *find(const Step &step, std::string_view name) {
  const auto found = std::ranges::find(step.variables(), name, &Variable::name);
  return found == step.variables().end() ? nullptr : &*found;
}

/// Whether to give up what takes long. Asked several times a second.
using Stop = std::function<bool()>;

/// Who is handed the steps of one stream, in their order. One thread at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  /// All steps before this one are safe there, as far as it knows.
  virtual std::uint64_t wanted() const = 0;
  /// Returns when the step is safe there: then the stream may forget it. After an error the step can be handed over
  /// again. kCancelled: it was told to stop. Others: as each sink says; what Step::get() says.
  virtual Status take(Step &step) = 0;
  /// The stream has ended.
  virtual Status finish() = 0;
  /// How much of the steps that were taken is not there, as it was gone by then, and will not come any more: records,
  /// and variables.
  virtual std::uint64_t missing() const { return 0; }
};

}  // namespace nessie::streams::sinks
