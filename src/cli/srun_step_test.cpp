// SPDX-License-Identifier: BSD-3-Clause
#include "srun_step.hpp"

#include "testing/folder_case.hpp"

#include <base/file.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace nessie::cli {
namespace {

using Line = std::vector<std::string>;

class SrunStep : public FolderCase {
 protected:
  void SetUp() override {
    FolderCase::SetUp();
    make_launchers();
    make_program("other");
    environment_.set("SLURM_JOB_ID", "7");
    environment_.set("SLURMD_NODENAME", "a");
  }

  Result<Line> step(const Line &command) {
    return step_with_services(command, places_, {"rank", "agent"}, folder_->path(), environment_,
                              [this](const Line &words) -> Result<std::string> {
                                asked_ = words;
                                return answer_;
                              });
  }
  std::string programs() { return *read_file(folder_->file("programs.conf")); }
  std::string hosts() { return *read_file(folder_->file("ranks.hosts")); }
  Line words_of_step(const Line &options, int nodes, int per_node, int ranks) const {
    Line words{"srun"};
    words.insert(words.end(), options.begin(), options.end());
    for (const auto &word : {"--nodelist=" + folder_->file("ranks.hosts"), "--nodes=" + std::to_string(nodes),
                             std::string("--distribution=arbitrary"), "--ntasks-per-node=" + std::to_string(per_node),
                             "--ntasks=" + std::to_string(ranks), std::string("--overcommit"),
                             std::string("--multi-prog"), folder_->file("programs.conf")})
      words.push_back(word);
    return words;
  }

  std::vector<ServerPlace> places_ = {{0, "a", true, ""}, {1, "c", false, ""}};
  std::string answer_ =
      "srun: a warning\nnessie-rank 2 0 b\nnessie-rank 0 0 a\n2: nessie-rank 1 0 a\nnessie-rank 3 0 b\n";
  Line asked_;
};

TEST_F(SrunStep, LeavesTheProgramsRanksWhereSrunPutsThem) {
  const auto line = step({"srun", "--mpi=pmix", "-n", "4", "-N2", "-m", "cyclic", "sim", "x"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line, words_of_step({"--mpi=pmix"}, 3, 2, 6));
  EXPECT_EQ(hosts(), "a\na\nb\nb\na\nc\n");
  EXPECT_EQ(programs(), "4-5 rank \\\nagent\n0-3 sim \\\nx\n");
  EXPECT_EQ(Line(asked_.begin(), asked_.begin() + 7), (Line{"srun", "--mpi=pmix", "-n", "4", "-N2", "-m", "cyclic"}));
}

TEST_F(SrunStep, OfSeveralPrograms_IsOneWithAllOfThem) {
  answer_ = "nessie-rank 0 0 a\nnessie-rank 1 0 a\nnessie-rank 2 1 b\n";
  const auto line = step({"srun", "-l", "-n", "2", "sim", "x", ":", "-n", "1", "-l", "other"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line, words_of_step({"-l"}, 3, 1, 5));
  EXPECT_EQ(programs(), "3-4 rank \\\nagent\n0-1 sim \\\nx\n2-2 other\n");
  EXPECT_EQ(std::ranges::count(asked_, ":"), 1);
}

TEST_F(SrunStep, OfProgramsWithOptionsOfTheirOwn_IsRefused) {
  EXPECT_EQ(step({"srun", "-n", "2", "sim", ":", "-n", "1", "--mem", "4G", "other"}).code(), Code::kUnsupported);
  EXPECT_NE(step({"srun", "-n", "2", "sim", ":", "-c", "2", "other"}).error().message.find("-c 2"), std::string::npos);
}

TEST_F(SrunStep, KeepsTheUsersFile) {
  const auto file = make_file("my.conf", "# mine\n0-1 sim \\\n0-5\n* other 'a b'");
  const auto line = step({"srun", "-n", "4", "--multi-prog", file});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line, words_of_step({}, 3, 2, 6));
  EXPECT_EQ(programs(), "4-5 rank \\\nagent\n# mine\n0-1 sim \\\n0-5\n* other 'a b'");
  const auto asks = *read_file(folder_->file("seats.conf"));
  EXPECT_TRUE(asks.starts_with("0-1 sh \\\n-c")) << asks;
  EXPECT_NE(asks.find("\n* sh"), std::string::npos) << asks;
  EXPECT_EQ(step({"srun", "-n", "4", "--multi-prog", file, "x"}).code(), Code::kUnsupported);
  EXPECT_EQ(step({"srun", "-n", "4", "--multi-prog", file + ".absent"}).code(), Code::kInvalidArgument);
}

TEST_F(SrunStep, TellsWordsAsSrunReadsThem) {
  ASSERT_TRUE(step({"srun", "-n", "4", "sim", "a b", "it's", "100%", "c\\d"}));
  EXPECT_NE(programs().find("sim \\\na\\ b \\\nit\\'s \\\n100\\% \\\nc\\\\d\n"), std::string::npos) << programs();
  EXPECT_EQ(step({"srun", "-n", "4", "sim", ""}).code(), Code::kInvalidArgument);
  EXPECT_EQ(step({"srun", "-n", "4", "sim", "a\nb"}).code(), Code::kInvalidArgument);
  Line many{"srun", "sim"};
  many.resize(200, "x");
  EXPECT_EQ(step(many).code(), Code::kInvalidArgument);
}

TEST_F(SrunStep, ThatSrunDoesNotStart_IsRefusedWithItsWords) {
  answer_ = "srun: error: Unable to create step\n";
  EXPECT_NE(step({"srun", "-n", "4", "sim"}).error().message.find("Unable to create step"), std::string::npos);
  answer_ = "nessie-rank 0 0 a\nnessie-rank 2 0 a\n";
  EXPECT_EQ(step({"srun", "-n", "3", "sim"}).code(), Code::kInvalidArgument);
}

TEST_F(SrunStep, OutsideOfAJob_HasToBeToldItsRanks) {
  environment_.unset("SLURM_JOB_ID");
  const auto line = step({"srun", "-n", "4", "sim"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line,
            (Line{"srun", "-n", "4", "--ntasks=6", "--overcommit", "--multi-prog", folder_->file("programs.conf")}));
  EXPECT_EQ(programs(), "4-5 rank \\\nagent\n0-3 sim\n");
  EXPECT_EQ(step({"srun", "sim"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(step({"srun", "-n", "1", "sim", ":", "-n", "1", "other"}).code(), Code::kUnsupported);
}

TEST_F(SrunStep, InAHeterogeneousJob_ServicesGetTheFreeComponent) {
  environment_.set("SLURM_HET_SIZE", "3");
  const auto behind = step({"srun", "-n", "2", "sim", ":", "other"});
  ASSERT_TRUE(behind) << behind.error().message;
  EXPECT_EQ(*behind, (Line{"srun", "-n", "2", "sim", ":", "other", ":", "--het-group=2", "--ntasks=2", "--overcommit",
                           "rank", "agent"}));
  const auto before = step({"srun", "--het-group=1-2", "sim"});
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_EQ(*before, (Line{"srun", "--het-group=1-2", "sim", ":", "--het-group=0", "--ntasks=2", "--overcommit", "rank",
                           "agent", "--first"}));
  EXPECT_EQ(step({"srun", "--het-group", "0,2", "sim"}).code(), Code::kUnsupported);
  EXPECT_EQ(step({"srun", "--het-group=2-1", "sim"}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace nessie::cli
