#include "store/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "base/text.h"
#include "store/codec.h"
#include "store/database.h"
#include "store/migrations.h"

namespace osb::store {
namespace {

namespace fs = std::filesystem;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-store-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
    path_ = dir_ + "/opensandbox.db";
  }
  void TearDown() override {
    ::umount2((dir_ + "/small").c_str(), MNT_DETACH);  // left by a test that failed half-way
    fs::remove_all(dir_);
  }

  std::unique_ptr<Store> open() {
    auto store = Store::open(path_);
    EXPECT_TRUE(store) << store.error().what();
    return store ? *std::move(store) : nullptr;
  }
  Error refused(const std::string& path = "") {
    auto store = Store::open(path.empty() ? path_ : path);
    EXPECT_FALSE(store);
    return store ? Error(Errc::internal, "it opened") : std::move(store).error();
  }

  std::string dir_;
  std::string path_;
};

Sandbox sample(int n = 0) {
  SandboxSpec spec;
  spec.image = "debian:12";
  spec.entrypoint = {"sh", "-c", "echo \"\xC3\xA9\xF0\x9F\x98\x80\"\n"};
  spec.env = {{"A", "1"}, {"QUOTE\"", "back\\slash\t"}};
  spec.metadata = {{"tag", cat("n", n)}};
  spec.extensions = {{"opensandbox.mode", "root"}};
  spec.limits = {1ull << 40, 1'024'000, 32768, 16ull << 40, 18446744073709551615ull, 7, 9};
  spec.policy = {UserMode::root, SyscallProfile::permissive, RootMode::writable};
  spec.timeout_seconds = 600;
  spec.platform = {"linux", "amd64"};
  spec.secure_access = true;
  return {.id = SandboxId::random(),
          .owner = "team-a",
          .spec = spec,
          .status = {State::paused, "CONTAINER_PAUSED", "Every process is frozen.", WallTime{1'700'000'000'123'456 + n}},
          .created_at = WallTime{1'700'000'000'000'001 + n},
          .expires_at = WallTime{1'700'000'600'000'001 + n},
          .deadline_boot_nanos = 1ull << 62,
          .boot_id = "0b9d5c1e-6f0c-4a0b-9a3c-2f7d1b0f4e55"};
}

void expect_same(const Sandbox& a, const Sandbox& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.owner, b.owner);
  EXPECT_EQ(write_spec(a.spec), write_spec(b.spec));
  EXPECT_EQ(a.spec.env, b.spec.env);
  EXPECT_EQ(a.spec.entrypoint, b.spec.entrypoint);
  EXPECT_EQ(a.spec.limits, b.spec.limits);
  EXPECT_EQ(a.spec.policy, b.spec.policy);
  EXPECT_EQ(a.spec.platform, b.spec.platform);
  EXPECT_EQ(a.spec.timeout_seconds, b.spec.timeout_seconds);
  EXPECT_EQ(a.status.state, b.status.state);
  EXPECT_EQ(a.status.reason, b.status.reason);
  EXPECT_EQ(a.status.message, b.status.message);
  EXPECT_EQ(a.status.changed_at, b.status.changed_at);
  EXPECT_EQ(a.created_at, b.created_at);
  EXPECT_EQ(a.expires_at, b.expires_at);
  EXPECT_EQ(a.deadline_boot_nanos, b.deadline_boot_nanos);
  EXPECT_EQ(a.boot_id, b.boot_id);
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Runs `body` in a child and gives its exit status; what the body does to its own rights stays there.
int in_child(const std::function<int()>& body) {
  pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(StoreTest, KeepsEveryFieldOfASandbox) {
  auto plain = sample();
  plain.spec = SandboxSpec{};
  plain.expires_at.reset();
  plain.deadline_boot_nanos = 0;
  plain.boot_id.clear();
  auto full = sample(1);
  {
    auto store = open();
    ASSERT_TRUE(store->put(plain));
    ASSERT_TRUE(store->put(full));
  }
  auto rows = open()->sandboxes();
  ASSERT_TRUE(rows) << rows.error().what();
  ASSERT_EQ(rows->size(), 2u);
  for (const auto& row : *rows) expect_same(row, row.id == full.id ? full : plain);
}

TEST_F(StoreTest, PutReplacesAndEraseIsIdempotent) {
  auto store = open();
  auto sandbox = sample();
  ASSERT_TRUE(store->put(sandbox));
  sandbox.status.state = State::running;
  ASSERT_TRUE(store->put(sandbox));
  auto rows = store->sandboxes();
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().status.state, State::running);
  EXPECT_TRUE(store->erase(sandbox.id));
  EXPECT_TRUE(store->erase(sandbox.id));
  EXPECT_TRUE(store->sandboxes()->empty());
}

TEST_F(StoreTest, KeepsImages) {
  ImageRecord image{"debian:12", "sha256:abc", {std::string(64, 'a'), std::string(64, 'b')}, R"({"Env":["A=1"]})", 1ull << 33, WallTime{5}};
  {
    auto store = open();
    ASSERT_TRUE(store->put_image(image));
    ASSERT_TRUE(store->put_image({"gone", "d", {}, "{}", 0, {}}));
    ASSERT_TRUE(store->erase_image("gone"));
    ASSERT_TRUE(store->erase_image("never there"));
  }
  auto images = open()->images();
  ASSERT_TRUE(images);
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ(images->front().layers, image.layers);
  EXPECT_EQ(images->front().config_json, image.config_json);
  EXPECT_EQ(images->front().size_bytes, image.size_bytes);
}

TEST_F(StoreTest, KeepsTheKeyOfACreateWithItsSandbox) {
  auto sandbox = sample();
  CreateKey key{"team-a", "job-1", "f00d", sandbox.id.text(), WallTime{5}};
  ASSERT_TRUE(open()->put(sandbox, key));
  auto store = open();
  EXPECT_EQ(store->sandboxes()->size(), 1u);
  auto keys = store->create_keys();
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 1u);
  EXPECT_EQ(keys->front().owner, "team-a");
  EXPECT_EQ(keys->front().key, "job-1");
  EXPECT_EQ(keys->front().fingerprint, "f00d");
  EXPECT_EQ(keys->front().sandbox, sandbox.id.text());
  EXPECT_EQ(keys->front().created_at.micros, 5);
  ASSERT_TRUE(store->erase(sandbox.id));
  EXPECT_EQ(store->create_keys()->size(), 1u) << "the key outlives its sandbox";
  ASSERT_TRUE(store->erase_create_key("team-a", "job-1"));
  ASSERT_TRUE(store->erase_create_key("team-a", "job-1"));
  EXPECT_TRUE(store->create_keys()->empty());
}

TEST_F(StoreTest, FilesAreForTheOwnerOnly) {
  auto store = open();
  ASSERT_TRUE(store->put(sample()));
  for (const auto& file : fs::directory_iterator(dir_)) {
    struct stat info{};
    ASSERT_EQ(::stat(file.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0077, 0u) << file.path();
  }
}

TEST_F(StoreTest, ASecondServerIsRefusedByName) {
  auto first = open();
  auto error = refused();
  EXPECT_EQ(error.kind(), Errc::conflict);
  EXPECT_NE(error.what().find(cat("process ", ::getpid())), std::string::npos) << error.what();
  EXPECT_FALSE(error.hint().empty());
  first.reset();
  EXPECT_NE(open(), nullptr);
}

TEST_F(StoreTest, MigratesAnOlderSchemaForward) {
  {
    auto db = Database::open(path_, Database::Mode::create);
    ASSERT_TRUE(db);
    ASSERT_TRUE(migrate(*db));
    ASSERT_TRUE(
        db->exec(cat("DROP TABLE images; DROP TABLE create_keys; DROP TABLE snapshots; DROP TABLE volumes; DROP TABLE pools; PRAGMA "
                     "user_version=1; PRAGMA "
                     "application_id=",
                     kApplicationId)));
  }
  auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->put_image({"a", "b", {}, "{}", 1, {}}));
  EXPECT_TRUE(store->put(sample()));
}

TEST_F(StoreTest, PoolsComeBackAsTheyWerePut) {
  PoolRecord pool{.name = "agents", .owner = "key", .spec = {}, .capacity = {1, 2, 3, 4}, .created_at = WallTime{7}};
  pool.spec.image = "debian:12";
  pool.spec.limits.memory_bytes = 64ull << 20;
  pool.spec.policy.user = UserMode::root;
  pool.spec.entrypoint = {"sleep", "9"};
  pool.spec.env = {{"A", "b"}};
  {
    auto store = open();
    ASSERT_TRUE(store->put_pool(pool));
    pool.capacity.buffer_max = 9;
    ASSERT_TRUE(store->put_pool(pool));
  }
  auto store = open();
  auto pools = store->pools();
  ASSERT_TRUE(pools);
  ASSERT_EQ(pools->size(), 1u);
  EXPECT_EQ(pools->front().owner, "key");
  EXPECT_EQ(pools->front().spec.image, "debian:12");
  EXPECT_EQ(pools->front().spec.limits, pool.spec.limits);
  EXPECT_EQ(pools->front().spec.policy, pool.spec.policy);
  EXPECT_EQ(pools->front().spec.entrypoint, pool.spec.entrypoint);
  EXPECT_EQ(pools->front().spec.env, pool.spec.env);
  EXPECT_EQ(pools->front().capacity, pool.capacity);
  EXPECT_EQ(pools->front().created_at.micros, 7);
  ASSERT_TRUE(store->erase_pool("agents"));
  EXPECT_TRUE(store->pools()->empty());
}

TEST_F(StoreTest, SnapshotsAndVolumesComeBackAsTheyWerePut) {
  Snapshot snapshot{.id = SnapshotId::random(),
                    .sandbox = SandboxId::random(),
                    .owner = "key",
                    .name = "n\u00e4me",
                    .state = SnapshotState::creating,
                    .reason = "snapshot_accepted",
                    .message = "m",
                    .changed_at = WallTime{2'000'000},
                    .created_at = WallTime{1'234'567},
                    .image_name = "host",
                    .image_digest = "host"};
  snapshot.size_bytes = 1ull << 40;
  Volume volume{
      .id = VolumeId::random(), .owner = "key", .name = "data", .size_bytes = 1 << 20, .on_demand = true, .created_at = WallTime{5}};
  {
    auto store = open();
    ASSERT_TRUE(store->put_snapshot(snapshot));
    snapshot.state = SnapshotState::ready;
    ASSERT_TRUE(store->put_snapshot(snapshot));
    ASSERT_TRUE(store->put_volume(volume));
    auto twin = volume;
    twin.id = VolumeId::random();
    EXPECT_FALSE(store->put_volume(twin)) << "one volume of a name an owner";
  }
  auto store = open();
  auto snapshots = store->snapshots();
  ASSERT_TRUE(snapshots && snapshots->size() == 1);
  const auto& read = snapshots->front();
  EXPECT_TRUE(read.id == snapshot.id && read.sandbox == snapshot.sandbox && read.name == snapshot.name &&
              read.state == SnapshotState::ready);
  EXPECT_TRUE(read.created_at.micros == 1'234'567 && read.size_bytes == 1ull << 40);
  auto volumes = store->volumes();
  ASSERT_TRUE(volumes && volumes->size() == 1);
  EXPECT_TRUE(volumes->front().name == "data" && volumes->front().on_demand && volumes->front().size_bytes == 1 << 20);
  EXPECT_TRUE(store->erase_snapshot(snapshot.id) && store->erase_volume(volume.id));
  EXPECT_TRUE(store->snapshots()->empty() && store->volumes()->empty());
}

TEST_F(StoreTest, ANewerSchemaIsRefusedAndNotTouched) {
  ASSERT_TRUE(open()->put(sample()));
  {
    auto db = Database::open(path_, Database::Mode::existing);
    ASSERT_TRUE(db->exec(cat("PRAGMA user_version=", latest_version() + 1)));
  }
  auto error = refused();
  EXPECT_EQ(error.kind(), Errc::unsupported);
  EXPECT_NE(error.hint().find("newer"), std::string::npos);
  {
    auto db = Database::open(path_, Database::Mode::existing);
    ASSERT_TRUE(db->exec(cat("PRAGMA user_version=", latest_version())));
  }
  EXPECT_EQ(open()->sandboxes()->size(), 1u);
}

TEST_F(StoreTest, WhatIsNoDatabaseOfOursIsRefusedAndNotTouched) {
  const std::string texts[] = {"", "hello", std::string(100'000, 'x'), std::string(4096, '\0'),
                               std::string("SQLite format 3\0", 16) + std::string(5000, '\xFF')};
  for (const auto& text : texts) {
    spill(path_, text);
    auto error = refused();
    EXPECT_EQ(error.kind(), Errc::internal) << error.what();
    EXPECT_NE(error.what().find(path_), std::string::npos) << error.what();
    EXPECT_FALSE(error.hint().empty()) << error.what();
    EXPECT_EQ(slurp(path_), text);
    fs::remove(path_);
  }
  {
    auto foreign = Database::open(path_, Database::Mode::create);
    ASSERT_TRUE(foreign->exec("CREATE TABLE t(a); INSERT INTO t VALUES(1)"));
  }
  EXPECT_NE(refused().what().find("not one of opensandbox"), std::string::npos);
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_EQ(refused().kind(), Errc::internal);
}

TEST_F(StoreTest, AWriteAheadLogWithoutItsDatabaseIsRefused) {
  spill(path_ + "-wal", "left over");
  EXPECT_NE(refused().what().find("write-ahead log"), std::string::npos);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(StoreTest, AHalfMadeNewDatabaseIsNoObstacle) {
  spill(path_ + ".new", "half");
  spill(path_ + ".new-journal", "half");
  auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->put(sample()));
}

TEST_F(StoreTest, EveryTruncationIsRefusedOrReadsWhole) {
  std::map<std::string, Sandbox> written;
  {
    auto store = open();
    for (int i = 0; i < 40; ++i) {
      auto sandbox = sample(i);
      ASSERT_TRUE(store->put(sandbox));
      written.emplace(sandbox.id.text(), sandbox);
    }
  }
  auto whole = slurp(path_);
  std::size_t refusals = 0;
  for (std::size_t keep = 0; keep < whole.size(); keep += 1000) {
    for (const auto& file : fs::directory_iterator(dir_)) fs::remove(file.path());
    spill(path_, whole.substr(0, keep));
    auto store = Store::open(path_);
    auto rows = store ? (*store)->sandboxes() : Result<std::vector<Sandbox>>(store.error());
    if (rows) {
      EXPECT_EQ(rows->size(), written.size()) << keep;
    } else {
      ++refusals;
    }
  }
  EXPECT_GT(refusals, 0u);
}

TEST_F(StoreTest, EveryBitFlipIsRefusedOrHarmless) {
  std::map<std::string, Sandbox> written;
  {
    auto store = open();
    for (int i = 0; i < 20; ++i) {
      auto sandbox = sample(i);
      ASSERT_TRUE(store->put(sandbox));
      written.emplace(sandbox.id.text(), sandbox);
    }
  }
  auto whole = slurp(path_);
  std::mt19937 random(42);
  std::size_t refusals = 0;
  for (int round = 0; round < 400; ++round) {
    for (const auto& file : fs::directory_iterator(dir_)) fs::remove(file.path());
    auto bytes = whole;
    auto at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
    spill(path_, bytes);
    auto store = Store::open(path_);
    auto rows = store ? (*store)->sandboxes() : Result<std::vector<Sandbox>>(store.error());
    if (!rows) {
      ++refusals;
      continue;
    }
    for (const auto& row : *rows) {
      ASSERT_TRUE(written.contains(row.id.text())) << "byte " << at;
      expect_same(row, written.at(row.id.text()));
    }
  }
  EXPECT_GT(refusals, 100u);
}

TEST_F(StoreTest, AChangedValueInAWholeDatabaseIsNoticed) {
  auto sandbox = sample();
  {
    auto store = open();
    ASSERT_TRUE(store->put(sandbox));
  }
  {
    auto db = Database::open(path_, Database::Mode::existing);
    ASSERT_TRUE(db->exec("UPDATE sandboxes SET owner='someone-else'"));
  }
  auto rows = open()->sandboxes();
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.error().what().find(sandbox.id.text()), std::string::npos);
}

TEST_F(StoreTest, AReadOnlyFileOrDirectoryIsAClearError) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_TRUE(open()->put(sample()));
  // The control: the same user may open it once it is his.
  auto as_nobody = [&](Errc expected, bool opens) {
    return in_child([&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 90;
      auto store = Store::open(path_);
      if (opens) return store ? 0 : 91;
      return !store && store.error().kind() == expected && store.error().what().find(dir_) != std::string::npos &&
                     !store.error().hint().empty()
                 ? 0
                 : 92;
    });
  };
  ASSERT_EQ(::chmod(dir_.c_str(), 0755), 0);
  EXPECT_EQ(as_nobody(Errc::permission_denied, false), 0) << "directory of another user";
  ASSERT_EQ(::chown(dir_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(as_nobody(Errc::permission_denied, false), 0) << "files of another user";
  for (const auto& file : fs::directory_iterator(dir_)) ASSERT_EQ(::chown(file.path().c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0400), 0);
  EXPECT_EQ(as_nobody(Errc::permission_denied, false), 0) << "read-only file";
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_EQ(as_nobody(Errc::internal, true), 0) << "control";
}

TEST_F(StoreTest, AFullDiskIsExhaustedAndPassesAgain) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root for a small tmpfs";
  auto small = dir_ + "/small";
  fs::create_directory(small);
  ASSERT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=512k"), 0) << strerror(errno);
  {
    auto store = Store::open(small + "/db");
    ASSERT_TRUE(store) << store.error().what();
    auto kept = sample();
    ASSERT_TRUE((*store)->put(kept));
    spill(small + "/ballast", std::string(600'000, 'b'));
    Result<> put = Ok{};
    int acknowledged = 1;
    for (int i = 1; i < 2000 && put; ++i) {
      put = (*store)->put(sample(i));
      if (put) ++acknowledged;
    }
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().kind(), Errc::exhausted) << put.error().what();
    EXPECT_EQ((*store)->sandboxes()->size(), static_cast<std::size_t>(acknowledged));
    fs::remove(small + "/ballast");
    EXPECT_TRUE((*store)->put(sample(5000)));
    EXPECT_TRUE((*store)->erase(kept.id));
    EXPECT_EQ((*store)->sandboxes()->size(), static_cast<std::size_t>(acknowledged));
  }
  spill(small + "/ballast", std::string(600'000, 'b'));
  auto on_full = Store::open(small + "/other");
  EXPECT_FALSE(on_full);
  EXPECT_EQ(on_full.error().kind(), Errc::exhausted) << on_full.error().what();
  ASSERT_EQ(::umount2(small.c_str(), MNT_DETACH), 0);
}

// The child puts and erases, and tells on a pipe what was acknowledged, until it is killed in the middle of it.
void write_until_killed(const std::string& path, int tell) {
  auto store = Store::open(path);
  if (!store) ::_exit(3);
  for (;;) {
    auto sandbox = sample();
    if (!(*store)->put(sandbox)) ::_exit(4);
    if (::write(tell, sandbox.id.text().data(), kIdLength) != static_cast<ssize_t>(kIdLength)) ::_exit(5);
  }
}

TEST_F(StoreTest, EverythingAcknowledgedSurvivesKillMinusNine) {
  std::set<std::string> acknowledged;
  for (int round = 0; round < 25; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    pid_t pid = ::fork();
    if (pid == 0) write_until_killed(path_, pipe[1]);
    ::close(pipe[1]);
    char id[kIdLength];
    int seen = 0;
    while (::read(pipe[0], id, sizeof id) == static_cast<ssize_t>(sizeof id)) {
      acknowledged.emplace(id, sizeof id);
      if (++seen == 20 + round * 7) ::kill(pid, SIGKILL);
    }
    ::close(pipe[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "child ended with " << WEXITSTATUS(status);
    auto store = open();
    ASSERT_NE(store, nullptr);
    auto rows = store->sandboxes();
    ASSERT_TRUE(rows) << rows.error().what();
    std::set<std::string> found;
    for (const auto& row : *rows) found.insert(row.id.text());
    for (const auto& expected : acknowledged) ASSERT_TRUE(found.contains(expected));
    // One put may have been finished but not told.
    EXPECT_LE(found.size(), acknowledged.size() + static_cast<std::size_t>(round) + 1);
  }
}

TEST(Codec, OlderRowsWithoutSomeMembersReadWithDefaults) {
  auto spec = read_spec(R"({"image":"host"})");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->limits, Limits{});
  EXPECT_EQ(spec->policy, Policy{});
  for (std::string_view text : {"[]", R"({"limits":{"pids":-1}})", R"({"limits":{"pids":4294967296}})", R"({"limits":{"pids":1.5}})",
                                R"({"policy":{"user":"god"}})", R"({"env":{"a":1}})", R"({"entrypoint":"x"})"})
    EXPECT_FALSE(read_spec(text)) << text;
}

}  // namespace
}  // namespace osb::store
