#include <fcntl.h>
#include <sys/file.h>

#include <atomic>
#include <thread>

#include "image/reference.h"
#include "image/testing.h"

namespace osb::image {
namespace {

using namespace testing_;

class ImageStore : public StoreTest {
 protected:
  std::size_t layer_count() { return static_cast<std::size_t>(std::distance(stdfs::directory_iterator(temp_ / "store/layers"), {})); }
  static bool unused(const Image&) { return false; }
};

TEST_F(ImageStore, AlwaysHasTheHost) {
  auto host = store_->resolve("host");
  ASSERT_TRUE(host);
  EXPECT_TRUE(host->host_view);
  EXPECT_EQ(host->digest, "host");
  ASSERT_EQ(host->layers.size(), 1u);
  EXPECT_TRUE(is_sha256_hex(host->layers[0]));
  EXPECT_EQ(read_file(layer(host->layers[0], "etc/os-release")), "ID=pretend\n");
  EXPECT_EQ(store_->list().front().name, "host");
  EXPECT_EQ(store_->remove("host", unused).error().kind(), Errc::invalid_argument);
  EXPECT_EQ(stdfs::status(temp_ / "store").permissions(), stdfs::perms(0700));
}

TEST_F(ImageStore, AHostThatChangedGetsANewLayerAndTheFormerStaysForThoseWhoRunOnIt) {
  Image before = *store_->resolve("host");
  reopen();
  EXPECT_EQ(store_->resolve("host")->layers, before.layers);
  EXPECT_EQ(store_->resolve("host")->created_at, before.created_at);
  write_file(temp_ / "host/etc/os-release", "ID=changed\n");
  reopen();
  Image after = *store_->resolve("host");
  EXPECT_NE(after.layers, before.layers);
  EXPECT_EQ(layer_count(), 2u);
  auto former = store_->resolve("sha256:" + before.layers[0]);
  ASSERT_TRUE(former) << former.error().what();
  EXPECT_TRUE(former->host_view);
  ASSERT_TRUE(store_->remove(former->name, unused));
  EXPECT_EQ(layer_count(), 1u);
  EXPECT_TRUE(stdfs::exists(layer(after.layers[0])));
}

TEST_F(ImageStore, ResolvesByNameTagAndDigest) {
  auto made = import(TarMaker().file("a").finish(), "debian");
  ASSERT_TRUE(made);
  EXPECT_EQ(store_->resolve("debian")->digest, made->digest);
  EXPECT_EQ(store_->resolve("debian:latest")->digest, made->digest);
  EXPECT_EQ(store_->resolve(made->digest)->name, "debian:latest");
  EXPECT_FALSE(made->created_at.empty());
  reopen();
  EXPECT_EQ(store_->resolve("debian")->layers, made->layers);
  EXPECT_EQ(store_->list().size(), 2u);
}

TEST_F(ImageStore, AnUnknownNameIsAnsweredWithAHint) {
  ASSERT_TRUE(import(TarMaker().file("a").finish(), "debian:12"));
  auto missing = store_->resolve("debain:12");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), Errc::not_found);
  EXPECT_EQ(missing.error().code(), "SANDBOX::IMAGE_NOT_FOUND");
  EXPECT_NE(missing.error().hint().find("debian:12"), std::string::npos);
  EXPECT_NE(missing.error().hint().find("image import"), std::string::npos);
  EXPECT_EQ(store_->resolve("file:///etc/passwd").error().kind(), Errc::invalid_argument);
}

TEST_F(ImageStore, AMissingFileOrNameIsSaid) {
  EXPECT_EQ(store_->import(temp_ / "nowhere", {.name = "x", .progress = {}}).error().kind(), Errc::not_found);
  EXPECT_EQ(import(TarMaker().file("a").finish(), "").error().kind(), Errc::invalid_argument);
  EXPECT_EQ(import(TarMaker().file("a").finish(), "host").error().kind(), Errc::invalid_argument);
  EXPECT_EQ(import(TarMaker().file("a").finish(), "-v").error().kind(), Errc::invalid_argument);
  stdfs::create_directories(temp_ / "plain-directory");
  auto plain = store_->import(temp_ / "plain-directory", {.name = "x", .progress = {}});
  ASSERT_FALSE(plain);
  EXPECT_FALSE(plain.error().hint().empty());
}

