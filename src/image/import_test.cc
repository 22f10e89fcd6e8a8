// Honest archives of every format, and bundles whose words and bytes disagree.
#include <fcntl.h>
#include <unistd.h>

#include "image/testing.h"

namespace osb::image {
namespace {

using namespace testing_;

std::string root_tar() {
  return TarMaker()
      .dir("./", {.mode = 0700, .uid = 7})
      .dir("./etc")
      .file("./etc/passwd", "root:x:0:0::/:/bin/sh\n")
      .dir("./home", {.mode = 01777, .uid = 0})
      .file("./home/tool", "#!/bin/sh\n", {.mode = 04755, .uid = 1000, .gid = 100})
      .symlink("./bin", "usr/bin")
      .symlink("./escape", "/../../etc/shadow")
      .hard_link("./home/again", "./home/tool")
      .finish();
}

std::string docker_archive(const std::vector<std::string>& layers, std::string tags = R"("docker.io/library/demo:1")",
                           std::string diff = "") {
  std::string diffs, names;
  TarMaker tar;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::string id = sha256_hex(layers[i]);
    diffs += cat(i == 0 ? "" : ",", R"("sha256:)", diff.empty() ? id : diff, '"');
    names += cat(i == 0 ? "" : ",", '"', id, "/layer.tar\"");
    tar.dir(id + "/").file(id + "/VERSION", "1.0").file(id + "/layer.tar", layers[i]);
  }
  std::string config = cat(R"({"os":"linux","architecture":")", host_architecture(),
                           R"(","config":{"Env":["PATH=/bin","A=b=c","junk"],"WorkingDir":"/srv/app","Labels":{"x":"y"}},)",
                           R"("rootfs":{"type":"layers","diff_ids":[)", diffs, "]}}");
  std::string name = sha256_hex(config) + ".json";
  return tar.file(name, config)
      .file("manifest.json", cat(R"([{"Config":")", name, R"(","RepoTags":[)", tags, R"(],"Layers":[)", names, "]}]"))
      .finish();
}

class Import : public StoreTest {};

