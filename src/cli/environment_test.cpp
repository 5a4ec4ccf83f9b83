// SPDX-License-Identifier: BSD-3-Clause
#include "environment.hpp"

#include <gtest/gtest.h>

namespace nessie::cli {
namespace {

TEST(Environment, AppendPutsTheValueAtTheEndOnce) {
  Environment environment;
  environment.append("LIST", "b", ':');
  environment.append("LIST", "a", ':');
  environment.append("LIST", "b", ':');
  EXPECT_EQ(environment.get("LIST"), "b:a");
}

TEST(Environment, EnvpEndsWithANullPointer) {
  Environment environment;
  environment.set("A", "1");
  const auto envp = environment.to_envp();
  ASSERT_EQ(envp.size(), 2u);
  EXPECT_STREQ(envp[0], "A=1");
  EXPECT_EQ(envp[1], nullptr);
}

TEST(PutInFront, StandsBehindTheUsersTools_SoThatTheySeeTheProgramsCalls) {
  Environment environment;
  environment.set("LD_PRELOAD", "libother.so");
  put_in_front({"/lib/ours.so", {"shm://a;ofi://b", "shm://c"}, "secret"}, environment);
  EXPECT_EQ(environment.get("LD_PRELOAD"), "libother.so:/lib/ours.so");
  EXPECT_EQ(environment.get("NESSIE_SERVERS"), "shm://a;ofi://b shm://c");
  EXPECT_EQ(environment.get("NESSIE_CREDENTIAL"), "secret");
  EXPECT_FALSE(environment.get("OMPI_MCA_mca_base_env_list"));
}

TEST(PutInFront, KeepsLibfabricFromCatchingTheProgramsCrashes) {
  Environment environment;
  put_in_front({"/lib/ours.so", {"shm://a"}, "secret"}, environment);
  EXPECT_EQ(environment.get("IPATH_NO_BACKTRACE"), "1");
}

TEST(PutInFront, LetsAProgramStartWhoseSanitizerWantsToBeFirst) {
  Environment environment;
  environment.set("ASAN_OPTIONS", "detect_leaks=0");
  put_in_front({"/lib/ours.so", {"shm://a"}, "secret"}, environment);
  EXPECT_EQ(environment.get("ASAN_OPTIONS"), "detect_leaks=0:verify_asan_link_order=0");
}

TEST(KeepSharedMemoryIn, RespectsTheUsersChoice) {
  Environment environment;
  environment.set("OMPI_MCA_btl_vader_backing_directory", "/mine");
  keep_shared_memory_in("/dev/shm/x", environment);
  EXPECT_EQ(environment.get("OMPI_MCA_btl_vader_backing_directory"), "/mine");
  EXPECT_EQ(environment.get("OMPI_MCA_btl_sm_backing_directory"), "/dev/shm/x");
  EXPECT_EQ(environment.get("OMPI_MCA_orte_tmpdir_base"), "/dev/shm/x");
}

TEST(MakeSingleton, ForgetsTheLauncherAndWhatIsPreloaded) {
  Environment environment;
  environment.set("OMPI_COMM_WORLD_RANK", "3");
  environment.set("PMIX_RANK", "3");
  environment.set("OMPI_MCA_io", "romio321");
  environment.set("LD_PRELOAD", "/lib/ours.so:libasan.so");
  make_singleton("/run/x", environment);
  EXPECT_FALSE(environment.get("OMPI_COMM_WORLD_RANK"));
  EXPECT_FALSE(environment.get("PMIX_RANK"));
  EXPECT_EQ(environment.get("OMPI_MCA_io"), "romio321");
  EXPECT_FALSE(environment.get("LD_PRELOAD"));
  EXPECT_EQ(environment.get("OMPI_MCA_orte_tmpdir_base"), "/run/x");
}

}  // namespace
}  // namespace nessie::cli
