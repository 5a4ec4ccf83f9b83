// SPDX-License-Identifier: BSD-3-Clause
#include "trace.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nessie::cli {
namespace {

using Json = nlohmann::json;

std::string clock_line(const std::string &boot, double time_of_day_us) {
  return Json{{"name", "nessie_clock"},
              {"ph", "M"},
              {"pid", 7},
              {"args", {{"boot", boot}, {"time_of_day_us", time_of_day_us}}}}
             .dump() +
         ",\n";
}

std::string span_line(const std::string &category, double ts, const std::string &span, const std::string &parent) {
  return Json{{"name", category + " 5"},
              {"cat", category},
              {"ph", "X"},
              {"pid", 7},
              {"tid", 1},
              {"ts", ts},
              {"dur", 1.5},
              {"args", {{"trace", "1"}, {"span", span}, {"parent", parent}}}}
             .dump() +
         ",\n";
}

Json span_in(const std::string &merged, const std::string &category) {
  const auto whole = Json::parse(merged);
  for (const auto &event : whole["traceEvents"])
    if (event.value("cat", "") == category) return event;
  return nullptr;
}

TEST(MergeTraces, NumbersProcessesAndCountsFromTheFirstEvent) {
  const auto merged = merge_traces({"[\n" + clock_line("a", 0) + span_line("call", 1000.5, "2", "0"),
                                    "[\n" + clock_line("a", 0) + span_line("execution", 1002, "3", "2")});
  ASSERT_TRUE(merged.ok());
  const auto call = span_in(*merged, "call"), execution = span_in(*merged, "execution");
  EXPECT_EQ(call["ts"], 0.0);
  EXPECT_EQ(execution["ts"], 1.5);
  EXPECT_NE(call["pid"], execution["pid"]);
}

TEST(MergeTraces, NamesACallAsTheOperationThatItCalled) {
  const auto merged = merge_traces({span_line("call", 1, "2", "0"), span_line("execution", 2, "3", "2")});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(span_in(*merged, "call")["name"], "call execution 5");
}

TEST(MergeTraces, AlignsNodesByTheTimeOfDay) {
  const auto merged = merge_traces({clock_line("a", 5000) + span_line("call", 1000, "2", "0"),
                                    clock_line("b", 9000) + span_line("execution", 1, "3", "2")});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(span_in(*merged, "execution")["ts"], 3001.0);
}

TEST(MergeTraces, TakesTheWholeEventsOfATornFile) {
  const auto whole = span_line("call", 1, "2", "0"), torn = span_line("execution", 2, "3", "2");
  const auto merged = merge_traces({"[\n" + whole + torn.substr(0, torn.size() / 2)});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(Json::parse(*merged)["traceEvents"].size(), 1u);
}

TEST(MergeTraces, WithoutAnEventSaysSo) {
  EXPECT_EQ(merge_traces({"[\n" + clock_line("a", 0)}).error().code, Code::kNotFound);
  EXPECT_EQ(merge_traces({"neither\nof {\nthese"}).error().code, Code::kNotFound);
}

TEST(MergeTraces, OfSomebodyElsesFormatAreAnError) {
  EXPECT_EQ(merge_traces({R"({"name": 1, "ph": "X", "ts": "noon"},)"}).error().code, Code::kBadMessage);
}

}  // namespace
}  // namespace nessie::cli
