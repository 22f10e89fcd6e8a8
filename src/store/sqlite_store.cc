#include "base/text.h"
#include "store/codec.h"
#include "store/store.h"
#include "store/store_file.h"

namespace osb::store {
namespace {

constexpr std::string_view kPut =
    "INSERT OR REPLACE INTO sandboxes(id,owner,state,reason,message,changed_at,created_at,expires_at,deadline_boot_nanos,boot_id,spec,sum)"
    " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)";
constexpr std::string_view kSelect =
    "SELECT id,owner,state,reason,message,changed_at,created_at,expires_at,deadline_boot_nanos,boot_id,spec,sum FROM sandboxes ORDER BY id";
constexpr std::string_view kPutImage =
    "INSERT OR REPLACE INTO images(name,digest,layers,config_json,size_bytes,created_at) VALUES(?1,?2,?3,?4,?5,?6)";
constexpr std::string_view kSelectImages = "SELECT name,digest,layers,config_json,size_bytes,created_at FROM images ORDER BY name";

constexpr std::string_view kPutKey = "INSERT OR REPLACE INTO create_keys(owner,key,fingerprint,sandbox,created_at) VALUES(?1,?2,?3,?4,?5)";
constexpr std::string_view kSelectKeys = "SELECT owner,key,fingerprint,sandbox,created_at FROM create_keys ORDER BY created_at";
constexpr std::string_view kPutSnapshot =
    "INSERT OR REPLACE INTO snapshots(id,sandbox,owner,name,state,reason,message,changed_at,created_at,image_name,image_digest,size_bytes,"
    "entries) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)";
constexpr std::string_view kSelectSnapshots =
    "SELECT id,sandbox,owner,name,state,reason,message,changed_at,created_at,image_name,image_digest,size_bytes,entries FROM snapshots"
    " ORDER BY id";
constexpr std::string_view kPutVolume =
    "INSERT INTO volumes(id,owner,name,size_bytes,on_demand,created_at) VALUES(?1,?2,?3,?4,?5,?6)"
    " ON CONFLICT(id) DO UPDATE SET owner=?2,name=?3,size_bytes=?4,on_demand=?5,created_at=?6";
constexpr std::string_view kSelectVolumes = "SELECT id,owner,name,size_bytes,on_demand,created_at FROM volumes ORDER BY id";
constexpr std::string_view kPutPool =
    "INSERT OR REPLACE INTO pools(name,owner,spec,buffer_min,buffer_max,pool_min,pool_max,created_at) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)";
constexpr std::string_view kSelectPools =
    "SELECT name,owner,spec,buffer_min,buffer_max,pool_min,pool_max,created_at FROM pools ORDER BY name";

Error damaged_row(const std::string& id) {
  return Error(Errc::internal, cat("the stored record of sandbox ", json_string(id.substr(0, 40)), " is damaged"))
      .with_hint("restore the database from a copy, or move it away to start empty; running sandboxes are then removed");
}

Result<Sandbox> read_row(const Statement& row) {
  auto text_id = row.text(0);
  auto id = SandboxId::parse(text_id);
  auto state = parse_state(row.text(2));
  if (!id || !state) return damaged_row(text_id);
  Sandbox out{.id = *id,
              .owner = row.text(1),
              .spec = {},
              .status = {*state, row.text(3), row.text(4), WallTime{row.number(5)}},
              .created_at = WallTime{row.number(6)},
              .expires_at = std::nullopt,
              .deadline_boot_nanos = static_cast<std::uint64_t>(row.number(8)),
              .boot_id = row.text(9)};
  if (!row.is_null(7)) out.expires_at = WallTime{row.number(7)};
  auto text = row.text(10);
  if (sum_of(out, text) != row.number(11)) return damaged_row(text_id);
  auto spec = read_spec(text);
  if (!spec) return damaged_row(text_id);
  out.spec = *std::move(spec);
  return out;
}

Result<ImageRecord> read_image(const Statement& row) {
  TRY(auto layers, read_list(row.text(2)));
  return ImageRecord{
      row.text(0), row.text(1), std::move(layers), row.text(3), static_cast<std::uint64_t>(row.number(4)), WallTime{row.number(5)}};
}

Result<CreateKey> read_key(const Statement& row) {
  return CreateKey{row.text(0), row.text(1), row.text(2), row.text(3), WallTime{row.number(4)}};
}

Error damaged_record(std::string_view what, const std::string& id) {
  return Error(Errc::internal, cat("the stored record of ", what, " ", json_string(id.substr(0, 40)), " is damaged"))
      .with_hint("restore the database from a copy, or move it away to start empty; running sandboxes are then removed");
}

Result<Snapshot> read_snapshot(const Statement& row) {
  auto id = SnapshotId::parse(row.text(0));
  auto sandbox = SandboxId::parse(row.text(1));
  auto state = parse_snapshot_state(row.text(4));
  if (!id || !sandbox || !state) return damaged_record("snapshot", row.text(0));
  return Snapshot{*id,
                  *sandbox,
                  row.text(2),
                  row.text(3),
                  *state,
                  row.text(5),
                  row.text(6),
                  WallTime{row.number(7)},
                  WallTime{row.number(8)},
                  row.text(9),
                  row.text(10),
                  static_cast<std::uint64_t>(row.number(11)),
                  static_cast<std::uint64_t>(row.number(12))};
}

Result<Volume> read_volume(const Statement& row) {
  auto id = VolumeId::parse(row.text(0));
  if (!id || row.number(3) <= 0) return damaged_record("volume", row.text(0));
  return Volume{*id, row.text(1), row.text(2), static_cast<std::uint64_t>(row.number(3)), row.number(4) != 0, WallTime{row.number(5)}};
}

Result<PoolRecord> read_pool(const Statement& row) {
  auto spec = read_spec(row.text(2));
  if (!spec) return damaged_record("pool", row.text(0));
  auto count = [&](int column) { return static_cast<std::uint32_t>(row.number(column)); };
  return PoolRecord{row.text(0), row.text(1), *std::move(spec), {count(3), count(4), count(5), count(6)}, WallTime{row.number(7)}};
}

template <class T>
Result<std::vector<T>> read_all(Statement& select, Result<T> (*read)(const Statement&)) {
  std::vector<T> out;
  select.reset();
  for (;;) {
    TRY(bool more, select.step());
    if (!more) break;
    auto one = read(select);
    if (!one) {
      select.reset();
      return std::move(one).error();
    }
    out.push_back(*std::move(one));
  }
  select.reset();
  return out;
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(StoreFile file) : file_(std::move(file)) {}

  Result<> prepare() {
    TRY(put_, file_.db.prepare(kPut));
    TRY(erase_, file_.db.prepare("DELETE FROM sandboxes WHERE id=?1"));
    TRY(select_, file_.db.prepare(kSelect));
    TRY(put_image_, file_.db.prepare(kPutImage));
    TRY(erase_image_, file_.db.prepare("DELETE FROM images WHERE name=?1"));
    TRY(select_images_, file_.db.prepare(kSelectImages));
    TRY(put_key_, file_.db.prepare(kPutKey));
    TRY(erase_key_, file_.db.prepare("DELETE FROM create_keys WHERE owner=?1 AND key=?2"));
    TRY(select_keys_, file_.db.prepare(kSelectKeys));
    TRY(put_snapshot_, file_.db.prepare(kPutSnapshot));
    TRY(erase_snapshot_, file_.db.prepare("DELETE FROM snapshots WHERE id=?1"));
    TRY(select_snapshots_, file_.db.prepare(kSelectSnapshots));
    TRY(put_volume_, file_.db.prepare(kPutVolume));
    TRY(erase_volume_, file_.db.prepare("DELETE FROM volumes WHERE id=?1"));
    TRY(select_volumes_, file_.db.prepare(kSelectVolumes));
    TRY(put_pool_, file_.db.prepare(kPutPool));
    TRY(erase_pool_, file_.db.prepare("DELETE FROM pools WHERE name=?1"));
    TRY(select_pools_, file_.db.prepare(kSelectPools));
    return Ok{};
  }

  Result<> put(const Sandbox& sandbox) override {
    auto spec = write_spec(sandbox.spec);
    const auto& status = sandbox.status;
    put_.bind(1, sandbox.id.text()).bind(2, sandbox.owner).bind(3, name_of(status.state)).bind(4, status.reason).bind(5, status.message);
    put_.bind(6, status.changed_at.micros).bind(7, sandbox.created_at.micros);
    if (sandbox.expires_at) {
      put_.bind(8, sandbox.expires_at->micros);
    } else {
      put_.bind_null(8);
    }
    put_.bind(9, static_cast<std::int64_t>(sandbox.deadline_boot_nanos)).bind(10, sandbox.boot_id).bind(11, spec);
    return put_.bind(12, sum_of(sandbox, spec)).run();
  }

  Result<> put(const Sandbox& sandbox, const CreateKey& key) override {
    CHECK_OK(file_.db.exec("BEGIN IMMEDIATE"));
    auto done = put(sandbox);
    if (done)
      done =
          put_key_.bind(1, key.owner).bind(2, key.key).bind(3, key.fingerprint).bind(4, key.sandbox).bind(5, key.created_at.micros).run();
    if (done) done = file_.db.exec("COMMIT");
    if (!done) [[maybe_unused]]
      auto rolled_back = file_.db.exec("ROLLBACK");
    return done;
  }

  Result<> erase_create_key(const std::string& owner, const std::string& key) override {
    return erase_key_.bind(1, owner).bind(2, key).run();
  }
  Result<std::vector<CreateKey>> create_keys() override { return read_all<CreateKey>(select_keys_, read_key); }

  Result<> erase(const SandboxId& id) override { return erase_.bind(1, id.text()).run(); }
  Result<std::vector<Sandbox>> sandboxes() override { return read_all<Sandbox>(select_, read_row); }

  Result<> put_image(const ImageRecord& image) override {
    auto layers = write_list(image.layers);
    put_image_.bind(1, image.name).bind(2, image.digest).bind(3, layers).bind(4, image.config_json);
    return put_image_.bind(5, static_cast<std::int64_t>(image.size_bytes)).bind(6, image.created_at.micros).run();
  }
  Result<> erase_image(const std::string& name) override { return erase_image_.bind(1, name).run(); }
  Result<std::vector<ImageRecord>> images() override { return read_all<ImageRecord>(select_images_, read_image); }

  Result<> put_snapshot(const Snapshot& s) override {
    put_snapshot_.bind(1, s.id.text()).bind(2, s.sandbox.text()).bind(3, s.owner).bind(4, s.name).bind(5, name_of(s.state));
    put_snapshot_.bind(6, s.reason).bind(7, s.message).bind(8, s.changed_at.micros).bind(9, s.created_at.micros).bind(10, s.image_name);
    put_snapshot_.bind(11, s.image_digest).bind(12, static_cast<std::int64_t>(s.size_bytes));
    return put_snapshot_.bind(13, static_cast<std::int64_t>(s.entries)).run();
  }
  Result<> erase_snapshot(const SnapshotId& id) override { return erase_snapshot_.bind(1, id.text()).run(); }
  Result<std::vector<Snapshot>> snapshots() override { return read_all<Snapshot>(select_snapshots_, read_snapshot); }

  Result<> put_volume(const Volume& v) override {
    put_volume_.bind(1, v.id.text()).bind(2, v.owner).bind(3, v.name).bind(4, static_cast<std::int64_t>(v.size_bytes));
    return put_volume_.bind(5, std::int64_t{v.on_demand}).bind(6, v.created_at.micros).run();
  }
  Result<> erase_volume(const VolumeId& id) override { return erase_volume_.bind(1, id.text()).run(); }
  Result<std::vector<Volume>> volumes() override { return read_all<Volume>(select_volumes_, read_volume); }

  Result<> put_pool(const PoolRecord& p) override {
    auto spec = write_spec(p.spec);
    put_pool_.bind(1, p.name).bind(2, p.owner).bind(3, spec).bind(4, std::int64_t{p.capacity.buffer_min});
    put_pool_.bind(5, std::int64_t{p.capacity.buffer_max}).bind(6, std::int64_t{p.capacity.pool_min});
    return put_pool_.bind(7, std::int64_t{p.capacity.pool_max}).bind(8, p.created_at.micros).run();
  }
  Result<> erase_pool(const std::string& name) override { return erase_pool_.bind(1, name).run(); }
  Result<std::vector<PoolRecord>> pools() override { return read_all<PoolRecord>(select_pools_, read_pool); }

 private:
  StoreFile file_;  // first: statements are finalized before their database closes
  Statement put_, erase_, select_, put_image_, erase_image_, select_images_;
  Statement put_key_, erase_key_, select_keys_;
  Statement put_snapshot_, erase_snapshot_, select_snapshots_, put_volume_, erase_volume_, select_volumes_;
  Statement put_pool_, erase_pool_, select_pools_;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  auto file = open_store_file(path);
  if (!file) return std::move(file).error().in("open state database");
  auto store = std::make_unique<SqliteStore>(*std::move(file));
  CHECK_OK(store->prepare());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace osb::store
