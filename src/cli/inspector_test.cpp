// SPDX-License-Identifier: BSD-3-Clause
#include "inspector.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nessie::cli {
namespace {

nlohmann::json operation(const char *name, int provider, int calls) {
  return {{"name", name},      {"program", 0x20000777}, {"version", 1},      {"provider", provider},
          {"op", 2},           {"calls", calls},        {"args_bytes", 0},   {"result_bytes", 0},
          {"pulled_bytes", 0}, {"pushed_bytes", 0},     {"viewed_bytes", 0}, {"errors", nlohmann::json::object()}};
}

std::string table_of(nlohmann::json operations) {
  const auto nothing = nlohmann::json::array();
  return describe_statistics({{"is_counted", true},
                              {"refused", 0},
                              {"uptime_ns", 1'000'000'000},
                              {"operations", std::move(operations)},
                              {"services", nothing},
                              {"callers", nothing},
                              {"calls", nothing}},
                             {});
}

TEST(DescribeStatistics, OperationsOfOneName_AreToldApart) {
  const auto text = table_of({operation("GET", 0, 3), operation("GET", 5, 4), operation("PUT", 0, 1)});
  EXPECT_NE(text.find("GET (0x20000777.1, provider 0)"), text.npos) << text;
  EXPECT_NE(text.find("GET (0x20000777.1, provider 5)"), text.npos) << text;
  EXPECT_NE(text.find("  PUT  "), text.npos) << text;
}

TEST(DescribeStatistics, WhatWasNotCalled_IsNotShown) {
  const auto text = table_of({operation("GET", 0, 3), operation("GET", 5, 0)});
  EXPECT_NE(text.find("  GET  "), text.npos) << text;
  EXPECT_EQ(text.find("provider"), text.npos) << text;
}

}  // namespace
}  // namespace nessie::cli
