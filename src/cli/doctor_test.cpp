// SPDX-License-Identifier: BSD-3-Clause
#include "doctor.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <limits>

namespace nessie::cli {
namespace {

constexpr std::uint64_t kMiB = 1 << 20, kUnlimited = std::numeric_limits<std::uint64_t>::max();
const Mpi kOpenMpi{MpiFlavour::kOpenMpi, "4.1.4"}, kMpich{MpiFlavour::kMpich, "4.0.2"};

/// Who is told that something is not well is told what to type, and nobody else.
void expect(const Diagnosis &finding, Health verdict, const std::string &words, const std::string &mend = "") {
  EXPECT_EQ(finding.verdict, verdict) << finding.sentence;
  EXPECT_NE(finding.sentence.find(words), std::string::npos) << finding.sentence;
  EXPECT_NE(finding.mend.find(mend), std::string::npos) << finding.mend;
  EXPECT_EQ(finding.mend.empty(), verdict == Health::kOk) << finding.mend;
  EXPECT_FALSE(finding.name.empty());
}

TEST(Doctor, SaysHowManyFilesAreFew) {
  expect(judge_open_files({1024, 4096}), Health::kOk, "1024 at once, 4096 if");
  expect(judge_open_files({RLIM_INFINITY, RLIM_INFINITY}), Health::kOk, "unlimited");
  expect(judge_open_files({256, 1 << 20}), Health::kWarning, "256", "ulimit -n 4096");
  expect(judge_open_files({64, 2000}), Health::kProblem, "64", "ulimit -n 2000");
  expect(judge_open_files({64, 64}), Health::kProblem, "64", "limits.conf");
}

TEST(Doctor, CaresForLockedMemoryOnlyWhereANetworkLocksIt) {
  expect(judge_locked_memory({64 << 10, 64 << 10}, false), Health::kOk, "64 KiB");
  expect(judge_locked_memory({RLIM_INFINITY, RLIM_INFINITY}, true), Health::kOk, "unlimited");
  expect(judge_locked_memory({8 * kMiB, RLIM_INFINITY}, true), Health::kWarning, "8 MiB", "ulimit -l unlimited");
  expect(judge_locked_memory({8 * kMiB, 8 * kMiB}, true), Health::kWarning, "8 MiB", "limits.conf");
}

TEST(Doctor, TellsASmallSharedMemoryFromAFullOne) {
  expect(judge_shared_memory(Room{1024 * kMiB, 1000 * kMiB}), Health::kOk, "1000 MiB of 1 GiB");
  expect(judge_shared_memory(Room{64 * kMiB, 64 * kMiB}), Health::kWarning, "64 MiB of", "--shm-size");
  expect(judge_shared_memory(Room{kMiB, kMiB}), Health::kProblem, "SIGBUS", "--shm-size");
  expect(judge_shared_memory(Room{1024 * kMiB, kMiB}), Health::kProblem, "SIGBUS", "nessie clean");
  expect(judge_shared_memory(std::nullopt), Health::kWarning, "not there", "mount -t tmpfs");
}

TEST(Doctor, BelievesWhatTryingCrossMemoryAttachShowed) {
  expect(judge_cross_memory_attach("works", 1), Health::kOk, "can read");
  expect(judge_cross_memory_attach("does not work: x", 1), Health::kWarning, "does not work: x", "ptrace_scope=0");
  expect(judge_cross_memory_attach("does not work: x", 0), Health::kWarning, "longer", "SYS_PTRACE");
  expect(judge_cross_memory_attach("does not work: x", std::nullopt), Health::kWarning, "longer", "SYS_PTRACE");
}

TEST(Doctor, WantsProcAndALoopback) {
  expect(judge_proc(true), Health::kOk, "mounted");
  expect(judge_proc(false), Health::kProblem, "go native", "mount -t proc");
  expect(judge_loopback(true, true), Health::kOk, "::1 can");
  expect(judge_loopback(true, false), Health::kOk, "::1 cannot");
  expect(judge_loopback(false, true), Health::kProblem, "127.0.0.1", "ip link set lo up");
}

TEST(Doctor, SaysWhatAHostNameIs) {
  expect(judge_host_name("node1", {"10.0.0.1", "::1"}), Health::kOk, "node1 is 10.0.0.1, ::1");
  expect(judge_host_name("node1", {}), Health::kWarning, "node1 does not resolve", "127.0.1.1 node1");
}

TEST(Doctor, FindsTheVersionInWhatAProgramPrints) {
  EXPECT_EQ(first_version_in("mpiexec (OpenRTE) 4.1.4\n\nReport bugs"), "4.1.4");
  EXPECT_EQ(first_version_in("HYDRA build details:\n    Version:   4.0\n"), "4.0");
  EXPECT_EQ(first_version_in("1.12.3 of February 21, 2022"), "1.12.3");
  EXPECT_EQ(first_version_in("none at all"), "");
}

TEST(Doctor, WantsTheLauncherOfTheMpiThatNessieWasBuiltFor) {
  expect(judge_launcher({"/usr/bin/mpiexec", kOpenMpi}, kOpenMpi, false), Health::kOk, "Open MPI 4.1.4");
  expect(judge_launcher({"/usr/bin/mpiexec", {MpiFlavour::kOpenMpi, "4.1.6"}}, kOpenMpi, false), Health::kOk, "4.1.6");
  expect(judge_launcher({"/usr/bin/mpiexec", {MpiFlavour::kOpenMpi, ""}}, kOpenMpi, false), Health::kOk, "Open MPI");
  expect(judge_launcher({"/opt/mpiexec", {MpiFlavour::kOpenMpi, "5.0.1"}}, kOpenMpi, false), Health::kWarning, "5.0.1");
  expect(judge_launcher({"/opt/mpiexec", {}}, kOpenMpi, false), Health::kWarning, "does not know", "--version");
  expect(judge_launcher({"/opt/mpiexec", kMpich}, kOpenMpi, false), Health::kProblem, "MPICH 4.0.2", "mpiexec.openmpi");
  expect(judge_launcher({"/opt/mpiexec", kOpenMpi}, kMpich, false), Health::kProblem, "go native", "mpiexec.mpich");
}

TEST(Doctor, MissesALauncherUnlessSlurmHasOne) {
  expect(judge_launcher({}, kOpenMpi, false), Health::kProblem, "none is in PATH", "export PATH");
  expect(judge_launcher({}, kOpenMpi, true), Health::kWarning, "srun is", "srun");
}

TEST(Doctor, WantsThePnetcdfThatNessieWasBuiltFor) {
  expect(judge_pnetcdf({"/lib/libpnetcdf.so", "1.12.3 of 2022", "1.12.3"}), Health::kOk, "/lib/libpnetcdf.so");
  expect(judge_pnetcdf({"/opt/libpnetcdf.so", "1.13.0 of 2024", "1.12.3"}), Health::kProblem, "1.13.0", "./dev build");
}

TEST(Doctor, TakesAnMpiOfTheSameSeries) {
  expect(judge_mpi_library({"/lib/libmpi.so", "Open MPI v4.1.6, of Debian", "4.1.4"}), Health::kOk, "v4.1.6");
  expect(judge_mpi_library({"/opt/libmpi.so", "Open MPI v4.2.0", "4.1.4"}), Health::kWarning, "4.1.4", "./dev build");
}

TEST(Doctor, KnowsThatOpenMpiStartsNothingAsRoot) {
  expect(judge_root(false, MpiFlavour::kOpenMpi, false), Health::kOk, "not root");
  expect(judge_root(true, MpiFlavour::kMpich, false), Health::kOk, "does not mind");
  expect(judge_root(true, MpiFlavour::kOpenMpi, true), Health::kOk, "is meant");
  expect(judge_root(true, MpiFlavour::kOpenMpi, false), Health::kProblem, "root", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
}

TEST(Doctor, WantsSharedMemoryAndWhatAFastNetworkCanDo) {
  const nnti::TransportInfo shm{"shm", true, "mapped"}, no_shm{"shm", false, "no memfd"}, tcp{"tcp", true, "TCP"},
      slow{"ofi", true, "it has nothing but TCP here"}, fast{"ofi", true, "verbs"};
  expect(judge_transports({shm, slow, tcp}, false), Health::kOk, "shm, ofi, tcp are available; between nodes");
  expect(judge_transports({shm, fast, tcp}, true), Health::kOk, "more than TCP");
  expect(judge_transports({shm, fast, tcp}, false), Health::kOk, "more than TCP");
  expect(judge_transports({shm, fast}, false), Health::kOk, "no network to other nodes");
  expect(judge_transports({shm, slow, tcp}, true), Health::kWarning, "RDMA", "fi_info");
  expect(judge_transports({no_shm, fast}, true), Health::kProblem, "not shm", "nessie info");
}

TEST(Doctor, SaysWhereSlurmIs) {
  expect(judge_slurm("", ""), Health::kOk, "not here");
  expect(judge_slurm("/usr/bin/srun", ""), Health::kOk, "outside");
  expect(judge_slurm("/usr/bin/srun", "17"), Health::kOk, "job 17");
  expect(judge_slurm("", "17"), Health::kWarning, "job 17", "srun");
}

TEST(Doctor, WantsATemporaryFolderWithAShortName) {
  expect(judge_temporary_folder("/tmp", 0), Health::kOk, "/tmp");
  expect(judge_temporary_folder(std::string(64, 'x'), 0), Health::kOk, "x");
  expect(judge_temporary_folder(std::string(65, 'x'), 0), Health::kWarning, "65 bytes", "export TMPDIR=/tmp");
  expect(judge_temporary_folder("/no/such", ENOENT), Health::kProblem, "No such file", "export TMPDIR=/tmp");
  expect(judge_temporary_folder("/tmp", EACCES), Health::kProblem, "Permission denied", "chmod 1777 /tmp");
}

TEST(Doctor, SeesThatAControlGroupGivesLessTimeThanThereAreProcessors) {
  expect(judge_processors(8, 8, std::nullopt), Health::kOk, "8, all");
  expect(judge_processors(2, 8, 2.0), Health::kOk, "2 of the machine's 8");
  expect(judge_processors(8, 8, 1.5), Health::kWarning, "1.5", "mpiexec -n 1");
  expect(judge_processors(8, 8, 0.5), Health::kWarning, "0.5", "mpiexec -n 1");
}

TEST(Doctor, SaysWhatMemoryThereIsForServers) {
  expect(judge_memory({4096 * kMiB, kUnlimited, kUnlimited, kUnlimited}), Health::kOk, "4 GiB are free");
  expect(judge_memory({512 * kMiB, 512 * kMiB, kUnlimited, kUnlimited}), Health::kOk, "control group has 512 MiB left");
  expect(judge_memory({100 * kMiB, 100 * kMiB, kUnlimited, kUnlimited}), Health::kWarning, "100 MiB", "--memory");
  expect(judge_memory({4096 * kMiB, kUnlimited, kMiB, kUnlimited}), Health::kProblem, "go native",
         "ulimit -v unlimited");
  expect(judge_memory({512 * kMiB, kUnlimited, kUnlimited, 512 * kMiB}), Health::kOk, "Slurm has allocated 512 MiB");
}

TEST(Doctor, PassesOnWhatIsWrongWithTheInstallationAndTheSettings) {
  const Error error{Code::kNotFound, "nessied is not in /opt/bin"};
  expect(judge_installation({}), Health::kOk, "are there");
  expect(judge_installation(error), Health::kProblem, "nessied is not in", "./dev build");
  expect(judge_settings({}), Health::kOk, "read");
  expect(judge_settings(error), Health::kProblem, "nessied", "NESSIE_CONFIG");
}

}  // namespace
}  // namespace nessie::cli
