// SPDX-License-Identifier: BSD-3-Clause
// The service of stub_test.x, for tests of clients in several languages.
#pragma once

#include "stub_test_rpc.hpp"

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>

namespace nssi::testing {

class Atlas : public stub_test::ATLAS::FIRST::Server {
 public:
  HandlerKind kind_of(OpCode op) const override {
    return op == stub_test::ATLAS::FIRST::SHORT ? HandlerKind::kShort : HandlerKind::kFiber;
  }
  Outcome<void> NOTHING(Request &) override { return {}; }
  Outcome<std::int32_t> ADD(Request &, std::int32_t a, std::int32_t b) override { return a + b; }
  Outcome<std::string> GREET(Request &, const std::string &name) override { return "hello " + name; }
  Outcome<stub_test::point> MIRROR(Request &, const stub_test::point &p) override {
    return stub_test::point{-p.x, -p.y};
  }
  Outcome<stub_test::path> WALK(Request &, const stub_test::point &from, std::uint32_t steps) override {
    stub_test::path path;
    for (std::uint32_t i = 0; i < steps; ++i) path.push_back({from.x + static_cast<std::int32_t>(i), from.y});
    return path;
  }
  Outcome<stub_test::found> FIND(Request &, const stub_test::color &color) override {
    stub_test::found found;
    found.select(color == stub_test::color::RED);
    if (auto *where = found.where()) *where = {1, 2};
    return found;
  }
  Outcome<stub_test::parcel> ECHO(Request &, const stub_test::parcel &bytes) override { return bytes; }
  Outcome<std::uint64_t> SUM(Request &request) override {
    Bytes data(request.data_bytes());
    if (auto status = request.get_data(data); !status.ok()) return status.error();
    return std::accumulate(data.begin(), data.end(), std::uint64_t{0},
                           [](std::uint64_t sum, std::byte each) { return sum + std::to_integer<unsigned>(each); });
  }
  Outcome<void> FILL(Request &request, std::int32_t value) override {
    return request.put_data(Bytes(request.data_bytes(), static_cast<std::byte>(value)));
  }
  Outcome<void> NEGATE(Request &request) override {
    Bytes data(request.data_bytes());
    if (auto status = request.get_data(data); !status.ok()) return status;
    for (auto &each : data) each = ~each;
    return request.put_data(data);
  }
  Outcome<void> BURN(Request &) override { throw std::runtime_error("the roof is on fire"); }
  Outcome<std::int32_t> SHORT(Request &, std::int32_t value) override { return value; }
  Outcome<std::int32_t> REFUSE(Request &, std::int32_t cause) override {
    return Error{Code::kIo, "No space left on device: free some", nessie::Scope::kService, cause};
  }
};

}  // namespace nssi::testing
