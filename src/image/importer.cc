#include "image/importer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/text.h"
#include "image/archive_reader.h"
#include "image/bundle.h"
#include "image/reference.h"
#include "image/unpack.h"
#include "model/launch_wire.h"
#include "sys/fs_file.h"
#include "sys/fs_open.h"

namespace osb::image {
namespace {

namespace fs = sys::fs;

Error refused(std::string what) { return Error(Errc::invalid_argument, std::move(what)); }

class Importer {
 public:
  explicit Importer(const ImportContext& context) : context_(context) {}

  Result<BuiltImage> from_directory(Fd dir);
  Result<BuiltImage> from_file(Fd file);

 private:
  Result<ArchiveShape> look(int file, Compression compression);
  Result<Fd> decompress_to_file(int file, Compression compression);
  Result<BuiltImage> from_root_tar(int file);
  Result<BuiltImage> from_bundle(const Bundle& bundle);
  Result<std::uint64_t> build_layer(const Bundle& bundle, const PlannedLayer& layer);
  Result<std::uint64_t> reuse_layer(ByteSource& stream, const PlannedLayer& layer);
  Result<std::string> name_for(const std::string& found) const;

  const ImportContext& context_;
  std::vector<std::string> made_;
};

Result<BuiltImage> Importer::from_directory(Fd dir) {
  auto bundle = directory_bundle(std::move(dir));
  return from_bundle(*bundle);
}

Result<BuiltImage> Importer::from_file(Fd file) {
  TRY(auto source, FileSource::over(file.get()));
  PeekedSource peeked(*source);
  TRY(auto head, peeked.peek());
  Compression compression = detect_compression(head);
  TRY(auto shape, look(file.get(), compression));
  if (shape == ArchiveShape::root_file_system) return from_root_tar(file.get());
  // Members of a bundle are read in the order the image needs them, which a compressed stream cannot do.
  if (compression != Compression::none) {
    TRY(file, decompress_to_file(file.get(), compression));
  }
  TRY(auto bundle, tar_bundle(std::move(file), context_.budget));
  return from_bundle(*bundle);
}

Result<ArchiveShape> Importer::look(int file, Compression compression) {
  Budget budget = context_.budget;  // a look costs the import nothing, but is bounded like one
  TRY(auto source, FileSource::over(file));
  auto shape = [&]() -> Result<ArchiveShape> {
    if (compression == Compression::none) return shape_of(*source, budget);
    DecompressedSource plain(*source, compression, budget);
    HashedSource counted(plain, &budget);
    return shape_of(counted, budget);
  }();
  if (shape || shape.error().kind() != Errc::invalid_argument) return shape;
  return std::move(shape)
      .error()
      .in("not an image archive")
      .with_hint(
          "accepted are: a root file system tar, a docker-archive (docker save, podman save) and an OCI layout; plain or gz, xz, zst, bz2");
}

Result<Fd> Importer::decompress_to_file(int file, Compression compression) {
  TRY(auto source, FileSource::over(file));
  Budget budget = context_.budget;  // this copy goes away again; the layers are charged when they are unpacked
  DecompressedSource plain(*source, compression, budget);
  HashedSource counted(plain, &budget);
  TRY(auto out, fs::open_beneath(context_.work.dir(), "bundle.tar", O_RDWR | O_CREAT | O_EXCL, 0600));
  while (true) {
    std::uint64_t at = counted.count();
    TRY(auto chunk, counted.next());
    if (chunk.empty()) return out;
    CHECK_OK(budget.charge_bytes(chunk.size()));
    CHECK_OK(fs::write_fully_at(out.get(), chunk, at));
  }
}

Result<BuiltImage> Importer::from_root_tar(int file) {
  TRY(auto name, name_for(""));
  TRY(auto source, FileSource::over(file));
  TRY(auto layer, context_.work.make_dir("root"));
  TRY(auto facts, unpack_layer(*source, layer.get(), context_.budget));
  if (!facts.ends_properly) return refused("the tar ends without its end mark: it is cut short");
  if (facts.passed_over > 0) log::info("device nodes and sockets of the image were left out", {{"count", facts.passed_over}});
  CHECK_OK(fs::rename_new_at(context_.work.dir(), "root", context_.work.dir(), facts.diff_id));
  Image image;
  image.name = name;
  image.digest = cat("sha256:", facts.diff_id);
  image.layers = {facts.diff_id};
  image.size_bytes = facts.bytes;
  image.layer_bytes = {facts.bytes};
  return BuiltImage{std::move(image), {facts.diff_id}};
}

Result<BuiltImage> Importer::from_bundle(const Bundle& bundle) {
  TRY(auto plan, plan_bundle(bundle, context_.wanted));
  TRY(auto name, name_for(plan.name));
  BuiltImage built;
  built.image.name = name;
  built.image.digest = plan.digest;
  built.image.env = std::move(plan.config.env);
  built.image.working_dir = std::move(plan.config.working_dir);
  auto& layers = built.image.layers;
  // Topmost first. Of a layer that comes twice only the upper one can be seen, and overlayfs takes each but once.
  for (auto layer = plan.layers.rbegin(); layer != plan.layers.rend(); ++layer) {
    if (std::find(layers.begin(), layers.end(), layer->diff_id) != layers.end()) continue;
    layers.push_back(layer->diff_id);
    if (layers.size() > wire::kMaxLayers)
      return Error(Errc::unsupported, cat("the image has more than ", wire::kMaxLayers, " layers"))
          .with_hint("squash it into fewer layers");
    auto size = build_layer(bundle, *layer);
    if (!size) return std::move(size).error().in(cat("layer ", layer->diff_id.substr(0, 12)));
    built.image.size_bytes += *size;
    built.image.layer_bytes.push_back(*size);
  }
  built.made = std::move(made_);
  return built;
}

Result<std::uint64_t> Importer::build_layer(const Bundle& bundle, const PlannedLayer& layer) {
  TRY(bool exists, context_.layer_exists(layer.diff_id));
  if (exists && context_.existing_need_no_blob) return context_.layer_size(layer.diff_id);
  if (context_.on_layer) context_.on_layer(layer.diff_id, false);
  TRY(auto source, bundle.open(layer.member));
  HashedSource blob(*source);
  std::uint64_t size = 0;
  if (exists) {
    TRY(size, reuse_layer(blob, layer));
  } else {
    // Unpacked under a name that no one looks for; it gets its own only when the digest is right.
    TRY(auto dir, context_.work.make_dir("layer"));
    TRY(auto facts, unpack_layer(blob, dir.get(), context_.budget));
    if (facts.diff_id != layer.diff_id) return refused(cat("content has digest ", facts.diff_id, ", not ", layer.diff_id));
    if (facts.passed_over > 0)
      log::info("device nodes and sockets of the layer were left out", {{"count", facts.passed_over}, {"layer", layer.diff_id}});
    CHECK_OK(fs::rename_new_at(context_.work.dir(), "layer", context_.work.dir(), layer.diff_id));
    made_.push_back(layer.diff_id);
    size = facts.bytes;
  }
  CHECK_OK(blob.drain());
  if (!layer.blob.empty() && blob.hex() != layer.blob) return refused(cat("blob ", layer.blob, " has another digest"));
  if (context_.on_layer) context_.on_layer(layer.diff_id, true);
  return size;
}

// The directory is there already, but the archive must still hold what it claims.
Result<std::uint64_t> Importer::reuse_layer(ByteSource& stream, const PlannedLayer& layer) {
  TRY(auto diff_id, hash_layer(stream, context_.budget));
  if (diff_id != layer.diff_id) return refused(cat("content has digest ", diff_id, ", not ", layer.diff_id));
  return context_.layer_size(layer.diff_id);
}

Result<std::string> Importer::name_for(const std::string& found) const {
  if (!context_.wanted.empty()) return context_.wanted;
  if (found.empty()) return refused("the archive does not say its name").with_hint("give one, as in --name tools/python:3.12").at("name");
  return new_name(found);
}

}  // namespace

Result<BuiltImage> import_path(const std::string& path, const ImportContext& context) {
  auto file = fs::open_file_for_reading(path);
  if (!file) {
    int sys = file.error().sys();
    Errc kind = sys == ENOENT || sys == ENOTDIR ? Errc::not_found : sys == EACCES ? Errc::permission_denied : Errc::internal;
    return Error(kind, file.error().what(), sys);
  }
  TRY(auto info, fs::stat_fd(file->get()));
  Importer importer(context);
  if (S_ISDIR(info.st_mode)) return importer.from_directory(*std::move(file));
  if (!S_ISREG(info.st_mode)) return refused("neither a regular file nor a directory");
  return importer.from_file(*std::move(file));
}

Result<BuiltImage> import_layout(Fd dir, const ImportContext& context) {
  Importer importer(context);
  return importer.from_directory(std::move(dir));
}

}  // namespace osb::image