TEST_F(ImageStore, RemovesLayersWithTheirLastImageOnly) {
  std::string shared = TarMaker().file("shared").finish(), own = TarMaker().file("own").finish();
  OciMaker one, two;
  one.index(one.descriptor(kManifestType, one.manifest({shared}, {shared})));
  two.index(two.descriptor(kManifestType, two.manifest({shared, own}, {shared, own})));
  ASSERT_TRUE(import(one.tar(), "one"));
  ASSERT_TRUE(import(two.tar(), "two"));
  EXPECT_EQ(layer_count(), 3u);
  ASSERT_TRUE(store_->remove("two", unused));
  EXPECT_EQ(layer_count(), 2u);
  EXPECT_TRUE(stdfs::exists(layer(sha256_hex(shared), "shared")));
  ASSERT_TRUE(store_->remove("one", unused));
  EXPECT_EQ(layer_count(), 1u);
  EXPECT_EQ(store_->remove("one", unused).error().kind(), Errc::not_found);
}

TEST_F(ImageStore, AnImageInUseStays) {
  ASSERT_TRUE(import(TarMaker().file("a").finish(), "busy"));
  auto kept = store_->remove("busy", [](const Image& image) { return image.name == "busy:latest"; });
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().kind(), Errc::conflict);
  EXPECT_TRUE(store_->resolve("busy"));
  EXPECT_TRUE(store_->remove("busy", unused));
}

TEST_F(ImageStore, AReplacedImageLivesOnUnderItsDigest) {
  auto first = import(TarMaker().file("a", "1").finish(), "app"), second = import(TarMaker().file("a", "2").finish(), "app");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(store_->resolve("app")->digest, second->digest);
  EXPECT_EQ(store_->resolve(first->digest)->name, first->digest);
  EXPECT_TRUE(stdfs::exists(layer(first->layers[0], "a")));
  reopen();
  EXPECT_TRUE(stdfs::exists(layer(first->layers[0], "a")));
  ASSERT_TRUE(store_->remove(first->digest, unused));
  EXPECT_FALSE(stdfs::exists(layer(first->layers[0])));
  EXPECT_TRUE(stdfs::exists(layer(second->layers[0], "a")));
}

TEST_F(ImageStore, AnImageWithAnotherNameNeedsNoDigestForOne) {
  std::string one = TarMaker().file("a", "1").finish(), two = TarMaker().file("a", "2").finish();
  ASSERT_TRUE(import(one, "app"));
  ASSERT_TRUE(import(two, "app"));
  EXPECT_EQ(store_->list().size(), 3u);  // host, app, and the first by its digest
  ASSERT_TRUE(import(one, "again"));
  EXPECT_EQ(store_->list().size(), 3u);  // host, app, again
  EXPECT_EQ(store_->resolve("sha256:" + sha256_hex(one))->name, "again:latest");
  ASSERT_TRUE(import(one, "app"));
  ASSERT_TRUE(import(two, "app"));
  EXPECT_FALSE(stdfs::exists(temp_ / cat("store/images/sha256@", sha256_hex(one), ".json")));
}

