// SPDX-License-Identifier: BSD-3-Clause
#include "base/setting_names.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

using nessie::doubt_about_key;
using nessie::doubt_about_variable;

TEST(SettingNames, AreAllDeclaredOnce_WithTheirMeaning) {
  std::set<std::string> names;
  for (const auto &setting : nessie::settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name << " is declared twice";
    EXPECT_STRNE(setting.meaning, "") << setting.name;
  }
  for (const auto *name : {"credential", "nnti.spin_us", "nssi.op.NAME.pool", "staging.memory", "run.linger"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(nessie::setting_names().size(), names.size());
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
