// SPDX-License-Identifier: BSD-3-Clause
// What `nessie slurm` makes of job scripts.
#include "slurm_diff.hpp"
#include "slurm_job.hpp"
#include "slurm_rewrite.hpp"
#include "slurm_shell.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nessie::cli {
namespace {

Rewritten rewritten(const std::string &script) {
  auto result = rewrite(script, "N ");
  EXPECT_TRUE(result.ok()) << script << (result.ok() ? "" : ": " + result.error().message);
  return result.ok() ? *std::move(result) : Rewritten();
}

void expect_text(const std::string &script, const std::string &text) { EXPECT_EQ(rewritten(script).text, text); }

/// Its only command is treated so, and the text stays.
void expect_left(const std::string &script, Treatment treatment, const std::string &why = "") {
  const auto result = rewritten(script);
  EXPECT_EQ(result.text, script);
  ASSERT_EQ(result.commands.size(), 1u) << script;
  EXPECT_EQ(result.commands.front().treatment, treatment) << script << ": " << result.commands.front().why;
  EXPECT_NE(result.commands.front().why.find(why), std::string::npos) << result.commands.front().why;
}

void expect_nothing(const std::string &script) {
  const auto result = rewritten(script);
  EXPECT_EQ(result.text, script);
  EXPECT_TRUE(result.commands.empty()) << script << ": " << result.commands.front().why;
}

TEST(SlurmScript, OfAComputingCentreIsRewritten) {
  expect_text(
      "#!/bin/bash -l\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=48\n\nmodule purge; module load openmpi\n"
      "export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}\ncd $SLURM_SUBMIT_DIR\n\nsrun --cpu-bind=cores \\\n     "
      "./wrf.exe\n",
      "#!/bin/bash -l\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=48\n\nmodule purge; module load openmpi\n"
      "export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}\ncd $SLURM_SUBMIT_DIR\n\nN srun --cpu-bind=cores \\\n     "
      "./wrf.exe\n");
}

TEST(SlurmScript, LaunchersStandInManyPlaces) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"mpirun -np $SLURM_NTASKS pw.x -inp a.in > a.out", "N mpirun -np $SLURM_NTASKS pw.x -inp a.in > a.out"},
      {"/opt/slurm/bin/srun ./sim", "N /opt/slurm/bin/srun ./sim"},
      {"X=1 Y='a b' srun ./sim", "X=1 Y='a b' N srun ./sim"},
      {"time srun ./sim", "time N srun ./sim"},
      {"/usr/bin/time -v srun ./sim", "/usr/bin/time -v N srun ./sim"},
      {"exec srun ./sim", "exec N srun ./sim"},
      {"timeout -s INT 10m mpiexec ./sim", "timeout -s INT 10m N mpiexec ./sim"},
      {"env -u A B=1 srun ./sim", "env -u A B=1 N srun ./sim"},
      {"if (cd a && srun ./sim); then :; fi", "if (cd a && N srun ./sim); then :; fi"},
      {"for i do srun ./a $i; done", "for i do N srun ./a $i; done"},
      {"cd a && srun ./sim || exit 1", "cd a && N srun ./sim || exit 1"},
      {"if ! srun ./sim; then echo bad; fi", "if ! N srun ./sim; then echo bad; fi"},
      {"while read x; do srun ./sim $x; done < list", "while read x; do N srun ./sim $x; done < list"},
      {"for i in $(seq 3); do\n  mpirun ./a $i\ndone", "for i in $(seq 3); do\n  N mpirun ./a $i\ndone"},
      {"for ((i = 0; i < 3; i++)); do srun ./a; done", "for ((i = 0; i < 3; i++)); do N srun ./a; done"},
      {"(cd a; srun ./sim) &", "(cd a; N srun ./sim) &"},
      {"{ srun ./sim; } 2>&1 | tee log", "{ N srun ./sim; } 2>&1 | tee log"},
      {"out=$(srun ./sim)", "out=$(N srun ./sim)"},
      {"out=`srun ./sim`", "out=`N srun ./sim`"},
      {"echo \"it says $(srun ./sim)\"", "echo \"it says $(N srun ./sim)\""},
      {"f() {\n  srun ./sim\n}\nf", "f() {\n  N srun ./sim\n}\nf"},
      {"function f { srun ./sim; }", "function f { N srun ./sim; }"},
      {"case $1 in\n  a|b) srun ./a ;;\n  (*) srun ./b\nesac",
       "case $1 in\n  a|b) N srun ./a ;;\n  (*) N srun ./b\nesac"},
      {"> out srun ./sim", "> out N srun ./sim"},
      {"srun ./sim &> log", "N srun ./sim &> log"},
      {"yes | srun ./sim", "yes | N srun ./sim"},
      {"diff <(srun ./a) <(srun ./b)", "diff <(N srun ./a) <(N srun ./b)"},
      {"\"srun\" ./sim", "N \"srun\" ./sim"},
      {"srun ./sim # srun", "N srun ./sim # srun"},
      {"srun ./a\r\nsrun ./b\r\n", "N srun ./a\r\nN srun ./b\r\n"},
      {"[[ $a =~ ^(x|y)$ ]] && srun ./sim", "[[ $a =~ ^(x|y)$ ]] && N srun ./sim"},
      {"shopt -s extglob; rm -f !(a|b); srun ./sim", "shopt -s extglob; rm -f !(a|b); N srun ./sim"},
      {"mpirun -n 4 ./a : -n 2 ./b", "N mpirun -n 4 ./a : -n 2 ./b"},
      {"srun --het-group=0 -n 1 ./a : --het-group=1 ./b", "N srun --het-group=0 -n 1 ./a : --het-group=1 ./b"},
      {"srun -n 6 --multi-prog apps.conf", "N srun -n 6 --multi-prog apps.conf"},
      {"srun --export=ALL,A=1 ./sim", "N srun --export=ALL,A=1 ./sim"}};
  for (const auto &[script, text] : pairs) expect_text(script, text);
}