TEST_F(ImageStore, WhatACrashLeftIsSweptButNotAnImportUnderWay) {
  ASSERT_TRUE(import(TarMaker().file("a").finish(), "good"));
  write_file(temp_ / "store/tmp/crashed/layer/half", "x");
  write_file(temp_ / "store/tmp/stray", "x");
  write_file(temp_ / cat("store/layers/", std::string(64, 'e'), "/orphan"), "x");
  stdfs::create_directories(temp_ / "store/tmp/living");
  int held = ::open((temp_ / "store/tmp/living").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  reopen();
  EXPECT_FALSE(stdfs::exists(temp_ / "store/tmp/crashed"));
  EXPECT_FALSE(stdfs::exists(temp_ / "store/tmp/stray"));
  EXPECT_FALSE(stdfs::exists(layer(std::string(64, 'e'))));
  EXPECT_TRUE(stdfs::exists(temp_ / "store/tmp/living"));
  EXPECT_TRUE(store_->resolve("good"));
  ::close(held);
  reopen();
  EXPECT_FALSE(stdfs::exists(temp_ / "store/tmp/living"));
}

TEST_F(ImageStore, ARecordThatCannotBeReadCostsNoLayer) {
  auto good = import(TarMaker().file("a").finish(), "good");
  ASSERT_TRUE(good);
  write_file(temp_ / "store/images/good@latest.json", "{\"version\":1,");
  reopen();
  EXPECT_FALSE(store_->resolve("good"));
  EXPECT_TRUE(stdfs::exists(layer(good->layers[0], "a")));
  write_file(temp_ / "store/images/good@latest.json", R"({"version":1,"name":"good:latest","digest":"x","layers":["../../etc"]})");
  EXPECT_FALSE(store_->resolve("good"));
}

TEST_F(ImageStore, TellsProgress) {
  std::uint64_t bytes = 0, entries = 0;
  auto told = [&](std::uint64_t b, std::uint64_t e) { bytes = b, entries = e; };
  auto image = store_->import(put(TarMaker().file("a", "12345").dir("d").finish()), {.name = "x", .progress = told});
  ASSERT_TRUE(image);
  EXPECT_EQ(bytes, 5u);
  EXPECT_EQ(entries, 2u);
}

TEST_F(ImageStore, ManyThreadsImportListAndRemoveAtOnce) {
  constexpr int kThreads = 4;
  std::string shared = TarMaker().file("shared").finish();
  for (int i = 0; i < kThreads; ++i) put(TarMaker().file("own", cat(i)).finish(), cat("own", i));
  put(shared, "shared");
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) {
        bool fine = store_->import(temp_ / "shared", {.name = cat("s", i), .progress = {}}) &&
                    store_->import(temp_ / cat("own", i), {.name = cat("o", i), .progress = {}});
        fine = fine && store_->resolve(cat("s", i)) && store_->list().size() >= 3 && store_->remove(cat("o", i), unused);
        if (!fine) ++failed;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(layer_count(), 2u);
  EXPECT_EQ(store_->list().size(), 1u + kThreads);
  EXPECT_TRUE(stdfs::is_empty(temp_ / "store/tmp"));
}

TEST_F(ImageStore, WhatAnotherProcessHoldsIsNotRemoved) {
  auto image = import(TarMaker().file("a").finish(), "held");
  ASSERT_TRUE(image);
  StoreOptions options{.host_root = temp_ / "host", .durable = sys::fs::Durable::no, .limits = {}};
  auto other = FileStore::open(temp_ / "store", options);
  ASSERT_TRUE(other);
  auto hold = (*other)->hold(*image);
  ASSERT_TRUE(hold);
  EXPECT_EQ(store_->remove("held", unused).error().kind(), Errc::conflict);
  EXPECT_TRUE(store_->resolve("held"));
  hold.reset();
  EXPECT_TRUE(store_->remove("held", unused));
}

TEST_F(ImageStore, LayersThatSomethingElseNeedsStay) {
  auto image = import(TarMaker().file("a").finish(), "based");
  ASSERT_TRUE(image);
  store_->set_in_use([&] { return image->layers; });
  ASSERT_TRUE(store_->remove("based", unused));
  EXPECT_TRUE(stdfs::exists(layer(image->layers.front())));
  store_->set_in_use({});
  ASSERT_TRUE(import(TarMaker().file("b").finish(), "other"));
  ASSERT_TRUE(store_->remove("other", unused));
  EXPECT_FALSE(stdfs::exists(layer(image->layers.front()))) << "the next removal takes it";
}

TEST_F(ImageStore, KnowsWhatWasUsedLast) {
  ASSERT_TRUE(import(TarMaker().file("a", "12345").finish(), "one"));
  ASSERT_TRUE(import(TarMaker().file("b", "1234567").finish(), "two"));
  struct timespec old[2] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
  for (const char* name : {"one", "two"})
    ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / cat("store/images/", file_of(cat(name, ":latest")))).c_str(), old, 0), 0);
  store_->note_use(*store_->resolve("one"));
  auto order = store_->by_last_use();
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(order[0].image.name, "two:latest");
  EXPECT_EQ(store_->resolve("one")->layer_bytes, std::vector<std::uint64_t>{5});
  EXPECT_EQ(store_->stored_bytes(), 12u + store_->resolve("host")->size_bytes);
}

TEST_F(ImageStore, APlaceThatOthersCanWriteIsRefused) {
  stdfs::create_directories(temp_ / "open/store");
  StoreOptions options{.host_root = temp_ / "host", .durable = sys::fs::Durable::no, .limits = {}};
  EXPECT_TRUE(FileStore::open(temp_ / "open/store", options));
  ::chmod((temp_ / "open").c_str(), 0777);
  EXPECT_EQ(FileStore::open(temp_ / "open/store", options).error().kind(), Errc::permission_denied);
}

}  // namespace
}  // namespace osb::image