TEST_F(Import, ARootFileSystemKeepsOwnersModesLinksAndTimes) {
  std::string tar = root_tar();
  auto image = import(tar, "demo");
  ASSERT_TRUE(image) << image.error().what();
  EXPECT_EQ(image->name, "demo:latest");
  EXPECT_EQ(image->digest, "sha256:" + sha256_hex(tar));
  ASSERT_EQ(image->layers, std::vector{sha256_hex(tar)});
  EXPECT_EQ(image->size_bytes, 22u + 10u);
  std::string root = layer(image->layers[0]);
  struct stat info = {};
  ASSERT_EQ(::lstat(root.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
  EXPECT_EQ(info.st_uid, 0u);
  ASSERT_EQ(::lstat((root + "/home/tool").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 04755u);
  EXPECT_EQ(info.st_uid, 1000u);
  EXPECT_EQ(info.st_gid, 100u);
  EXPECT_EQ(info.st_nlink, 2u);
  EXPECT_EQ(info.st_mtime, 1'000'000'000);
  ASSERT_EQ(::lstat((root + "/home").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  EXPECT_EQ(info.st_mtime, 1'000'000'000);
  EXPECT_EQ(stdfs::read_symlink(root + "/escape"), "/../../etc/shadow");
  EXPECT_EQ(read_file(root + "/etc/passwd"), "root:x:0:0::/:/bin/sh\n");
  EXPECT_TRUE(stdfs::is_empty(temp_ / "store/tmp"));
}

TEST_F(Import, EveryCompressionGivesTheSameLayer) {
  std::string tar = root_tar();
  for (int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_ZSTD}) {
    auto image = import(compress(tar, filter), cat("c", filter));
    ASSERT_TRUE(image) << image.error().what();
    EXPECT_EQ(image->layers, std::vector{sha256_hex(tar)});
  }
  EXPECT_EQ(std::distance(stdfs::directory_iterator(temp_ / "store/layers"), {}), 2);  // that one and the host's
}

TEST_F(Import, NamesComeThroughByteForByte) {
  std::string nfd = "e\xcc\x81", latin1 = "caf\xe9";
  auto image = import(
      TarMaker().pax("path", nfd).file("a").file(latin1).pax("path", "bad\xff").file("b").pax("linkpath", nfd).symlink("l", "x").finish());
  ASSERT_TRUE(image) << image.error().what();
  auto seen = picture(layer(image->layers[0]));
  EXPECT_TRUE(seen.contains(nfd));
  EXPECT_TRUE(seen.contains(latin1));
  EXPECT_TRUE(seen.contains("bad\xff"));
  EXPECT_EQ(stdfs::read_symlink(layer(image->layers[0], "l")).string(), nfd);
}

TEST_F(Import, AbsoluteNamesLoseTheirSlash) {
  auto image = import(TarMaker().file("/etc/planted").file("//./b").finish());
  ASSERT_TRUE(image) << image.error().what();
  EXPECT_TRUE(stdfs::exists(layer(image->layers[0], "etc/planted")));
  EXPECT_TRUE(stdfs::exists(layer(image->layers[0], "b")));
  EXPECT_FALSE(stdfs::exists("/etc/planted"));
}

TEST_F(Import, ALaterEntryReplacesAnEarlierOne) {
  auto image = import(TarMaker()
                          .file("a", "old")
                          .file("a", "new")
                          .dir("d")
                          .file("d/inner")
                          .dir("d/sub")
                          .file("d", "now a file")
                          .file("e", "file")
                          .dir("e")
                          .file("e/inner")
                          .symlink("s", "/etc")
                          .file("s", "no link")
                          .file("h1", "one")
                          .hard_link("h2", "h1")
                          .file("h2", "two")
                          .dir("k", {.mode = 0700})
                          .file("k/x")
                          .dir("k", {.mode = 0711})
                          .hard_link("a", "a")
                          .finish());
  ASSERT_TRUE(image) << image.error().what();
  std::string root = layer(image->layers[0]) + "/";
  EXPECT_EQ(read_file(root + "a"), "new");
  EXPECT_EQ(read_file(root + "d"), "now a file");
  EXPECT_TRUE(stdfs::exists(root + "e/inner"));
  EXPECT_EQ(read_file(root + "s"), "no link");
  EXPECT_FALSE(stdfs::is_symlink(root + "s"));
  EXPECT_EQ(read_file(root + "h1"), "one");
  EXPECT_EQ(read_file(root + "h2"), "two");
  EXPECT_EQ(stdfs::status(root + "k").permissions(), stdfs::perms(0711));
  EXPECT_TRUE(stdfs::exists(root + "k/x"));
}

std::string opaque(const std::string& path) {
  char value[8];
  ssize_t size = ::lgetxattr(path.c_str(), "trusted.overlay.opaque", value, sizeof value);
  return size < 0 ? "" : std::string(value, static_cast<std::size_t>(size));
}

TEST_F(Import, WhiteoutsSpeakOverlayfs) {
  auto image = import(TarMaker()
                          .file("d/.wh.gone")
                          .file("o/.wh..wh..opq")
                          .dir("plain")
                          .file("kept", "mine")
                          .file(".wh.kept")  // this layer's own file stays
                          .file(".wh.anew")
                          .dir("anew")
                          .file("anew/x")  // removed, then made anew
                          .file(".wh.implied")
                          .file("implied/x")
                          .dir("late")
                          .file("late/x")
                          .file(".wh.late")
                          .file(".wh..wh.plnk")
                          .finish());
  ASSERT_TRUE(image) << image.error().what();
  auto seen = picture(layer(image->layers[0]));
  EXPECT_EQ(seen["d/gone"], "020000 0:0 0:0");
  EXPECT_EQ(opaque(layer(image->layers[0], "o")), "y");
  EXPECT_EQ(opaque(layer(image->layers[0], "plain")), "");
  EXPECT_EQ(read_file(layer(image->layers[0], "kept")), "mine");
  for (const char* dir : {"anew", "implied", "late"}) {
    EXPECT_EQ(opaque(layer(image->layers[0], dir)), "y") << dir;
    EXPECT_TRUE(seen.contains(cat(dir, "/x")));
  }
  for (const auto& [path, what] : seen) EXPECT_EQ(path.find(".wh."), std::string::npos) << path;
}

TEST_F(Import, ADockerArchiveBringsItsNameLayersAndEnvironment) {
  std::string base = root_tar(), upper = TarMaker().file("etc/.wh.passwd").finish();
  auto image = import(docker_archive({base, upper}), "");
  ASSERT_TRUE(image) << image.error().what();
  EXPECT_EQ(image->name, "demo:1");
  EXPECT_EQ(image->layers, (std::vector{sha256_hex(upper), sha256_hex(base)}));
  ASSERT_EQ(image->env.size(), 2u);
  EXPECT_EQ(image->env[1].second, "b=c");
  EXPECT_EQ(image->working_dir, "/srv/app");
  EXPECT_TRUE(image->digest.starts_with("sha256:"));
  auto again = import(gzip(docker_archive({base, upper})), "other");
  ASSERT_TRUE(again) << again.error().what();
  EXPECT_EQ(again->name, "other:latest");
  EXPECT_EQ(again->digest, image->digest);
  EXPECT_EQ(again->size_bytes, image->size_bytes);
}

TEST_F(Import, ADockerArchiveWhoseLayerIsAnotherIsRefused) {
  auto before = picture(temp_ / "store");
  auto image = import(docker_archive({root_tar()}, R"("demo:1")", std::string(64, 'a')), "");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().kind(), Errc::invalid_argument);
  EXPECT_NE(image.error().what().find("digest"), std::string::npos);
  EXPECT_EQ(picture(temp_ / "store"), before);
}

TEST_F(Import, LayersThatComeTwiceAreMountedOnce) {
  std::string empty(1024, '\0'), base = root_tar();
  auto image = import(docker_archive({base, empty}), "x");
  ASSERT_TRUE(image) << image.error().what();
  OciMaker oci;
  std::string manifest = oci.manifest({empty, base, empty}, {empty, base, empty});
  oci.index(oci.descriptor(kManifestType, manifest));
  auto twice = import(oci.tar(), "twice");
  ASSERT_TRUE(twice) << twice.error().what();
  EXPECT_EQ(twice->layers, (std::vector{sha256_hex(empty), sha256_hex(base)}));
}

class Oci : public StoreTest {
 protected:
  std::string base_ = root_tar();
  std::string upper_ = TarMaker().file("opt/tool", "v2").finish();

  std::string good_manifest(OciMaker& oci) {
    return oci.manifest({base_, upper_}, {gzip(base_), zstd(upper_)}, R"({"Env":["X=1"],"WorkingDir":"relative"})");
  }
  Result<Image> import_dir(const OciMaker& oci, std::string name = "oci") {
    stdfs::remove_all(temp_ / "layout");
    oci.write_to(temp_ / "layout");
    return store_->import(temp_ / "layout", {.name = std::move(name), .progress = {}});
  }
  void expect_refused(OciMaker& oci, Errc kind, const char* words) {
    auto before = picture(temp_ / "store");
    auto image = import_dir(oci);
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().kind(), kind) << image.error().what();
    EXPECT_NE(image.error().what().find(words), std::string::npos) << image.error().what();
    EXPECT_EQ(picture(temp_ / "store"), before);
    OciMaker good;
    std::string manifest = good_manifest(good);
    good.index(good.descriptor(kManifestType, manifest));
    EXPECT_TRUE(import_dir(good));
  }
};

TEST_F(Oci, ALayoutInADirectoryOrATarGivesTheSameImage) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  auto image = import_dir(oci);
  ASSERT_TRUE(image) << image.error().what();
  EXPECT_EQ(image->digest, "sha256:" + manifest);
  EXPECT_EQ(image->layers, (std::vector{sha256_hex(upper_), sha256_hex(base_)}));
  EXPECT_EQ(image->working_dir, "");
  EXPECT_EQ(read_file(layer(image->layers[0], "opt/tool")), "v2");
  auto from_tar = import(oci.tar(), "oci2");
  ASSERT_TRUE(from_tar) << from_tar.error().what();
  EXPECT_EQ(from_tar->layers, image->layers);
  auto from_gz = import(gzip(oci.tar()), "oci3");
  ASSERT_TRUE(from_gz) << from_gz.error().what();
  EXPECT_EQ(from_gz->digest, image->digest);
}

TEST_F(Oci, AnIndexIsFollowedToTheVariantOfThisHost) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  std::string other = oci.blob(R"({"not":"for us"})");
  std::string list = oci.blob(
      cat(R"({"manifests":[)", oci.descriptor(kManifestType, other, R"(,"platform":{"os":"linux","architecture":"s390x"})"), ",",
          oci.descriptor(kManifestType, other, R"(,"platform":{"os":"unknown","architecture":"unknown"})"), ",",
          oci.descriptor(kManifestType, manifest, cat(R"(,"platform":{"os":"linux","architecture":")", host_architecture(), "\"}")), "]}"));
  oci.index(
      oci.descriptor(kIndexType, list,
                     R"(,"annotations":{"io.containerd.image.name":"docker.io/library/app:3","org.opencontainers.image.ref.name":"3"})"));
  auto image = import_dir(oci, "");
  ASSERT_TRUE(image) << image.error().what();
  EXPECT_EQ(image->name, "app:3");
  EXPECT_EQ(image->digest, "sha256:" + manifest);
}

TEST_F(Oci, NoVariantForThisHostIsSaidPlainly) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest, R"(,"platform":{"os":"linux","architecture":"s390x"})"));
  expect_refused(oci, Errc::unsupported, "s390x");
}

