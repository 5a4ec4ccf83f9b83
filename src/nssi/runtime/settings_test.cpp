// SPDX-License-Identifier: BSD-3-Clause
// What the configuration says of a runtime, when it starts and while it runs.
#include <gtest/gtest.h>

#include <nssi/drive/settings.hpp>
#include <nssi/statistics.hpp>
#include <nssi/testing/testing.hpp>

#include <fstream>

namespace nssi::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A configuration file that NESSIE_CONFIG names.
class ConfigFile {
 public:
  ConfigFile() {
    const int file = ::mkstemps(path_, 5);
    if (file >= 0) ::close(file);
    ::setenv("NESSIE_CONFIG", path_, 1);
  }
  ~ConfigFile() {
    ::unsetenv("NESSIE_CONFIG");
    ::unlink(path_);
  }
  void write(const std::string &text) { std::ofstream(path_) << text; }

 private:
  char path_[32] = "/tmp/nessie-config-XXXXXX.toml";
};

/// What is written to stderr while it lives, also by other threads.
class WhatIsSaid {
 public:
  WhatIsSaid() {
    const int file = ::mkstemp(path_);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~WhatIsSaid() {
    ::dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
    ::unlink(path_);
  }
  WhatIsSaid(const WhatIsSaid &) = delete;
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  char path_[24] = "/tmp/nessie-said-XXXXXX";
  int stderr_ = ::dup(STDERR_FILENO);
};

class NssiSettings : public ::testing::Test {
 protected:
  RuntimeOptions options() {
    auto options = options_for("inproc", true);
    options.endpoint.config = *nessie::Config::load();
    options.reload_on_hangup = true;
    return options;
  }
  ConfigFile file_;
};

TEST_F(NssiSettings, OnHangup_TheFileIsReadAnew) {
  file_.write("[nssi]\nlimit.requests = 1\n");
  ServiceThread server(options());
  auto client = open_runtime(options_for("inproc", false));
  const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
  auto first = client->call(at(peer), kBlock, {});
  auto held = client->call(at(peer), kCount, {});
  EXPECT_EQ(held.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut);
  file_.write("[nssi]\nlimit.requests = many\n");
  ::kill(::getpid(), SIGHUP);
  EXPECT_EQ(held.wait(Deadline::in(milliseconds(20))).code(), Code::kTimedOut)
      << "a file that cannot be read changes it";
  file_.write("[nssi]\nlimit.requests = 2\n");
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(held.wait().ok());
  server.service->release_blocked();
  EXPECT_TRUE(first.wait().ok());
}

TEST_F(NssiSettings, WhatIsTakenOutOfTheFile_IsAsTheProgramSays) {
  file_.write("[nssi.op.test2]\nrole = \"operator\"\n[nssi.op.restricted]\nrole = \"user\"\n");
  ServiceThread server(options(), [](Runtime &runtime) {
    Operation restricted{kInterface, 0, 200, "restricted", HandlerKind::kShort, [](Request &r) { (void)r.reply(); }};
    restricted.role = Role::kOperator;
    EXPECT_TRUE(runtime.add_operation(std::move(restricted)).ok());
  });
  auto client = open_runtime(options_for("inproc", false));
  const auto peer = *client->connect(server.runtime->url(), Deadline::in(seconds(20)));
  const auto outcome = [&](OpCode op) { return client->call(at(peer), op, {}).wait().code(); };
  EXPECT_EQ(outcome(kNoop), Code::kRefused);
  EXPECT_EQ(outcome(200), Code::kOk);
  file_.write("");
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(eventually([&] { return outcome(kNoop) == Code::kOk; }));
  EXPECT_EQ(outcome(200), Code::kRefused);
}

TEST_F(NssiSettings, AFileOfWhichOneSettingCannotBeRead_ChangesNone) {
  file_.write("[nssi]\nlimit.requests = 7\n[mine]\nsetting = 1\n");
  ServiceThread server(options());
  const auto mine = [&] { return server.runtime->setting("mine.setting").value_or(""); };
  file_.write("[nssi]\nlimit.requests = \"many\"\n[mine]\nsetting = 2\n");
  {
    const WhatIsSaid said;
    ::kill(::getpid(), SIGHUP);
    EXPECT_TRUE(eventually([&] { return said.text().find("stays as it was") != std::string::npos; }));
  }
  EXPECT_EQ(mine(), "1");
  file_.write("[mine]\nsetting = 3\n");
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(eventually([&] { return mine() == "3"; }));
}

TEST_F(NssiSettings, ThatTheProgramDoesNotPassOn_HoldNevertheless) {
  file_.write("[nssi]\nlimit.requests = 7\nreload_on_hangup = true\n");
  ServiceThread server(options_for("inproc", true));
  const auto limit = [&] { return server.runtime->statistics().services.at(0).limits.requests; };
  EXPECT_EQ(limit(), 7u);
  file_.write("[nssi]\nlimit.requests = 8\n");
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(eventually([&] { return limit() == 8; }));
}

TEST_F(NssiSettings, TheCredentialThatTheProgramDoesNotPassOn_HoldsNevertheless) {
  const auto credential = nessie::Credential::generate();
  file_.write("credential = \"" + credential.to_hex() + "\"\n");
  ServiceThread server(options_for("inproc", true));
  const auto connects = [&](const nessie::Credential &its_own) {
    auto options = options_for("inproc", false);
    options.endpoint.credential = its_own;
    return open_runtime(std::move(options))->connect(server.runtime->url(), Deadline::in(seconds(20))).code();
  };
  EXPECT_EQ(connects({}), Code::kOk);
  EXPECT_EQ(connects(credential), Code::kOk);
  EXPECT_EQ(connects(nessie::Credential::generate()), Code::kRefused);
}

TEST_F(NssiSettings, OneRuntimeOfAProcessHearsHangups) {
  auto first = Runtime::open(options());
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Runtime::open(options()).code(), Code::kExists);
  first->reset();
  EXPECT_TRUE(Runtime::open(options()).ok());
}

TEST_F(NssiSettings, ACountThatHasAUnitIsToldAsNoCount) {
  for (const auto *key : {"limit.requests", "limit.requests_of_caller", "trace.every", "pool.fast.threads"}) {
    file_.write("[nssi]\npools = \"fast\"\n" + std::string(key) + " = \"4K\"\n");
    const auto settings = read_settings(*nessie::Config::load(), {});
    ASSERT_EQ(settings.code(), Code::kInvalidArgument) << key;
    EXPECT_NE(settings.error().message.find("line 3) is '4K'; expected a number"), std::string::npos)
        << settings.error().message;
  }
}

TEST_F(NssiSettings, WhatCannotBeReadIsRefusedWhole) {
  auto runtime = open_runtime(options());
  ASSERT_TRUE(runtime->add_operation({kInterface, 0, 1, "work", HandlerKind::kFiber, [](Request &) {}}).ok());
  nessie::Config config;
  config.set("nssi.op.work.priority", "high");
  EXPECT_TRUE(runtime->reconfigure(config).ok());
  config.set("nssi.op.work.priority", "urgent");
  EXPECT_EQ(runtime->reconfigure(config).code(), Code::kInvalidArgument);
  nessie::Config limits;
  limits.set("nssi.limit.bytes", "a lot");
  EXPECT_EQ(runtime->reconfigure(limits).code(), Code::kInvalidArgument);
  file_.write("[nssi]\nlimit.bytes = \"a lot\"\n");
  EXPECT_EQ(Runtime::open([&] {
              auto other = options();
              other.reload_on_hangup = false;
              return other;
            }())
                .code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace nssi::testing
