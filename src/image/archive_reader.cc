#include "image/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>

#include "base/text.h"

namespace osb::image {
namespace {

// libarchive converts names to the thread's character set, which may normalise them. In the "C" locale every name that
// is not ASCII fails that conversion, and its bytes come through as they are (with a warning that allow() knows).
class PlainBytesLocale {
 public:
  PlainBytesLocale() {
    static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
    before_ = ::uselocale(plain);
  }
  ~PlainBytesLocale() { ::uselocale(before_); }
  PlainBytesLocale(const PlainBytesLocale&) = delete;
  PlainBytesLocale& operator=(const PlainBytesLocale&) = delete;

 private:
  locale_t before_;
};

// A reader and the stream it pulls from. Heap-allocated: libarchive keeps its address.
struct Pull {
  explicit Pull(ByteSource& source) : below(source), handle(archive_read_new(), archive_read_free) {}
  ByteSource& below;
  std::unique_ptr<archive, int (*)(archive*)> handle;
  std::optional<Error> failure;  // of the stream below, more telling than libarchive's words
  std::uint64_t taken = 0;
  bool opened = false;
  bool ended = false;

  Result<> open();
  Error error(std::string_view doing);
};

la_ssize_t on_read(archive* handle, void* data, const void** buffer) {
  auto& pull = *static_cast<Pull*>(data);
  try {
    auto chunk = pull.below.next();
    if (chunk) {
      *buffer = chunk->data();
      pull.taken += chunk->size();
      return static_cast<la_ssize_t>(chunk->size());
    }
    pull.failure = std::move(chunk).error();
  } catch (const std::exception& e) {
    pull.failure = Error(Errc::internal, cat("read archive: ", e.what()));
  }
  archive_set_error(handle, EIO, "input failed");
  return -1;
}

la_int64_t on_skip(archive*, void* data, la_int64_t request) {
  auto& pull = *static_cast<Pull*>(data);
  return request <= 0 ? 0 : static_cast<la_int64_t>(pull.below.skip(static_cast<std::uint64_t>(request)));
}

Result<> Pull::open() {
  opened = true;
  archive* a = handle.get();
  archive_read_set_read_callback(a, on_read);
  archive_read_set_skip_callback(a, on_skip);
  archive_read_set_callback_data(a, this);
  if (archive_read_open1(a) != ARCHIVE_OK) return error("open archive");
  return Ok{};
}

Error Pull::error(std::string_view doing) {
  ended = true;
  if (failure) return *std::exchange(failure, std::nullopt);
  const char* words = archive_error_string(handle.get());
  return Error(Errc::invalid_argument, cat(doing, ": ", words != nullptr ? json_string(words) : "damaged"));
}

// Warnings mean that libarchive passed over something it could not read; an archive we cannot read fully is refused.
// The one exception is explained at PlainBytesLocale.
bool allow_warning(const char* words) { return words != nullptr && std::strstr(words, "can't be converted from UTF-8") != nullptr; }

EntryKind kind_of(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return EntryKind::hard_link;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG: return EntryKind::file;
    case AE_IFDIR: return EntryKind::directory;
    case AE_IFLNK: return EntryKind::symlink;
    case AE_IFIFO: return EntryKind::fifo;
    case AE_IFCHR:
    case AE_IFBLK: return EntryKind::device;
    default: return EntryKind::other;
  }
}

std::string text_or_empty(const char* text) { return text == nullptr ? std::string() : std::string(text); }

Entry to_entry(archive_entry* from) {
  Entry entry;
  entry.kind = kind_of(from);
  entry.path = text_or_empty(archive_entry_pathname(from));
  if (entry.kind == EntryKind::hard_link) entry.target = text_or_empty(archive_entry_hardlink(from));
  if (entry.kind == EntryKind::symlink) entry.target = text_or_empty(archive_entry_symlink(from));
  entry.mode = archive_entry_perm(from) & 07777u;
  entry.uid = archive_entry_uid(from);
  entry.gid = archive_entry_gid(from);
  entry.size = archive_entry_size_is_set(from) ? archive_entry_size(from) : 0;
  entry.mtime.tv_sec = archive_entry_mtime(from);
  long nanos = archive_entry_mtime_nsec(from);
  entry.mtime.tv_nsec = nanos >= 0 && nanos < 1'000'000'000 ? nanos : 0;
  return entry;
}

Result<std::optional<DataBlock>> block_of(Pull& pull, std::string_view doing) {
  const void* buffer = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  int rc = archive_read_data_block(pull.handle.get(), &buffer, &size, &offset);
  if (rc == ARCHIVE_EOF) return std::optional<DataBlock>();
  if (rc != ARCHIVE_OK || offset < 0) return pull.error(doing);
  return std::optional(DataBlock{{static_cast<const std::byte*>(buffer), size}, static_cast<std::uint64_t>(offset)});
}

bool begins(Bytes head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

int filter_code(Compression compression) {
  switch (compression) {
    case Compression::none: return ARCHIVE_FILTER_NONE;
    case Compression::gzip: return ARCHIVE_FILTER_GZIP;
    case Compression::bzip2: return ARCHIVE_FILTER_BZIP2;
    case Compression::xz: return ARCHIVE_FILTER_XZ;
    case Compression::zstd: return ARCHIVE_FILTER_ZSTD;
  }
  return ARCHIVE_FILTER_NONE;
}

}  // namespace

Compression detect_compression(Bytes head) {
  if (begins(head, "\x1f\x8b")) return Compression::gzip;
  if (begins(head, "BZh")) return Compression::bzip2;
  if (begins(head, std::string_view("\xfd"
                                    "7zXZ\0",
                                    6)))
    return Compression::xz;
  if (begins(head, "\x28\xb5\x2f\xfd")) return Compression::zstd;
  return Compression::none;
}

struct TarReader::State : Pull {
  using Pull::Pull;
};

TarReader::TarReader(ByteSource& below) : state_(std::make_unique<State>(below)) {
  archive_read_support_format_tar(state_->handle.get());
  archive_read_append_filter(state_->handle.get(), ARCHIVE_FILTER_NONE);  // no guessing: a tar in a tar stays a file
}
TarReader::~TarReader() = default;

Result<std::optional<Entry>> TarReader::next_entry() {
  PlainBytesLocale plain;
  if (state_->ended) return std::optional<Entry>();
  if (!state_->opened) CHECK_OK(state_->open());
  archive_entry* entry = nullptr;
  int rc = archive_read_next_header(state_->handle.get(), &entry);
  if (rc == ARCHIVE_EOF) {
    state_->ended = true;
    return std::optional<Entry>();
  }
  bool fine = rc == ARCHIVE_OK || (rc == ARCHIVE_WARN && allow_warning(archive_error_string(state_->handle.get())));
  if (!fine) return state_->error("read tar header");
  return std::optional(to_entry(entry));
}

Result<std::optional<DataBlock>> TarReader::next_block() { return block_of(*state_, "read tar content"); }

struct DecompressedSource::State : Pull {
  State(ByteSource& source, const Budget& b) : Pull(source), budget(b) {}
  const Budget& budget;
  std::uint64_t given = 0;
};

DecompressedSource::DecompressedSource(ByteSource& below, Compression compression, const Budget& budget)
    : state_(std::make_unique<State>(below, budget)) {
  archive_read_support_format_raw(state_->handle.get());
  archive_read_append_filter(state_->handle.get(), filter_code(compression));
}
DecompressedSource::~DecompressedSource() = default;

Result<Bytes> DecompressedSource::next() {
  if (state_->ended) return Bytes();
  if (!state_->opened) {
    CHECK_OK(state_->open());
    archive_entry* entry = nullptr;
    int rc = archive_read_next_header(state_->handle.get(), &entry);
    if (rc != ARCHIVE_OK) return state_->error("decompress");
  }
  while (true) {
    TRY(auto block, block_of(*state_, "decompress"));
    if (!block) {
      state_->ended = true;
      return Bytes();
    }
    state_->given += block->bytes.size();
    CHECK_OK(state_->budget.check_ratio(state_->taken, state_->given));
    if (!block->bytes.empty()) return block->bytes;
  }
}

}  // namespace osb::image
