// Snapshots and named volumes over fakes: states, ownership, restarts, who keeps what alive.
#include "lifecycle/service_fixture.h"

namespace osb::lifecycle {
namespace {

class StorageTest : public ServiceFixture {
 protected:
  SnapshotState state_of(const std::string& id) { return service_->snapshots().get(id, kLocal)->state; }
  std::string ready(const SandboxId& sandbox) {
    auto made = service_->snapshots().create(sandbox, "", kAlice);
    EXPECT_TRUE(made) << made.error().what();
    auto id = made->id.text();
    EXPECT_TRUE(until([&] { return state_of(id) == SnapshotState::ready; }));
    return id;
  }
  Result<Sandbox> restore(const std::string& snapshot, const Caller& caller = kAlice) {
    auto wanted = spec();
    wanted.image = "";
    wanted.snapshot_id = snapshot;
    return run(service_->create(wanted, caller));
  }
  Result<Sandbox> with_volume(const std::string& claim, bool goes_along, const Caller& caller = kAlice) {
    auto wanted = spec();
    wanted.volumes.push_back({.name = "v", .host_path = "", .claim = claim, .mount_path = "/data", .sub_path = ""});
    wanted.volumes.back().delete_with_sandbox = goes_along;
    return run(service_->create(wanted, caller));
  }
  std::size_t volumes() { return service_->volumes().list(kLocal).size(); }
};

TEST_F(StorageTest, ASnapshotIsAcceptedThenReadyAndOutlivesItsSource) {
  auto source = make();
  auto made = service_->snapshots().create(source.id, "base", kAlice);
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->state == SnapshotState::creating && made->reason == "snapshot_accepted" &&
              made->message == "Snapshot creation accepted.");
  auto id = made->id.text();
  EXPECT_EQ(service_->snapshots().remove(id, kAlice).error().code(), "SNAPSHOT::INVALID_STATE");
  EXPECT_EQ(restore(id).error().code(), "SNAPSHOT::NOT_READY");
  ASSERT_TRUE(until([&] { return state_of(id) == SnapshotState::ready; }));
  ASSERT_TRUE(run(service_->destroy(source.id, kAlice)));
  auto copy = restore(id);
  ASSERT_TRUE(copy) << copy.error().what();
  EXPECT_TRUE(copy->spec.snapshot_id == id && copy->spec.layers.size() == 2);
  EXPECT_EQ(service_->snapshots().remove(id, kAlice).error().code(), "SNAPSHOT::DELETE_CONFLICT");
  EXPECT_TRUE(service_->image_in_use("host"));
  ASSERT_TRUE(run(service_->destroy(copy->id, kAlice)));
  ASSERT_TRUE(service_->snapshots().remove(id, kAlice));
  EXPECT_TRUE(until([&] { return !service_->snapshots().get(id, kLocal) && images_.kept.empty() && store_.snapshot_rows.empty(); }));
  EXPECT_FALSE(service_->image_in_use("host"));
}

TEST_F(StorageTest, AnotherKeysSnapshotDoesNotExist) {
  auto id = ready(make().id);
  EXPECT_EQ(service_->snapshots().get(id, kBob).error().code(), "SNAPSHOT::NOT_FOUND");
  EXPECT_EQ(service_->snapshots().remove(id, kBob).error().code(), "SNAPSHOT::NOT_FOUND");
  EXPECT_EQ(restore(id, kBob).error().code(), "SNAPSHOT::NOT_FOUND");
  EXPECT_EQ(service_->snapshots().list({}, 1, 10, kBob).total, 0u);
  EXPECT_EQ(service_->snapshots().list({}, 1, 10, kAlice).total, 1u);
}

TEST_F(StorageTest, WhatTheRuntimeCannotCopyHasFailedWithItsReason) {
  auto source = make();
  runtime_.fail_next("snapshot", Error(Errc::timeout, "it took too long"));
  auto made = service_->snapshots().create(source.id, "", kAlice);
  ASSERT_TRUE(made && until([&] { return state_of(made->id.text()) == SnapshotState::failed; }));
  EXPECT_EQ(service_->snapshots().get(made->id.text(), kAlice)->reason, "snapshot_runtime_timeout");
  runtime_.end(source.id, runtime::EndCause::exited);
  EXPECT_EQ(service_->snapshots().create(source.id, "", kAlice).error().code(), "SNAPSHOT::INVALID_SOURCE_STATE");
}

TEST_F(StorageTest, ARestartTellsFromTheLayersWhatBecameOfASnapshot) {
  auto whole = ready(make().id), lost = ready(make().id), half = ready(make().id), leaving = ready(make().id);
  store_.snapshot_rows.at(whole).state = SnapshotState::creating;
  images_.kept.erase(lost);
  store_.snapshot_rows.at(half).state = SnapshotState::creating;
  images_.kept.erase(half);
  store_.snapshot_rows.at(leaving).state = SnapshotState::deleting;
  images_.kept[random_id_text()] = {};
  ASSERT_TRUE(restart());
  EXPECT_EQ(state_of(whole), SnapshotState::ready);
  EXPECT_EQ(state_of(lost), SnapshotState::failed);
  EXPECT_EQ(state_of(half), SnapshotState::failed);
  EXPECT_TRUE(until([&] { return images_.kept.size() == 1 && store_.snapshot_rows.size() == 3; })) << "the deleted one and the orphan go";
}

TEST_F(StorageTest, SnapshotsCannotBeStackedWithoutEnd) {
  auto id = ready(make().id);
  images_.kept.at(id).snapshot_layers = Snapshots::kMaxChain;
  auto copy = restore(id);
  ASSERT_TRUE(copy);
  auto error = service_->snapshots().create(copy->id, "", kAlice).error();
  EXPECT_EQ(error.code(), "SNAPSHOT::INVALID_SOURCE_STATE");
  EXPECT_FALSE(error.hint().empty());
}

TEST_F(StorageTest, AVolumeMadeOnDemandGoesWithTheLastThatUsesIt) {
  auto one = with_volume("data", true), two = with_volume("data", true);
  ASSERT_TRUE(one && two) << one.error().what();
  EXPECT_EQ(volumes(), 1u);
  ASSERT_TRUE(run(service_->destroy(one->id, kAlice)));
  EXPECT_EQ(volumes(), 1u);
  runtime_.end(two->id, runtime::EndCause::expired);
  EXPECT_EQ(volumes(), 0u);
  EXPECT_TRUE(until([&] { return runtime_.removed_volumes.size() == 1; }));
}

TEST_F(StorageTest, AVolumeThatWasMadeByHandStays) {
  ASSERT_TRUE(service_->volumes().create("data", 16 << 20, kAlice));
  auto sandbox = with_volume("data", true);
  ASSERT_TRUE(sandbox);
  EXPECT_EQ(service_->volumes().remove("data", kAlice).error().code(), "VOLUME::IN_USE");
  ASSERT_TRUE(run(service_->destroy(sandbox->id, kAlice)));
  EXPECT_EQ(volumes(), 1u);
  EXPECT_TRUE(service_->volumes().remove("data", kAlice));
}

TEST_F(StorageTest, AVolumeBelongsToItsKeyOrToEverybody) {
  ASSERT_TRUE(with_volume("own", false));
  EXPECT_EQ(service_->volumes().list(kBob).size(), 0u);
  auto bobs = with_volume("own", false, kBob);
  ASSERT_TRUE(bobs);
  EXPECT_EQ(volumes(), 2u) << "bob's is another one";
  ASSERT_TRUE(service_->volumes().create("common", 16 << 20, kLocal));
  ASSERT_TRUE(with_volume("common", false, kBob));
  EXPECT_EQ(volumes(), 3u);
  EXPECT_EQ(service_->volumes().remove("common", kBob).error().kind(), Errc::permission_denied);
}

TEST_F(StorageTest, ACreateThatFailsMakesNoVolume) {
  runtime_.fail_next("create", Error(Errc::internal, "no"));
  EXPECT_FALSE(with_volume("data", false));
  EXPECT_EQ(volumes(), 0u);
  EXPECT_TRUE(store_.volume_rows.empty());
  auto wanted = spec();
  wanted.volumes.push_back({.name = "v", .host_path = "/etc", .claim = "", .mount_path = "/data", .sub_path = ""});
  EXPECT_EQ(run(service_->create(wanted, kAlice)).error().code(), "VOLUME::HOST_PATH_NOT_ALLOWED");
}

}  // namespace
}  // namespace osb::lifecycle