TEST(SlurmScript, VariablesThatHoldALauncher) {
  expect_text("RUN=\"mpirun -np 4\"\n$RUN ./sim", "RUN=\"mpirun -np 4\"\nN $RUN ./sim");
  expect_text("export RUN=\"srun -n $N --mpi=pmix\"\n${RUN} ./sim",
              "export RUN=\"srun -n $N --mpi=pmix\"\nN ${RUN} ./sim");
  expect_text("cmd=(srun -n 4 './a b')\n\"${cmd[@]}\" x", "cmd=(srun -n 4 './a b')\nN \"${cmd[@]}\" x");
  expect_text("$MPIRUN -np 4 ./sim", "N $MPIRUN -np 4 ./sim");
  expect_text("if a; then R=; else R=srun; fi\n$R ./sim", "if a; then R=; else R=srun; fi\nN $R ./sim");
  expect_left("G=\"srun -N1 -n1\"\n$G ./mesh", Treatment::kLeft, "one process");
  expect_nothing("CMD=./sim\n$CMD a\n$OTHER b");
}

TEST(SlurmScript, WhatGainsNothingIsLeft) {
  expect_left("srun hostname", Treatment::kLeft, "hostname");
  expect_left("nodes=$(srun -N 2 hostname -s | sort)", Treatment::kLeft, "hostname");
  expect_left("srun -N 1 -n 1 ./prepare", Treatment::kLeft, "one process");
  expect_left("srun --ntasks=1 ./prepare &", Treatment::kLeft, "one process");
  expect_left("srun -J mesh -e err -W 9 -n 1 ./prepare", Treatment::kLeft, "one process");
  expect_left("mpiexec --omca a b -q -n 1 ./prepare", Treatment::kLeft, "one process");
  expect_left("srun --pty bash -i", Treatment::kLeft, "terminal");
  expect_left("srun --version", Treatment::kLeft, "no program");
  expect_left("cat > sub.sh <<EOF\nsrun ./sim\nEOF\n", Treatment::kLeft, "here-document");
}

TEST(SlurmScript, WhatIsNoCommandIsNotTouched) {
  for (const char *script :
       {"# srun ./sim", "echo srun ./sim", "echo 'srun ./sim; mpirun b'", "which mpirun", "command -v srun",
        "module load mpirun", "a=srun.log", "tail srun.out", "[ -x /usr/bin/srun ]", "x=${a:-srun}", "echo a#srun b",
        "cat <<< 'srun'", "SRUN_OPTS=-n4", "echo \"a\\\"; srun b\"", "echo $((srun + 1))"})
    expect_nothing(script);
}

TEST(SlurmScript, WhatRunsUnderNessieAlreadyStays) {
  expect_left("nessie run -- srun ./sim", Treatment::kAlready);
  expect_left("exec /opt/bin/nessie run -m direct -- mpirun -n 4 ./sim", Treatment::kAlready);
}

