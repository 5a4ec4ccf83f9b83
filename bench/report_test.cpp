// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

const Series kOurs{"nessie", "shm", "polling", 64, 1, "round_trip_us", "us"};
const Series kTheirs{"openmpi", "shm", "polling", 64, 1, "round_trip_us", "us"};

TEST(Summarise, GivesMedianSpreadAndExtremes) {
  auto summary = summarise({5, 1, 2, 100, 3});
  EXPECT_EQ(summary.median, 3);
  EXPECT_EQ(summary.mad, 2);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 100);
  EXPECT_EQ(summary.n, 5u);
}

TEST(Summarise, AveragesTheTwoInTheMiddle) { EXPECT_EQ(summarise({4, 1, 2, 3}).median, 2.5); }

TEST(Report, PrintsASeriesAsOneJsonObjectALine) {
  Report report("rpc-latency");
  report.add(kOurs, 0, 1.5);
  report.add(kOurs, 1, 2.5);
  EXPECT_EQ(
      report.json(),
      R"({"bench": "rpc-latency", "system": "nessie", "transport": "shm", "mode": "polling", "size_bytes": 64, )"
      R"("clients": 1, "metric": "round_trip_us", "unit": "us", "median": 2, "mad": 0.5, "min": 1.5, "max": 2.5, "n": 2})"
      "\n");
}

TEST(Report, PrintsRatiosAfterAllSeries) {
  Report report("rpc-latency");
  report.add(kOurs, 0, 3);
  report.add_ratio(kOurs, kTheirs);
  report.add(kTheirs, 0, 2);
  report.add_ratio(kOurs, kTheirs);
  auto json = report.json();
  EXPECT_TRUE(
      json.ends_with(R"({"bench": "rpc-latency", "ratio": "nessie/openmpi", "metric": "round_trip_us", )"
                     R"("size_bytes": 64, "clients": 1, "median": 1.5, "mode": "polling", "against": "polling"})"
                     "\n"));
  EXPECT_EQ(json.find("ratio"), json.rfind("ratio")) << "a ratio to a series without samples is left out";
}

TEST(Report, TakesARatioWithinEachRepetition) {
  Report report("rpc-latency");
  for (int repetition : {0, 1, 2}) report.add(kTheirs, repetition, repetition + 1);
  report.add(kOurs, 0, 2);
  report.add(kOurs, 1, 4);
  report.add(kOurs, 2, 6);
  report.add_ratio(kOurs, kTheirs);
  EXPECT_NE(report.json().find(R"("median": 2, "mode")"), std::string::npos);
}

TEST(Report, ForgetsADroppedRepetition) {
  Report report("rpc-latency");
  report.add(kOurs, 0, 1);
  report.add(kOurs, 1, 100);
  report.drop(1);
  EXPECT_EQ(report.median(kOurs), 1);
}

TEST(Report, TableNamesSizesInWords) {
  Report report("nnti-bandwidth");
  report.add({"memcpy", "memory", "get", 4 << 20, 1, "bandwidth_MBps", "MB/s"}, 0, 12345.6);
  report.note("A sentence.");
  auto table = report.table();
  EXPECT_NE(table.find("4 MiB"), std::string::npos);
  EXPECT_NE(table.find("12346"), std::string::npos);
  EXPECT_NE(table.find("A sentence."), std::string::npos);
}

}  // namespace
}  // namespace bench
