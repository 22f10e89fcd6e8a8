#include "cli/recipe_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/fd.h"
#include "base/text.h"
#include "sys/fs_walk.h"

namespace osb::cli {
namespace {

TEST(RecipeLine, StagesAndTheEndAreUnderstoodAndNothingElse) {
  auto stage = parse_recipe_line("stage 3 8 node");
  ASSERT_TRUE(stage);
  EXPECT_EQ(stage->stage, 3u);
  EXPECT_EQ(stage->stages, 8u);
  EXPECT_EQ(stage->text, "node");
  auto done = parse_recipe_line("done opensandbox/code-interpreter:latest 123 /var/tmp/a folder");
  ASSERT_TRUE(done);
  EXPECT_EQ(done->stage, 0u);
  EXPECT_EQ(done->text, "opensandbox/code-interpreter:latest");
  for (auto line : {"", "stage", "stage 0 8 node", "stage 9 8 node", "stage x 8 node", "stage -1 8 node", "stage 1 999999999999 n",
                    "stage 1 8 ", "stage 1 8 a b", "done", "done  1 2", "Setting up python3 ..."})
    EXPECT_FALSE(parse_recipe_line(line)) << line;
}

TEST(RecipeLine, TheBarFillsWithTheStagesThatAreDone) {
  EXPECT_EQ(recipe_bar({1, 4, "base"}, std::chrono::seconds(5)), "[........................] 1/4 base 5s");
  EXPECT_EQ(recipe_bar({3, 4, "go"}, std::chrono::seconds(5)), "[############............] 3/4 go 5s");
}

class RecipeRunTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    ::setenv("OPENSANDBOX_RECIPES", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("OPENSANDBOX_RECIPES");
    Fd parent(::open(testing::TempDir().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    EXPECT_TRUE(sys::fs::remove_tree(parent.get(), folder_.substr(folder_.rfind('/') + 1)));
  }
  void builder(std::string_view text) {
    std::ofstream(path("build")) << "#!/bin/sh\n" << text;
    ASSERT_EQ(::chmod(path("build").c_str(), 0755), 0);
  }
  std::string path(std::string_view name) const { return cat(folder_, "/", name); }
  Result<RecipeLine> run() {
    return run_recipe({path("build"), {"tool", "--out", "x"}, path("log")}, signals_, [this](const RecipeLine& at, bool again) {
      if (!again) stages_ += cat(at.text, " ");
      if (interrupt_at_ == at.text && !again) ::raise(SIGINT);
    });
  }

  std::string folder_ = testing::TempDir() + "recipeXXXXXX";
  Signals signals_;
  std::string stages_, interrupt_at_;
};

TEST_F(RecipeRunTest, ARunThatEndsWellTellsItsStagesAndItsImage) {
  builder("echo stage 1 2 base; echo noise >&2; echo stage 2 2 pack; echo done tool:latest 5 \"$3\"");
  auto done = run();
  ASSERT_TRUE(done) << done.error().what();
  EXPECT_EQ(done->text, "tool:latest");
  EXPECT_EQ(stages_, "base pack ");
  std::string log;
  std::getline(std::ifstream(path("log")), log);
  EXPECT_EQ(log, "noise");
}

TEST_F(RecipeRunTest, ARunThatFailsNamesTheStage) {
  builder("echo stage 2 3 node; exit 3");
  auto done = run();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().what().find("stage 2 of 3 (node)"), std::string::npos) << done.error().what();
}

TEST_F(RecipeRunTest, WordsTheRecipeDoesNotKnowAreTheCallersMistake) {
  builder("exit 2");
  auto done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), Errc::invalid_argument);
}

TEST_F(RecipeRunTest, ARunThatSaysDoneAndFailsHasFailed) {
  builder("echo done a 1 b; exit 1");
  EXPECT_FALSE(run());
}

TEST_F(RecipeRunTest, ASignalReachesTheRecipeAndItsCleaningIsWaitedFor) {
  builder(cat("trap 'echo clean >", path("cleaned"), "; exit 143' TERM\necho stage 1 2 long\nsleep 60 & wait"));
  interrupt_at_ = "long";
  auto done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().sys(), EINTR);
  EXPECT_EQ(::access(path("cleaned").c_str(), F_OK), 0);
}

TEST_F(RecipeRunTest, RecipesAreTheFoldersWithARecipe) {
  builder("");
  ::mkdir(path("zeta").c_str(), 0755);
  ::mkdir(path("alpha").c_str(), 0755);
  ::mkdir(path("lib").c_str(), 0755);
  std::ofstream(path("zeta/recipe")) << "image=z\n";
  std::ofstream(path("alpha/recipe")) << "image=a\n";
  auto found = recipes_folder();
  ASSERT_TRUE(found);
  EXPECT_EQ(recipe_names(*found), (std::vector<std::string>{"alpha", "zeta"}));
}

TEST_F(RecipeRunTest, AFolderWithoutABuilderIsRefused) { EXPECT_FALSE(recipes_folder()); }

}  // namespace
}  // namespace osb::cli
