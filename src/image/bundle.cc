#include "image/bundle.h"

#include <fcntl.h>

#include <cerrno>

#include "base/text.h"
#include "image/archive_reader.h"
#include "image/layer_writer.h"
#include "image/sha256.h"
#include "sys/fs_open.h"

namespace osb::image {
namespace {

constexpr std::size_t kMaxMembers = 20'000;

Error absent(const std::string& member) {
  return Error(Errc::not_found, cat("the archive has no ", json_string(std::string_view(member).substr(0, 200))));
}

// A file source that owns what it reads from.
class OwnedFile : public ByteSource {
 public:
  OwnedFile(Fd fd, std::unique_ptr<FileSource> source) : fd_(std::move(fd)), source_(std::move(source)) {}
  Result<Bytes> next() override { return source_->next(); }

 private:
  Fd fd_;
  std::unique_ptr<FileSource> source_;
};

class DirectoryBundle : public Bundle {
 public:
  explicit DirectoryBundle(Fd dir) : dir_(std::move(dir)) {}

  bool has(const std::string& member) const override {
    auto fd = sys::fs::open_beneath(dir_.get(), member, O_PATH);
    return static_cast<bool>(fd);
  }

  Result<std::unique_ptr<ByteSource>> open(const std::string& member) const override {
    auto fd = sys::fs::open_beneath(dir_.get(), member, O_RDONLY | O_NONBLOCK);
    if (!fd && (fd.error().sys() == ENOENT || fd.error().sys() == ENOTDIR)) return absent(member);
    if (!fd) return std::move(fd).error();
    auto source = FileSource::over(fd->get());
    if (!source) return std::move(source).error().in(member);
    return std::unique_ptr<ByteSource>(std::make_unique<OwnedFile>(*std::move(fd), *std::move(source)));
  }

 private:
  Fd dir_;
};

// The content of one member of a tar.
class MemberSource : public ByteSource {
 public:
  explicit MemberSource(std::unique_ptr<FileSource> file) : file_(std::move(file)), reader_(*file_) {}

  Result<> go_to(std::size_t ordinal) {
    for (std::size_t i = 0; i <= ordinal; ++i) {
      TRY(auto entry, reader_.next_entry());
      if (!entry) return Error(Errc::invalid_argument, "the archive changed while it was read");
    }
    return Ok{};
  }

  Result<Bytes> next() override {
    while (true) {
      TRY(auto block, reader_.next_block());
      if (!block) return Bytes();
      if (block->offset != at_) return Error(Errc::invalid_argument, "a member of the archive has holes");
      at_ += block->bytes.size();
      if (!block->bytes.empty()) return block->bytes;
    }
  }

 private:
  std::unique_ptr<FileSource> file_;
  TarReader reader_;
  std::uint64_t at_ = 0;
};

class TarBundle : public Bundle {
 public:
  explicit TarBundle(Fd tar) : tar_(std::move(tar)) {}

  Result<> index(Budget& budget) {
    TRY(auto file, FileSource::over(tar_.get()));
    TarReader reader(*file);
    for (std::size_t ordinal = 0;; ++ordinal) {
      TRY(auto entry, reader.next_entry());
      if (!entry) return Ok{};
      if (ordinal == kMaxMembers) return Error(Errc::too_large, cat("the archive has more than ", kMaxMembers, " members"));
      CHECK_OK(budget.check_clock());
      TRY(auto name, clean_path(entry->path));
      if (entry->kind == EntryKind::directory) continue;
      Member member{ordinal, entry->kind, entry->target};
      if (!members_.emplace(name, std::move(member)).second)
        return Error(Errc::invalid_argument, cat("the archive has ", json_string(name.substr(0, 200)), " twice"));
    }
  }

  bool has(const std::string& member) const override { return find(member) != nullptr; }

  Result<std::unique_ptr<ByteSource>> open(const std::string& member) const override {
    const Member* found = find(member);
    if (found == nullptr) return absent(member);
    TRY(auto file, FileSource::over(tar_.get()));
    auto source = std::make_unique<MemberSource>(std::move(file));
    CHECK_OK(source->go_to(found->ordinal));
    return std::unique_ptr<ByteSource>(std::move(source));
  }

 private:
  struct Member {
    std::size_t ordinal = 0;
    EntryKind kind = EntryKind::other;
    std::string target;
  };

  // Old docker-archives name a layer they share by a link: "b/layer.tar -> ../a/layer.tar". One hop, inside the archive.
  const Member* find(const std::string& name) const {
    auto it = members_.find(name);
    if (it == members_.end()) return nullptr;
    if (it->second.kind == EntryKind::file) return &it->second;
    std::string target = it->second.target;
    if (it->second.kind == EntryKind::symlink && target.starts_with("../")) target = target.substr(3);
    auto clean = clean_path(target);
    if (!clean || (it->second.kind != EntryKind::symlink && it->second.kind != EntryKind::hard_link)) return nullptr;
    auto linked = members_.find(*clean);
    return linked == members_.end() || linked->second.kind != EntryKind::file ? nullptr : &linked->second;
  }

  Fd tar_;
  std::map<std::string, Member> members_;
};

bool is_hex_stem(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) && is_sha256_hex(name.substr(0, name.size() - suffix.size()));
}

// Names that docker-archives and OCI layouts consist of. A root file system has others at its top.
bool may_be_in_bundle(std::string_view name) {
  if (name.empty() || name == "manifest.json" || name == "index.json" || name == "oci-layout" || name == "repositories" || name == "blobs")
    return true;
  if (name.starts_with("blobs/") || is_hex_stem(name, ".json") || is_hex_stem(name, ".tar")) return true;
  return is_sha256_hex(name.substr(0, name.find('/')));  // "<id>/layer.tar", "<id>/VERSION", "<id>/json"
}

}  // namespace

Result<std::string> Bundle::read(const std::string& member, std::size_t max_bytes) const {
  TRY(auto source, open(member));
  auto text = read_all(*source, max_bytes);
  if (!text) return std::move(text).error().in(member);
  return text;
}

std::unique_ptr<Bundle> directory_bundle(Fd dir) { return std::make_unique<DirectoryBundle>(std::move(dir)); }

Result<std::unique_ptr<Bundle>> tar_bundle(Fd tar, Budget& budget) {
  auto bundle = std::make_unique<TarBundle>(std::move(tar));
  CHECK_OK(bundle->index(budget));
  return std::unique_ptr<Bundle>(std::move(bundle));
}

Result<ArchiveShape> shape_of(ByteSource& plain_tar, Budget& budget) {
  TarReader reader(plain_tar);
  bool sign = false;
  for (std::size_t seen = 0; seen < kMaxMembers; ++seen) {
    TRY(auto entry, reader.next_entry());
    if (!entry) return sign ? ArchiveShape::bundle : ArchiveShape::root_file_system;
    CHECK_OK(budget.check_clock());
    auto name = clean_path(entry->path);
    // A name that is refused is a matter for the extractor, which says why.
    if (!name || !may_be_in_bundle(*name)) return ArchiveShape::root_file_system;
    sign = sign || *name == "manifest.json" || *name == "oci-layout";
  }
  return ArchiveShape::root_file_system;
}

}  // namespace osb::image
