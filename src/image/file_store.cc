#include "image/file_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "image/host_tree.h"
#include "image/record.h"
#include "image/reference.h"
#include "image/registry/blob.h"
#include "sys/fs_open.h"
#include "sys/fs_walk.h"
#include "sys/kernel_file.h"

namespace osb::image {
namespace {

namespace fs = sys::fs;

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY;
constexpr std::size_t kMaxImages = 100'000;

Result<Fd> own_dir(int above, const std::string& name) {
  auto made = fs::make_dir_at(above, name, 0700);
  if (!made && made.error().sys() != EEXIST) return std::move(made).error();
  return fs::open_beneath(above, name, kOpenDir);
}

// The name of an image that no longer has another.
std::string bare_name(const Image& image) { return image.digest == kHostName ? cat("sha256:", image.layers.front()) : image.digest; }

Error not_found(std::string_view reference, const std::vector<Image>& have) {
  std::vector<std::string_view> names;
  for (const Image& image : have) {
    names.push_back(image.name);
    if (std::string_view name = image.name; name.ends_with(":latest")) names.push_back(name.substr(0, name.size() - 7));
  }
  auto close = nearest(reference, names);
  std::string hint = close ? cat("did you mean \"", *close, "\"? ") : "";
  if (::geteuid() != 0) hint += "an ordinary user has the image host only; ";
  hint += "`opensandbox image ls` shows what there is; `opensandbox image pull` and `opensandbox image import` add one";
  return Error(Errc::not_found, cat("no image named ", json_string(reference.substr(0, 200))))
      .with_code("SANDBOX::IMAGE_NOT_FOUND")
      .with_hint(hint)
      .at("image");
}

}  // namespace

Result<> check_may_add() {
  if (::geteuid() == 0) return Ok{};
  return Error(Errc::unsupported, "an ordinary user has the image host only: files of other images keep owners that only root can give")
      .with_code("SANDBOX::IMAGE_NOT_FOUND")
      .with_hint("use the image host, or run the daemon as root with the runtime native")
      .at("image");
}

Result<std::unique_ptr<FileStore>> FileStore::open(const std::string& root, StoreOptions options) {
  std::unique_ptr<FileStore> store(new FileStore(std::move(options)));
  CHECK_OK(store->prepare(root));
  TRY(auto held, store->lock());
  CHECK_OK(sweep_work_dirs(store->tmp_.get()));
  CHECK_OK(store->publish_host());
  CHECK_OK(store->collect_layers());
  CHECK_OK(registry::Downloads(store->downloads_.get()).trim(registry::kMaxKeptDownloads));
  return store;
}

Result<> FileStore::prepare(const std::string& root) {
  if (auto made = sys::make_dirs(root, 0700); !made) return std::move(made).error().in("image store");
  CHECK_OK(fs::check_path_is_ours(root));
  TRY(root_, fs::open_directory(root));
  CHECK_OK(fs::set_mode(root_.get(), 0700));  // what is in it keeps the modes of images, setuid bits among them
  TRY(layers_, own_dir(root_.get(), "layers"));
  TRY(images_, own_dir(root_.get(), "images"));
  TRY(snapshots_, own_dir(root_.get(), "snapshots"));
  TRY(tmp_, own_dir(root_.get(), "tmp"));
  TRY(downloads_, own_dir(root_.get(), "downloads"));
  return Ok{};
}

Result<Fd> FileStore::lock() const {
  TRY(auto file, fs::open_beneath(root_.get(), "lock", O_RDWR | O_CREAT, 0600));
  TRY([[maybe_unused]] bool held, fs::lock_exclusive(file.get(), fs::LockWait::yes));
  return file;
}

// The layer's name is the hash of all that is in it: a host that changed gives another layer, and one that did not
// finds its layer there. Sandboxes may still run on the former one, so that stays until someone removes it by name.
Result<> FileStore::publish_host() {
  auto tree = host_tree(options_.host_root);
  if (!tree) return std::move(tree).error().in("host image");
  host_.name = host_.digest = kHostName;
  host_.layers = {tree->digest()};
  host_.host_view = true;
  host_.size_bytes = tree->content_bytes();
  TRY(bool exists, layer_exists(host_.layers.front()));
  auto before = read_record(std::string(kHostName));
  if (exists && before && before->layers == host_.layers) {
    host_.created_at = before->created_at;
    return Ok{};
  }
  host_.created_at = format_rfc3339(wall_now());
  TRY(auto work, WorkDir::make(tmp_.get()));
  BuiltImage built{host_, {}};
  if (!exists) {
    TRY(auto dir, work.make_dir(host_.layers.front()));
    if (auto written = tree->write_to(dir.get()); !written) return std::move(written).error().in("host image");
    built.made = host_.layers;
    CHECK_OK(flush_new_layers(work, built.made));
  }
  return commit(work, built);
}

Result<Image> FileStore::resolve(const std::string& reference) const {
  TRY(auto name, full_name(reference));
  if (name == kHostName) return host_;
  auto found = read_record(name);
  if (!found && found.error().kind() == Errc::not_found && name.starts_with("sha256:")) found = find_digest(name);
  if (!found && found.error().kind() == Errc::not_found) return not_found(reference, list());
  return found;
}

Result<Image> FileStore::find_digest(const std::string& digest) const {
  TRY(auto records, read_records());
  for (Image& image : records.images)
    if (image.digest == digest) return std::move(image);
  return Error(Errc::not_found, cat("no image with digest ", digest));
}

Result<Image> FileStore::read_record(const std::string& name) const {
  auto file = fs::open_beneath(images_.get(), file_of(name), O_RDONLY);
  if (!file && file.error().sys() == ENOENT) return Error(Errc::not_found, cat("no image ", name));
  if (!file) return std::move(file).error();
  TRY(auto text, fs::read_to_end(file->get(), kMaxRecord));
  auto image = from_record(text);
  if (!image) return std::move(image).error().in(cat("image ", name));
  return image;
}

Result<FileStore::Records> FileStore::read_records() const { return read_records_in(images_.get()); }

Result<FileStore::Records> FileStore::read_records_in(int dir) const {
  TRY(auto files, fs::list_dir(dir, kMaxImages));
  Records records;
  for (const std::string& file : files) {
    if (file.starts_with('.')) continue;  // a replacement under way, or cut short by a crash
    auto fd = fs::open_beneath(dir, file, O_RDONLY);
    if (!fd && fd.error().sys() == ENOENT) continue;  // removed since it was listed
    auto text = fd ? fs::read_to_end(fd->get(), kMaxRecord) : Result<std::string>(fd.error());
    auto image = text ? from_record(*text) : Result<Image>(text.error());
    if (image) {
      records.images.push_back(*std::move(image));
      continue;
    }
    records.complete = false;
    log::warn("image record cannot be read", {{"file", file}, {"error", image.error().what()}});
  }
  return records;
}

std::vector<Image> FileStore::list() const {
  auto records = read_records();
  std::vector<Image> images = {host_};
  if (!records) {
    log::warn("images cannot be listed", {{"error", records.error().what()}});
    return images;
  }
  for (Image& image : records->images)
    if (image.name != kHostName) images.push_back(std::move(image));
  std::sort(images.begin() + 1, images.end(), [](const Image& a, const Image& b) { return a.name < b.name; });
  return images;
}

Result<bool> FileStore::layer_exists(const std::string& layer) const {
  auto info = fs::stat_at(layers_.get(), layer);
  if (!info && info.error().sys() == ENOENT) return false;
  if (!info) return std::move(info).error();
  return S_ISDIR(info->st_mode);
}

Result<std::uint64_t> FileStore::layer_size(const std::string& layer) const {
  TRY(auto dir, fs::open_beneath(layers_.get(), layer, kOpenDir));
  TRY(auto size, fs::measure_tree(dir.get()));
  return size.bytes;
}

Result<Image> FileStore::import(const std::string& path, const ImportOptions& options) {
  CHECK_OK(check_may_add());
  std::string wanted;
  if (!options.name.empty()) {
    TRY(wanted, new_name(options.name));
  }
  TRY(auto held, lock());
  TRY(auto work, WorkDir::make(tmp_.get()));
  held.reset();
  BudgetLimits limits = options_.limits;
  limits.max_bytes = options.max_bytes;
  limits.max_entries = options.max_entries;
  Budget budget(limits, root_.get(), options.progress);
  ImportContext context{work, budget, wanted, [this](const std::string& layer) { return layer_exists(layer); },
                        [this](const std::string& layer) { return layer_size(layer); }};
  auto built = import_path(path, context);
  if (!built) return std::move(built).error().in(cat("import ", json_string(path)));
  built->image.created_at = format_rfc3339(wall_now());
  CHECK_OK(flush_new_layers(work, built->made));
  TRY(held, lock());
  CHECK_OK(commit(work, *built));
  if (options.progress) options.progress(budget.bytes(), budget.entries());
  return std::move(built->image);
}

Result<> FileStore::commit(const WorkDir& work, const BuiltImage& built) {
  auto done = [&]() -> Result<> {
    CHECK_OK(move_layers(work, built.made));
    for (const std::string& layer : built.image.layers) {
      TRY(bool there, layer_exists(layer));
      if (!there) return Error(Errc::conflict, cat("layer ", layer, " was removed during the import")).with_hint("import again");
    }
    CHECK_OK(keep_replaced(built.image));
    CHECK_OK(write_record(built.image));
    return drop_bare_record(built.image);
  }();
  if (done) return done;
  if (auto collected = collect_layers(); !collected) log::warn("layers of a failed import stay", {{"error", collected.error().what()}});
  return done;
}

// Before the lock is taken: a busy disk makes this slow. A layer that another brought meanwhile is taken from there; should
// it go again before the commit, the commit fails.
Result<> FileStore::flush_new_layers(const WorkDir& work, std::vector<std::string>& made) const {
  for (auto layer = made.begin(); layer != made.end();) {
    TRY(bool there, layer_exists(*layer));
    layer = there ? made.erase(layer) : std::next(layer);
  }
  return made.empty() || options_.durable == fs::Durable::no ? Result<>(Ok{}) : fs::flush_file_system(work.dir());
}

Result<> FileStore::move_layers(const WorkDir& work, const std::vector<std::string>& made) {
  for (const std::string& layer : made) {
    auto moved = fs::rename_new_at(work.dir(), layer, layers_.get(), layer);
    if (!moved && moved.error().kind() != Errc::conflict) return moved;  // another import brought the same layer: as good
  }
  return options_.durable == fs::Durable::yes ? fs::flush(layers_.get()) : Result<>(Ok{});
}

// An image that loses its last name keeps its digest for one: sandboxes may run on it.
Result<> FileStore::keep_replaced(const Image& by) {
  auto before = read_record(by.name);
  if (!before && before.error().kind() == Errc::not_found) return Ok{};
  if (!before) return std::move(before).error();
  if (before->layers == by.layers && before->digest == by.digest) return Ok{};
  before->digest = bare_name(*before);
  TRY(auto records, read_records());
  for (const Image& other : records.images)
    if (other.digest == before->digest && other.name != before->name) return Ok{};
  before->name = before->digest;
  return write_record(*before);
}

// An image that has a name again needs its digest for one no longer.
Result<> FileStore::drop_bare_record(const Image& named) {
  if (named.name == kHostName || named.name == named.digest) return Ok{};
  auto dropped = fs::unlink_at(images_.get(), file_of(named.digest));
  return dropped || dropped.error().sys() == ENOENT ? Result<>(Ok{}) : std::move(dropped);
}

Result<> FileStore::write_record(const Image& image) {
  return fs::replace_file(images_.get(), file_of(image.name), to_record(image), 0600, options_.durable);
}

Result<> FileStore::remove(const std::string& reference, const std::function<bool(const Image&)>& in_use) {
  TRY(auto image, resolve(reference));
  if (image.name == kHostName) return Error(Errc::invalid_argument, "the host image is built in and cannot be removed");
  TRY(auto held, lock());
  TRY(image, resolve(reference));  // again, now that nobody can change it
  if (in_use && in_use(image))
    return Error(Errc::conflict, cat("a sandbox runs on image ", image.name)).with_hint("delete the sandbox first");
  CHECK_OK(check_unheld(image));
  CHECK_OK(fs::unlink_at(images_.get(), file_of(image.name)));
  return collect_layers();
}

// A layer leaves by a rename, so that what stands in layers/ is complete at every moment.
Result<> FileStore::collect_layers() {
  TRY(auto records, read_records());
  TRY(auto snapshots, read_records_in(snapshots_.get()));
  if (!records.complete || !snapshots.complete) return Ok{};
  std::set<std::string> wanted(host_.layers.begin(), host_.layers.end());
  for (const Image& image : records.images) wanted.insert(image.layers.begin(), image.layers.end());
  for (const Image& image : snapshots.images) wanted.insert(image.layers.begin(), image.layers.end());
  if (in_use_)
    for (std::string& layer : in_use_()) wanted.insert(std::move(layer));
  TRY(auto names, fs::list_dir(layers_.get(), kMaxImages));
  for (const std::string& name : names) {
    if (wanted.contains(name)) continue;
    std::string aside = cat("gone-", random_hex(8));
    CHECK_OK(fs::rename_at(layers_.get(), name, tmp_.get(), aside));
    CHECK_OK(fs::remove_tree(tmp_.get(), aside));
  }
  return Ok{};
}

Result<std::unique_ptr<Store>> Store::open(const std::string& root) {
  TRY(auto store, FileStore::open(root, StoreOptions{}));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace osb::image
