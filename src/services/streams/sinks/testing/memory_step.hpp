// SPDX-License-Identifier: BSD-3-Clause
// A step whose arrays a test has made.
#pragma once

#include "services/streams/sinks/slabs.hpp"

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nessie::streams::sinks::testing {

template <class T> std::vector<std::byte> bytes_of(const std::vector<T> &values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

inline Attribute text_attribute(std::string variable, std::string name, const std::string &text) {
  return {std::move(variable), std::move(name), Type::kChar, bytes_of(std::vector<char>(text.begin(), text.end()))};
}

class MemoryStep : public Step {
 public:
  explicit MemoryStep(std::uint64_t number) : number_(number) {}
  template <class T> MemoryStep &add(Variable variable, const std::vector<T> &values) {
    data_[variable.name] = bytes_of(values);
    variables_.push_back(std::move(variable));
    return *this;
  }
  MemoryStep &say(Attribute attribute) {
    attributes_.push_back(std::move(attribute));
    return *this;
  }
  MemoryStep &of(Source source) {
    source_ = std::move(source);
    return *this;
  }
  /// From now on nothing can be got of it.
  void fail() { fails_ = true; }
  /// That array is gone.
  void lose(const std::string &variable) { data_.erase(variable); }
  /// Only that one is to be handed on.
  void want(std::string variable) { wanted_ = std::move(variable); }

  std::uint64_t number() const override { return number_; }
  const std::vector<Variable> &variables() const override { return variables_; }
  const std::vector<Attribute> &attributes() const override { return attributes_; }
  bool is_new(const Variable &) const override { return true; }
  const Source *source() const override { return source_ ? &*source_ : nullptr; }
  bool is_wanted(std::string_view variable) const override { return wanted_.empty() || variable == wanted_; }
  Status get(const Variable &variable, const Box &box, std::span<std::byte> destination) override {
    if (fails_) return Error{Code::kPeerLost, "the stream is gone"};
    if (!data_.contains(variable.name)) return Error{Code::kNotFound, "it was written over"};
    const auto &source = data_.at(variable.name);
    ::streams::copy_part(to_args(box), size_of(variable.type), source.data(), to_args(whole(variable.shape)),
                         destination.data(), to_args(box));
    return {};
  }

 private:
  std::uint64_t number_;
  std::vector<Variable> variables_;
  std::vector<Attribute> attributes_;
  std::map<std::string, std::vector<std::byte>> data_;
  std::optional<Source> source_;
  std::string wanted_;
  bool fails_ = false;
};

/// What a file has of one of its steps.
template <class T> std::vector<T> values_of(Step &step, const std::string &name) {
  const auto *variable = find(step, name);
  if (variable == nullptr) return {};
  const auto all = whole(variable->shape);
  std::vector<T> values(elements_of(all));
  const auto got = step.get(*variable, all, std::as_writable_bytes(std::span(values)));
  return got.ok() ? values : std::vector<T>{};
}

}  // namespace nessie::streams::sinks::testing
