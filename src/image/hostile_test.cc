// Archives that attack. Each case has a twin without the attack, which must pass: otherwise the refusal proves nothing.
#include <fcntl.h>
#include <unistd.h>

#include "image/layer_writer.h"
#include "image/testing.h"

namespace osb::image {
namespace {

using namespace testing_;

struct Case {
  const char* name;
  std::function<std::string(const std::string& outside)> hostile;
  std::function<std::string(const std::string& outside)> twin;
  Errc kind = Errc::invalid_argument;
  const char* words = "";
  std::uint64_t max_bytes = 256u << 20;
  std::uint64_t max_entries = 1000;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string deep(int levels) {
  std::string path;
  for (int i = 0; i < levels; ++i) path += "d/";
  return path + "f";
}

std::string many_files(int count) {
  TarMaker tar;
  for (int i = 0; i < count; ++i) tar.file(cat("f", i), "");
  return tar.finish();
}

std::string zeros_tar(std::size_t mebibytes) { return TarMaker().file("zeros", std::string(mebibytes << 20, '\0')).finish(); }

// One byte of content, and a hole after it up to `size`.
std::string sparse(const char* size) {
  return TarMaker().pax("GNU.sparse.size", size).pax("GNU.sparse.numblocks", "1").pax("GNU.sparse.map", "0,1").file("a").finish();
}

const Case kCases[] = {
    {"dot_dot", [](auto&) { return TarMaker().file("../x").finish(); }, [](auto&) { return TarMaker().file("..x").finish(); },
     Errc::invalid_argument, "\"..\""},
    {"dot_dot_inside", [](auto&) { return TarMaker().dir("a").file("a/../../x").finish(); },
     [](auto&) { return TarMaker().dir("a").file("a/x").finish(); }, Errc::invalid_argument, "\"..\""},
    {"dot_dot_in_pax", [](auto&) { return TarMaker().pax("path", "a/../../../etc/x").file("a").finish(); },
     [](auto&) { return TarMaker().pax("path", "a/b").file("a").finish(); }, Errc::invalid_argument, "\"..\""},
    {"file_through_symlink", [](auto& out) { return TarMaker().symlink("a", out).file("a/planted").finish(); },
     [](auto& out) { return TarMaker().symlink("a", out).file("b/planted").finish(); }, Errc::invalid_argument, "symbolic link"},
    {"file_through_relative_symlink", [](auto&) { return TarMaker().dir("real").symlink("a", "real").file("a/planted").finish(); },
     [](auto&) { return TarMaker().dir("real").symlink("a", "real").file("real/planted").finish(); }, Errc::invalid_argument,
     "symbolic link"},
    {"directory_through_symlink", [](auto& out) { return TarMaker().symlink("a", out).dir("a/planted").finish(); },
     [](auto& out) { return TarMaker().symlink("a", out).dir("b").finish(); }, Errc::invalid_argument, "symbolic link"},
    {"symlink_through_symlink", [](auto& out) { return TarMaker().symlink("a", out).symlink("a/planted", "/").finish(); },
     [](auto& out) { return TarMaker().symlink("a", out).symlink("planted", "/").finish(); }, Errc::invalid_argument, "symbolic link"},
    {"whiteout_through_symlink", [](auto& out) { return TarMaker().symlink("a", out).file("a/.wh.secret").finish(); },
     [](auto& out) { return TarMaker().symlink("a", out).file(".wh.secret").finish(); }, Errc::invalid_argument, "symbolic link"},
    {"opaque_through_symlink", [](auto& out) { return TarMaker().symlink("a", out).file("a/.wh..wh..opq").finish(); },
     [](auto& out) { return TarMaker().symlink("a", out).file("b/.wh..wh..opq").finish(); }, Errc::invalid_argument, "symbolic link"},
    {"whiteout_of_parent", [](auto&) { return TarMaker().dir("a").file("a/.wh...").finish(); },
     [](auto&) { return TarMaker().dir("a").file("a/.wh.b").finish(); }, Errc::invalid_argument, "whiteout"},
    {"hard_link_absolute_outside", [](auto& out) { return TarMaker().hard_link("a", out + "/secret").finish(); },
     [](auto&) { return TarMaker().file("b").hard_link("a", "/b").finish(); }, Errc::invalid_argument, "hard link"},
    {"hard_link_dot_dot", [](auto&) { return TarMaker().hard_link("a", "../../outside/secret").finish(); },
     [](auto&) { return TarMaker().file("b").hard_link("a", "b").finish(); }, Errc::invalid_argument, "\"..\""},
    {"hard_link_through_symlink", [](auto& out) { return TarMaker().symlink("s", out).hard_link("a", "s/secret").finish(); },
     [](auto&) { return TarMaker().file("s/secret").hard_link("a", "s/secret").finish(); }, Errc::invalid_argument, "hard link"},
    {"hard_link_to_symlink", [](auto& out) { return TarMaker().symlink("s", out + "/secret").hard_link("a", "s").finish(); },
     [](auto&) { return TarMaker().file("s").hard_link("a", "s").finish(); }, Errc::invalid_argument, "hard link"},
    {"hard_link_to_directory", [](auto&) { return TarMaker().dir("d").hard_link("a", "d").finish(); },
     [](auto&) { return TarMaker().file("d").hard_link("a", "d").finish(); }, Errc::invalid_argument, "hard link"},
    {"file_under_file", [](auto&) { return TarMaker().file("a").file("a/b").finish(); },
     [](auto&) { return TarMaker().dir("a").file("a/b").finish(); }, Errc::invalid_argument, "not a directory"},
    {"root_as_symlink", [](auto&) { return TarMaker().symlink("./", "/").finish(); },
     [](auto&) { return TarMaker().dir("./").file("x").finish(); }, Errc::invalid_argument, "root"},
    {"uid_past_32_bits", [](auto&) { return TarMaker().pax("uid", "4294967296").file("a").finish(); },
     [](auto&) { return TarMaker().pax("uid", "65535").file("a").finish(); }, Errc::invalid_argument, "owner"},
    {"uid_negative", [](auto&) { return TarMaker().file("a", "x", {.uid = -1}).finish(); },
     [](auto&) { return TarMaker().file("a", "x", {.uid = 1}).finish(); }, Errc::invalid_argument, "owner"},
    {"gid_negative_in_pax", [](auto&) { return TarMaker().pax("gid", "-1").file("a").finish(); },
     [](auto&) { return TarMaker().pax("gid", "1").file("a").finish(); }, Errc::invalid_argument, "group"},
    {"uid_65536", [](auto&) { return TarMaker().dir("a", {.mode = 0755, .uid = 65536}).finish(); },
     [](auto&) { return TarMaker().dir("a", {.mode = 0755, .uid = 65535}).finish(); }, Errc::invalid_argument, "owner"},
    {"uid_huge_base_256", [](auto&) { return TarMaker().file("a", "x", {.uid = std::int64_t{1} << 40}).finish(); },
     [](auto&) { return TarMaker().file("a", "x", {.uid = 40}).finish(); }, Errc::invalid_argument, "owner"},
    {"name_of_256_bytes", [](auto&) { return TarMaker().pax("path", std::string(256, 'n')).file("a").finish(); },
     [](auto&) { return TarMaker().pax("path", std::string(255, 'n')).file("a").finish(); }, Errc::invalid_argument, "255"},
    {"path_past_4096_bytes", [](auto&) { return TarMaker().pax("path", std::string(5000, '/') + "a").file("a").finish(); },
     [](auto&) { return TarMaker().pax("path", std::string(4000, '/') + "a").file("a").finish(); }, Errc::invalid_argument, "4096"},
    {"pax_of_2_mebibytes", [](auto&) { return TarMaker().pax("path", std::string(2u << 20, 'n')).file("a").finish(); },
     [](auto&) { return TarMaker().pax("comment", std::string(2000, 'n')).file("a").finish(); }, Errc::invalid_argument, ""},
    {"depth_129", [](auto&) { return TarMaker().pax("path", deep(128)).file("a").finish(); },
     [](auto&) { return TarMaker().pax("path", deep(127)).file("a").finish(); }, Errc::invalid_argument, "128"},
    {"too_many_entries", [](auto&) { return many_files(101); }, [](auto&) { return many_files(100); }, Errc::too_large, "entries", 1 << 20,
     100},
    {"too_many_implied_directories", [](auto&) { return TarMaker().file(deep(40)).finish(); },
     [](auto&) { return TarMaker().file(deep(8)).finish(); }, Errc::too_large, "entries", 1 << 20, 10},
    {"too_many_bytes", [](auto&) { return TarMaker().file("a", std::string(5000, 'x')).finish(); },
     [](auto&) { return TarMaker().file("a", std::string(4000, 'x')).finish(); }, Errc::too_large, "bytes", 4096},
    {"bytes_by_duplicates", [](auto&) { return TarMaker().file("a", std::string(3000, 'x')).file("a", std::string(3000, 'x')).finish(); },
     [](auto&) { return TarMaker().file("a", std::string(3000, 'x')).finish(); }, Errc::too_large, "bytes", 4096},
    {"sparse_of_8_exbibytes", [](auto&) { return sparse("9000000000000000000"); }, [](auto&) { return sparse("1048576"); }, Errc::too_large,
     "bytes"},
    {"size_that_is_not_there", [](auto&) { return TarMaker().file("a", "x", {.size = 1 << 20}).finish(); },
     [](auto&) { return TarMaker().file("a", "x", {.size = 1}).finish(); }, Errc::invalid_argument, ""},
    {"endless_padding", [](auto&) { return TarMaker().file("a").finish() + std::string(2u << 20, '\0'); },
     [](auto&) { return TarMaker().file("a").finish(); }, Errc::too_large, "bytes", 4096, 100},
    {"cut_between_entries", [](auto&) { return TarMaker().file("a").unfinished(); }, [](auto&) { return TarMaker().file("a").finish(); },
     Errc::invalid_argument, "end mark"},
    {"bomb_gzip", [](auto&) { return gzip(zeros_tar(96)); }, [](auto&) { return gzip(zeros_tar(32)); }, Errc::too_large, "200"},
    {"bomb_zstd", [](auto&) { return zstd(zeros_tar(96)); }, [](auto&) { return zstd(zeros_tar(32)); }, Errc::too_large, "200"},
    {"compressed_twice", [](auto&) { return gzip(gzip(TarMaker().file("a").finish())); },
     [](auto&) { return gzip(TarMaker().file("a").finish()); }},
    {"gzip_cut", [](auto&) { return gzip(TarMaker().file("a", std::string(9999, 'y')).finish()).substr(0, 60); },
     [](auto&) { return gzip(TarMaker().file("a", std::string(9999, 'y')).finish()); }},
    {"not_an_archive", [](auto&) { return std::string("hello, this is text\n"); }, [](auto&) { return TarMaker().file("hello").finish(); }},
    {"empty_file", [](auto&) { return std::string(); }, [](auto&) { return std::string(1024, '\0'); }},
};

class Hostile : public StoreTest, public ::testing::WithParamInterface<Case> {};

TEST_P(Hostile, IsRefusedAndLeavesNothingWhileItsTwinPasses) {
  const Case& c = GetParam();
  write_file(temp_ / "outside/secret", "canary");
  auto before = picture(temp_.path());
  auto refused = import(c.hostile(temp_ / "outside"), "test", c.max_bytes, c.max_entries);
  ASSERT_FALSE(refused) << "the attack was let through";
  EXPECT_EQ(refused.error().kind(), c.kind) << refused.error().what();
  EXPECT_NE(refused.error().what().find(c.words), std::string::npos) << refused.error().what();
  stdfs::remove(temp_ / "archive");
  EXPECT_EQ(picture(temp_.path()), before);

  auto passed = import(c.twin(temp_ / "outside"), "test", c.max_bytes, c.max_entries);
  EXPECT_TRUE(passed) << passed.error().what();
  EXPECT_EQ(picture(temp_ / "outside").size(), 1u);
  EXPECT_EQ(read_file(temp_ / "outside/secret"), "canary");
}

INSTANTIATE_TEST_SUITE_P(Tar, Hostile, ::testing::ValuesIn(kCases), [](const auto& info) { return std::string(info.param.name); });

class HostileStore : public StoreTest {};

TEST_F(HostileStore, ASlowImportEnds) {
  store_.reset();
  auto strict =
      FileStore::open(temp_ / "store", {.host_root = temp_ / "host", .durable = sys::fs::Durable::no, .limits = {.max_nanos = 0}});
  ASSERT_TRUE(strict);
  auto late = (*strict)->import(put(TarMaker().file("a").finish()), {.name = "test", .progress = {}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), Errc::timeout);
  reopen();
  EXPECT_TRUE(import(TarMaker().file("a").finish()));
}

TEST_F(HostileStore, DevicesAreLeftOutAndFifosStay) {
  auto image =
      import(TarMaker().dir("dev").device("dev/sda").entry('4', "dev/block", "", {}).fifo("dev/initctl").file("dev/plain").finish());
  ASSERT_TRUE(image) << image.error().what();
  auto seen = picture(layer(image->layers[0]));
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.contains("dev/initctl"));
  EXPECT_FALSE(seen.contains("dev/sda"));
}

TEST_F(HostileStore, ExtendedAttributesOfTheArchiveAreDropped) {
  auto image = import(TarMaker()
                          .pax("SCHILY.xattr.trusted.overlay.redirect", "/etc")
                          .dir("d")
                          .pax("SCHILY.xattr.security.capability", "x")
                          .pax("SCHILY.xattr.user.a", "b")
                          .file("d/f")
                          .finish());
  ASSERT_TRUE(image) << image.error().what();
  char names[256];
  for (const char* path : {"d", "d/f"}) {
    ssize_t size = ::listxattr(layer(image->layers[0], path).c_str(), names, sizeof names);
    EXPECT_EQ(std::string_view(names, size > 0 ? static_cast<std::size_t>(size) : 0).find("overlay"), std::string_view::npos);
    EXPECT_LE(::getxattr(layer(image->layers[0], path).c_str(), "security.capability", names, sizeof names), 0);
    EXPECT_LE(::getxattr(layer(image->layers[0], path).c_str(), "user.a", names, sizeof names), 0);
  }
}

TEST_F(HostileStore, ErrorsShowTheEntryEscaped) {
  auto refused = import(TarMaker().file("../\x1b[31mred\n").finish());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what().find('\x1b'), std::string::npos);
  EXPECT_NE(refused.error().what().find("entry"), std::string::npos);
}

}  // namespace
}  // namespace osb::image