TEST_F(Oci, ABlobWithAnotherDigestIsRefused) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  std::string blob = "blobs/sha256/" + sha256_hex(zstd(upper_));
  ASSERT_TRUE(oci.files().contains(blob));
  oci.files()[blob] = zstd(TarMaker().file("opt/tool", "evil").finish());
  expect_refused(oci, Errc::invalid_argument, "digest");
}

TEST_F(Oci, ACutBlobIsRefused) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  std::string& blob = oci.files()["blobs/sha256/" + sha256_hex(gzip(base_))];
  ASSERT_GT(blob.size(), 40u);
  blob.resize(blob.size() / 2);
  expect_refused(oci, Errc::invalid_argument, "");
}

TEST_F(Oci, BytesAfterACompressedLayerAreRefused) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  oci.files()["blobs/sha256/" + sha256_hex(gzip(base_))] += "tail";
  expect_refused(oci, Errc::invalid_argument, "digest");
}

TEST_F(Oci, AManifestWithAnotherDigestIsRefused) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  std::string& text = oci.files()["blobs/sha256/" + manifest];
  text[text.size() - 1] = ' ';
  expect_refused(oci, Errc::invalid_argument, "digest");
}

TEST_F(Oci, ADiffIdThatIsNotTheLayersIsRefusedAlsoWhenTheLayerIsKnown) {
  ASSERT_TRUE(import(upper_, "known"));
  OciMaker oci;  // claims the known layer, brings another
  std::string manifest = oci.manifest({upper_}, {gzip(base_)});
  oci.index(oci.descriptor(kManifestType, manifest));
  expect_refused(oci, Errc::invalid_argument, "digest");
}

