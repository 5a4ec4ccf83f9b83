// SPDX-License-Identifier: BSD-3-Clause
#include "base/setting_names.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

using nessie::doubt_about_key;
using nessie::doubt_about_variable;

/// What stands between backquotes in the first columns of its tables; NAME is written for what the user gives.
std::set<std::string> settings_on_the_page() {
  std::ifstream page(NESSIE_CONFIGURATION_PAGE);
  std::set<std::string> names;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    const auto cell = line.substr(1, line.find('|', 1) - 1);
    const std::regex quoted("`([^`]*)`");
    for (auto it = std::sregex_iterator(cell.begin(), cell.end(), quoted); it != std::sregex_iterator(); ++it)
      names.insert(std::regex_replace((*it)[1].str(), std::regex("NAME"), "*"));
  }
  return names;
}

TEST(SettingNames, AreThoseOfTheConfigurationPage) {
  auto on_page = settings_on_the_page();
  ASSERT_FALSE(on_page.empty()) << NESSIE_CONFIGURATION_PAGE;
  EXPECT_EQ(on_page.erase("log"), 1u) << "which is of the environment only";
  EXPECT_EQ(on_page.erase("nnti.faulty.*"), 1u) << "which has a page of its own";
  std::set<std::string> known;
  for (const auto &name : nessie::setting_names())
    if (!name.starts_with("nnti.faulty.")) known.insert(name);
  EXPECT_EQ(known, on_page);
}

TEST(SettingNames, AVariableIsTheNameInCapitals) {
  EXPECT_EQ(nessie::variable_of("nssi.limit.requests"), "NESSIE_NSSI_LIMIT_REQUESTS");
}

TEST(SettingNames, SettingsAreNotDoubted) {
  for (const auto *key : {"servers", "nssi.timeout", "nssi.pool.fast.threads", "nssi.op.lab.store.put.role"})
    EXPECT_EQ(doubt_about_key(key), "") << key;
  for (const auto *variable : {"NESSIE_SERVERS", "NESSIE_NSSI_TIMEOUT", "NESSIE_NSSI_POOL_FAST_THREADS", "NESSIE_LOG",
                               "NESSIE_CONFIG", "NESSIE_CREDENTIAL"})
    EXPECT_EQ(doubt_about_variable(variable), "") << variable;
}

TEST(SettingNames, WhatIsNearASettingIsDoubted) {
  EXPECT_EQ(doubt_about_key("nssi.timeot"), "there is no setting nssi.timeot; did you mean nssi.timeout?");
  EXPECT_EQ(doubt_about_key("nssl.timeout"), "there is no setting nssl.timeout; did you mean nssi.timeout?");
  EXPECT_EQ(doubt_about_key("nssi.op.work.rol"),
            "there is no setting nssi.op.work.rol; did you mean nssi.op.work.role?");
  EXPECT_EQ(doubt_about_variable("NESSIE_NSSI_TIMEOT"),
            "NESSIE_NSSI_TIMEOT is no setting; did you mean NESSIE_NSSI_TIMEOUT?");
  EXPECT_EQ(doubt_about_variable("NESSIE_SERVER"), "NESSIE_SERVER is no setting; did you mean NESSIE_SERVERS?");
}

TEST(SettingNames, InNessiesGroupsEverythingUnknownIsDoubted) {
  EXPECT_EQ(doubt_about_key("nssi.colour"), "there is no setting nssi.colour");
  EXPECT_EQ(doubt_about_key("nssi.pool.threads"), "there is no setting nssi.pool.threads");
}

TEST(SettingNames, WhatMayBeTheProgramsOwnIsNotDoubted) {
  for (const auto *key : {"lab.depth", "depth", "a"}) EXPECT_EQ(doubt_about_key(key), "") << key;
  for (const auto *variable :
       {"NESSIE_BUILD_DIR", "NESSIE_SERVICE", "NESSIE_CODE", "NESSIE_LIB", "NESSIE_", "NESSIE", "PATH"})
    EXPECT_EQ(doubt_about_variable(variable), "") << variable;
}

TEST(SettingNames, TheLogIsTheEnvironmentsAlone) {
  EXPECT_EQ(doubt_about_key("log"), "log is not read from here; set NESSIE_LOG");
}
