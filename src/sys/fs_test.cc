#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"

namespace osb::sys::fs {
namespace {

class Fs : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-fs-XXXXXX";
    path_ = ::mkdtemp(name);
    dir_ = std::move(*open_directory(path_));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void put(const std::string& name, std::string_view text = "x") {
    ASSERT_TRUE(replace_file(dir_.get(), name, text, 0644, Durable::no)) << name;
  }
  bool exists(const std::string& name) { return std::filesystem::exists(std::filesystem::symlink_status(path_ + "/" + name)); }

  std::string path_;
  Fd dir_;
};

TEST_F(Fs, OpenBeneathOpensWhatIsBeneathAndNothingElse) {
  ASSERT_TRUE(make_dir_at(dir_.get(), "in", 0755));
  ASSERT_TRUE(make_symlink_at(dir_.get(), "out", "/"));
  ASSERT_TRUE(make_symlink_at(dir_.get(), "inward", "in"));
  put("file");
  EXPECT_TRUE(open_beneath(dir_.get(), "file", O_RDONLY));
  EXPECT_TRUE(open_beneath(dir_.get(), "in", O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(open_beneath(dir_.get(), "../etc/passwd", O_RDONLY).error().sys(), EXDEV);
  EXPECT_EQ(open_beneath(dir_.get(), "/etc/passwd", O_RDONLY).error().sys(), EXDEV);
  EXPECT_EQ(open_beneath(dir_.get(), "out/etc/passwd", O_RDONLY).error().sys(), ELOOP);
  EXPECT_EQ(open_beneath(dir_.get(), "inward/x", O_WRONLY | O_CREAT, 0644).error().sys(), ELOOP);
  EXPECT_EQ(open_beneath(dir_.get(), "inward", O_RDONLY).error().sys(), ELOOP);
}

TEST_F(Fs, ErrorsCarryTheNameEscaped) {
  auto opened = open_beneath(dir_.get(), "no\n\x1b[31m", O_RDONLY);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().what().find('\n'), std::string::npos);
  EXPECT_EQ(opened.error().what().find('\x1b'), std::string::npos);
}

TEST_F(Fs, ReplaceFileSwapsTheWholeContentAndLeavesNoTraces) {
  put("file", "old");
  put("file", "new and longer");
  auto fd = open_beneath(dir_.get(), "file", O_RDONLY);
  ASSERT_TRUE(fd);
  EXPECT_EQ(*read_to_end(fd->get(), 100), "new and longer");
  EXPECT_EQ(read_to_end(fd->get(), 3).error().kind(), Errc::too_large);
  EXPECT_EQ(*list_dir(dir_.get(), 10), std::vector<std::string>{"file"});
}

TEST_F(Fs, ReplaceFileThatFailsLeavesTheOldContentAlone) {
  ASSERT_TRUE(make_dir_at(dir_.get(), "taken", 0755));
  EXPECT_FALSE(replace_file(dir_.get(), "taken", "x", 0644, Durable::no));
  EXPECT_EQ(*list_dir(dir_.get(), 10), std::vector<std::string>{"taken"});
}

TEST_F(Fs, RemoveTreeRemovesDeepTreesAndNeverFollowsALink) {
  ASSERT_TRUE(make_dir_at(dir_.get(), "keep", 0755));
  put("keep-file");
  std::string deep = "tree";
  ASSERT_TRUE(make_dir_at(dir_.get(), deep, 0755));
  for (int i = 0; i < 130; ++i) {
    deep += "/d";
    ASSERT_TRUE(make_dir_at(dir_.get(), deep, 0000));
  }
  ASSERT_TRUE(make_symlink_at(dir_.get(), "tree/link", "../keep"));
  ASSERT_TRUE(make_fifo_at(dir_.get(), "tree/fifo", 0600));
  ASSERT_TRUE(remove_tree(dir_.get(), "tree"));
  EXPECT_FALSE(exists("tree"));
  EXPECT_TRUE(exists("keep"));
  ASSERT_TRUE(make_symlink_at(dir_.get(), "alias", "keep"));
  ASSERT_TRUE(remove_tree(dir_.get(), "alias"));
  EXPECT_TRUE(exists("keep"));
  EXPECT_TRUE(remove_tree(dir_.get(), "never-there"));
}

TEST_F(Fs, MeasureTreeCountsAHardLinkOnce) {
  ASSERT_TRUE(make_dir_at(dir_.get(), "d", 0755));
  put("a", "12345");
  ASSERT_TRUE(make_link_at(dir_.get(), "a", dir_.get(), "d/b"));
  auto size = measure_tree(dir_.get());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->bytes, 5u);
  EXPECT_EQ(size->entries, 3u);
}

TEST_F(Fs, LinkAtLinksASymlinkItselfAndRenameNewNeverReplaces) {
  put("a");
  put("b");
  EXPECT_EQ(rename_new_at(dir_.get(), "a", dir_.get(), "b").error().kind(), Errc::conflict);
  EXPECT_TRUE(rename_new_at(dir_.get(), "a", dir_.get(), "c"));
  ASSERT_TRUE(make_symlink_at(dir_.get(), "s", "/etc/passwd"));
  ASSERT_TRUE(make_link_at(dir_.get(), "s", dir_.get(), "t"));
  EXPECT_TRUE(S_ISLNK(stat_at(dir_.get(), "t")->st_mode));
}

TEST_F(Fs, NamesOfADirectoryComeInOrderAndNoneOfAMissingOne) {
  put("b");
  put("a");
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(names_in(path_ + "/missing").empty());
  EXPECT_TRUE(names_in(path_ + "/a").empty());
}

TEST_F(Fs, OneHolderAtATimeHasTheLock) {
  put("lock");
  auto first = open_beneath(dir_.get(), "lock", O_RDONLY);
  auto second = open_beneath(dir_.get(), "lock", O_RDONLY);
  EXPECT_TRUE(*lock_exclusive(first->get(), LockWait::no));
  EXPECT_FALSE(*lock_exclusive(second->get(), LockWait::no));
  first->reset();
  EXPECT_TRUE(*lock_exclusive(second->get(), LockWait::no));
}

TEST_F(Fs, APathThatOthersCouldReplaceIsRefused) {
  ASSERT_TRUE(make_dir_at(dir_.get(), "a", 0755));
  ASSERT_TRUE(make_dir_at(dir_.get(), "a/b", 0700));
  EXPECT_TRUE(check_path_is_ours(path_ + "/a/b"));
  ASSERT_TRUE(set_mode_at(dir_.get(), "a", 0777));
  EXPECT_EQ(check_path_is_ours(path_ + "/a/b").error().kind(), Errc::permission_denied);
  ASSERT_TRUE(set_mode_at(dir_.get(), "a", 01777));
  EXPECT_TRUE(check_path_is_ours(path_ + "/a/b"));
  if (::geteuid() != 0) GTEST_SKIP() << "giving a directory away needs root";
  ASSERT_TRUE(set_owner_at(dir_.get(), "a", 12345, 12345));
  EXPECT_EQ(check_path_is_ours(path_ + "/a/b").error().kind(), Errc::permission_denied);
}

}  // namespace
}  // namespace osb::sys::fs