TEST_F(Oci, AMissingBlobIsNamed) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  oci.files().erase("blobs/sha256/" + sha256_hex(gzip(base_)));
  expect_refused(oci, Errc::not_found, "blobs/sha256/");
}

TEST_F(Oci, ADigestThatIsAPathIsRefused) {
  OciMaker oci;
  oci.index(R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:../../../etc/passwd","size":1})");
  expect_refused(oci, Errc::unsupported, "not sha256");
}

TEST_F(Oci, ABlobThatIsALinkOutIsNotFollowed) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  std::string blob = "blobs/sha256/" + manifest;
  write_file(temp_ / "elsewhere", oci.files()[blob]);
  oci.files().erase(blob);
  oci.write_to(temp_ / "linked");
  stdfs::create_symlink(temp_ / "elsewhere", temp_ / "linked/" + blob);
  EXPECT_FALSE(store_->import(temp_ / "linked", {.name = "x", .progress = {}}));
  stdfs::remove(temp_ / "linked/" + blob);
  stdfs::copy_file(temp_ / "elsewhere", temp_ / "linked/" + blob);
  EXPECT_TRUE(store_->import(temp_ / "linked", {.name = "x", .progress = {}}));
}

TEST_F(Oci, SeveralImagesNeedAName) {
  OciMaker oci;
  std::string one = oci.manifest({base_}, {base_}), two = oci.manifest({upper_}, {upper_});
  auto named = [&](const std::string& hex, const char* name) {
    return oci.descriptor(kManifestType, hex, cat(R"(,"annotations":{"org.opencontainers.image.ref.name":")", name, "\"}"));
  };
  oci.index(named(one, "one:1") + "," + named(two, "two:2"));
  auto unclear = import_dir(oci, "");
  ASSERT_FALSE(unclear);
  EXPECT_NE(unclear.error().hint().find("two:2"), std::string::npos);
  auto chosen = import_dir(oci, "two:2");
  ASSERT_TRUE(chosen) << chosen.error().what();
  EXPECT_EQ(chosen->digest, "sha256:" + two);
}

TEST_F(Oci, IndexesInACircleEnd) {
  OciMaker oci;
  std::string inner = oci.blob(R"({"manifests":[]})");
  for (int i = 0; i < 10; ++i) inner = oci.blob(cat(R"({"manifests":[)", oci.descriptor(kIndexType, inner), "]}"));
  oci.index(oci.descriptor(kIndexType, inner));
  expect_refused(oci, Errc::invalid_argument, "deep");
}

TEST_F(Oci, TooManyLayersAreRefused) {
  OciMaker oci;
  std::vector<std::string> tars;
  for (int i = 0; i < 65; ++i) tars.push_back(TarMaker().file(cat("f", i)).finish());
  std::string manifest = oci.manifest(tars, tars);
  oci.index(oci.descriptor(kManifestType, manifest));
  expect_refused(oci, Errc::unsupported, "64");
}

TEST_F(Oci, AMemberThatComesTwiceInTheTarIsRefused) {
  OciMaker oci;
  std::string manifest = good_manifest(oci);
  oci.index(oci.descriptor(kManifestType, manifest));
  TarMaker tar;
  tar.file("index.json", "{}");
  for (const auto& [path, content] : oci.files()) tar.file(path, content);
  auto image = import(tar.finish(), "x");
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().what().find("twice"), std::string::npos);
}

}  // namespace
}  // namespace osb::image