TEST(SlurmScript, WhatCannotBeToldIsSaid) {
  expect_left("eval \"srun ./sim\"", Treatment::kDoubtful, "eval");
  expect_left("bash -c 'mpirun -n 4 ./sim'", Treatment::kDoubtful, "bash");
  expect_left("ls | xargs -n 1 srun ./sim", Treatment::kDoubtful, "xargs");
  expect_left("python drive.py --launcher srun", Treatment::kDoubtful, "python");
  expect_left("srun --export=NONE ./sim", Treatment::kDoubtful, "--export");
  expect_left("srun --export=A,B ./sim", Treatment::kDoubtful, "--export");
  expect_left("srun apptainer exec a.sif ./sim", Treatment::kDoubtful, "container");
  expect_left("singularity exec a.sif mpirun ./sim", Treatment::kDoubtful, "singularity");
  expect_left("aprun -n 4 ./sim", Treatment::kDoubtful, "aprun");
  const auto of_function = rewritten("srun() { command srun --mpi=pmix \"$@\"; }\nsrun ./sim\n");
  EXPECT_EQ(of_function.text, "srun() { command N srun --mpi=pmix \"$@\"; }\nsrun ./sim\n");
  EXPECT_EQ(of_function.commands.back().treatment, Treatment::kLeft);
}

TEST(SlurmScript, ACommandInTheBackgroundIsToldOf) {
  const auto result = rewritten("srun -n 4 ./a &\nsrun -n 4 ./b &\nwait");
  ASSERT_EQ(result.commands.size(), 2u);
  EXPECT_EQ(result.commands.back().line, 2u);
  EXPECT_NE(result.commands.front().why.find("servers of its own"), std::string::npos);
  EXPECT_FALSE(result.takes_all_tasks);
}

TEST(SlurmScript, WhatDoesNotEndIsRefusedWithItsLine) {
  for (const char *rest : {"echo 'a", "echo \"a", "(srun ./a", "x=$(srun ./a", "echo ${a", "echo `a",
                           "case a in b) srun ./a", "[[ a", "a=(b", ")"}) {
    const auto result = rewrite(std::string("#!/bin/sh\nsrun ./b\n") + rest, "N ");
    ASSERT_FALSE(result.ok()) << rest;
    EXPECT_TRUE(result.error().message.starts_with("line 3: ")) << result.error().message;
  }
  EXPECT_FALSE(rewrite("#!/bin/sh\n" + std::string(5000, '(') + "srun ./a", "N ").ok());
}

TEST(SlurmScript, OfAnotherLanguageIsRefused) {
  EXPECT_FALSE(rewrite("#!/bin/csh\nsrun ./sim\n", "N ").ok());
  EXPECT_FALSE(rewrite("#!/usr/bin/env python3\n", "N ").ok());
  EXPECT_FALSE(rewrite(std::string("srun\0a", 6), "N ").ok());
  EXPECT_TRUE(rewrite("#!/usr/bin/env -S bash -l\nsrun ./sim\n", "N ").ok());
}

TEST(SlurmDirectives, AreReadUpToTheFirstCommand) {
  const auto request = read_directives(
      "#!/bin/bash\n#SBATCH --ntasks=8 --mem=4G\n#SBATCH -N 2 # two\n\n#SBATCH hetjob\n#SBATCH -n 4\necho\n#SBATCH -n "
      "9\n");
  EXPECT_EQ(request.ntasks, "8");
  EXPECT_EQ(request.nodes, "2");
  EXPECT_EQ(request.components, 2);
  EXPECT_EQ(request.line, 3u);
  EXPECT_TRUE(request.has_memory);
}

TEST(SlurmDirectives, AreAdvisedOn) {
  const auto advice = [](const std::string &script, bool all) { return advise(read_directives(script), all).front(); };
  EXPECT_NE(advice("#SBATCH -n8\n", true).find("--ntasks=9; and --ntasks=8 behind srun"), std::string::npos);
  EXPECT_NE(advice("#SBATCH --ntasks-per-node=48\n", false).find("--ntasks-per-node=49"), std::string::npos);
  EXPECT_EQ(advice("#SBATCH --ntasks-per-node=48\n", false).find("behind srun"), std::string::npos);
  EXPECT_NE(advice("#SBATCH --exclusive -n 8\n", true).find("one core free"), std::string::npos);
}

TEST(SlurmDiff, IsThatOfDiff) {
  const std::string before = "a\nb\nc\nd\nsrun x\ne\nf\ng\nh\ni\nj\nk\nl\nsrun y";
  const std::string after = "a\nb\nc\nd\nN srun x\ne\nf\ng\nh\ni\nj\nk\nl\nN srun y";
  EXPECT_EQ(unified_diff(before, after, "a", "b"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n b\n c\n d\n-srun x\n+N srun x\n e\n f\n g\n@@ -11,4 +11,4 @@\n j\n k\n "
            "l\n-srun y\n"
            "\\ No newline at end of file\n+N srun y\n\\ No newline at end of file\n");
  EXPECT_EQ(unified_diff(before, before, "a", "b"), "");
}

}  // namespace
}  // namespace nessie::cli
