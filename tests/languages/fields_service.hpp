// SPDX-License-Identifier: BSD-3-Clause
// The service of fields.x in C++.
#pragma once

#include "fields_rpc.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace fields_peer {

using nessie::Code;
using nessie::Deadline;
using nessie::Error;
using nessie::Status;
using nssi::OpCode;
using nssi::Outcome;
using nssi::Request;
using nssi::Runtime;
namespace ONE = fields::FIELDS::ONE;
namespace TWO = fields::FIELDS::TWO;

/// All of the caller's data.
inline std::vector<double> pull(Request &request, Status &status) {
  std::vector<double> field(request.data_bytes() / sizeof(double));
  status = request.get_data(std::as_writable_bytes(std::span(field)));
  return field;
}

class Fields final : public ONE::Server {
 public:
  explicit Fields(Runtime &runtime) : runtime_(runtime) {}
  nssi::HandlerKind kind_of(OpCode op) const override {
    return op == ONE::ADD ? nssi::HandlerKind::kShort : nssi::HandlerKind::kFiber;
  }
  Outcome<void> NOTHING(Request &) override { return {}; }
  Outcome<std::int64_t> ADD(Request &, std::int32_t a, std::uint64_t b) override {
    return a + static_cast<std::int64_t>(b);
  }
  Outcome<fields::moments> MEASURE(Request &request) override {
    Status status;
    const auto field = pull(request, status);
    if (!status.ok()) return status.error();
    const auto [least, greatest] = std::ranges::minmax(field);
    return fields::moments{std::accumulate(field.begin(), field.end(), 0.0), least, greatest};
  }
  Outcome<void> SCALE(Request &request, double factor) override {
    Status status;
    auto field = pull(request, status);
    if (!status.ok()) return status;
    for (auto &each : field) each *= factor;
    return request.put_data(std::as_bytes(std::span(field)));
  }
  Outcome<void> RAMP(Request &request, const fields::axis &along) override {
    std::vector<double> field(request.data_bytes() / sizeof(double));
    for (std::size_t i = 0; i < field.size(); ++i)
      field[i] = static_cast<double>((i + 1) * static_cast<unsigned>(along));
    return request.put_data(std::as_bytes(std::span(field)));
  }
  Outcome<std::string> GREET(Request &, const std::string &name, const fields::title &title) override {
    return "hello " + name + ", " + title;
  }
  Outcome<fields::weights> BLEND(Request &, const fields::weights &weights, float factor) override {
    auto made = weights;
    for (auto &each : made) each *= static_cast<double>(factor);
    return made;
  }
  Outcome<fields::found> FIND(Request &, const fields::stamp &stamp, bool is_here) override {
    fields::found found;
    found.select(is_here);
    if (auto *what = found.what()) *what = stamp;
    return found;
  }
  Outcome<fields::route> REVERSE(Request &, const fields::route &route) override {
    fields::route made;
    for (const auto *stop = route.get(); stop != nullptr; stop = stop->next.get()) {
      auto rest = std::move(made);
      made = fields::route();
      auto &first = made.emplace();
      first.place = stop->place;
      first.next = std::move(rest);
    }
    return made;
  }
  Outcome<fields::tree> MIRROR(Request &, const fields::tree &tree) override {
    auto made = tree;
    turn(made);
    return made;
  }
  Outcome<fields::maybe> HALF(Request &, const fields::maybe &number) override {
    return number ? fields::maybe(*number / 2) : fields::maybe();
  }
  Outcome<fields::octets> ECHO(Request &, const fields::octets &octets) override { return octets; }
  Outcome<fields::titles> PICK(Request &, const fields::titles &titles, const fields::axes &axes) override {
    fields::titles made;
    for (const auto axis : axes) made.push_back(titles.at(static_cast<std::size_t>(axis) - 1));
    return made;
  }
  Outcome<fields::history> SHIFT(Request &, const fields::history &history, double by) override {
    auto made = history;
    for (auto &each : made) each.least += by, each.greatest += by;
    return made;
  }
  Outcome<std::int32_t> REST(Request &, std::uint32_t time_ms) override {
    runtime_.sleep_until(Deadline::in(std::chrono::milliseconds(time_ms)));
    return static_cast<std::int32_t>(time_ms);
  }
  Outcome<std::int32_t> REFUSE(Request &, std::int32_t cause) override {
    return Error{Code::kIo, "No space left on device: free some", nessie::Scope::kService, cause};
  }
  Outcome<fields::title> REPEAT(Request &, const fields::title &title, std::int32_t times) override {
    fields::title made;
    for (std::int32_t i = 0; i < times; ++i) made += title;
    return made;
  }

 private:
  static void turn(fields::tree &tree) {
    std::ranges::reverse(tree.children);
    for (auto &child : tree.children) turn(child);
  }
  Runtime &runtime_;
};

class Second final : public TWO::Server {
 public:
  Outcome<std::int32_t> ADD(Request &, std::int32_t a, std::int32_t b, std::int32_t c) override { return a + b + c; }
};

}  // namespace fields_peer
