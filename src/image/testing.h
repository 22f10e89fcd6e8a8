// For the tests of this room: archives byte by byte (also those no honest tool would write), temporary stores, and
// pictures of a directory tree to compare.
#pragma once
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "image/file_store.h"
#include "image/sha256.h"

namespace osb::image::testing_ {

namespace stdfs = std::filesystem;

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/osb-image-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TempDir() { stdfs::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return cat(path_, "/", name); }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, std::string_view content, mode_t mode = 0644) {
  stdfs::create_directories(stdfs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
  ::chmod(path.c_str(), mode);
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// One line an object: kind, mode, owner, content or target. Times are left out.
inline std::map<std::string, std::string> picture(const std::string& root) {
  std::map<std::string, std::string> seen;
  for (const auto& entry : stdfs::recursive_directory_iterator(root)) {
    struct stat info = {};
    if (::lstat(entry.path().c_str(), &info) != 0) continue;
    char head[64];
    std::snprintf(head, sizeof head, "%06o %u:%u ", static_cast<unsigned>(info.st_mode), info.st_uid, info.st_gid);
    std::string line = head;
    if (S_ISREG(info.st_mode)) line += sha256_hex(read_file(entry.path()));
    if (S_ISLNK(info.st_mode)) line += stdfs::read_symlink(entry.path()).string();
    if (S_ISCHR(info.st_mode)) line += cat(major(info.st_rdev), ":", minor(info.st_rdev));
    seen[stdfs::relative(entry.path(), root).string()] = line;
  }
  return seen;
}

struct Fields {
  std::int64_t mode = 0644;
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  std::string link = {};
  std::int64_t size = -1;  // -1: of the content
};

// Writes tar headers by hand.
class TarMaker {
 public:
  TarMaker& dir(std::string_view path, Fields fields = {.mode = 0755}) { return entry('5', path, "", fields); }
  TarMaker& file(std::string_view path, std::string_view content = "x", Fields fields = {}) { return entry('0', path, content, fields); }
  TarMaker& symlink(std::string_view path, std::string_view target) {
    return entry('2', path, "", {.mode = 0777, .link = std::string(target)});
  }
  TarMaker& hard_link(std::string_view path, std::string_view target) { return entry('1', path, "", {.link = std::string(target)}); }
  TarMaker& fifo(std::string_view path) { return entry('6', path, "", {}); }
  TarMaker& device(std::string_view path) { return entry('3', path, "", {}); }

  // A pax record for the entry that follows; several go into one header.
  TarMaker& pax(std::string_view key, std::string_view value) {
    std::string body = cat(" ", key, "=", value, "\n");
    std::size_t size = body.size() + 1;
    while (cat(size).size() + body.size() != size) ++size;
    pax_ += cat(size, body);
    return *this;
  }
  TarMaker& raw(std::string_view bytes) {
    out_ += bytes;
    return *this;
  }
  TarMaker& entry(char type, std::string_view path, std::string_view content, const Fields& fields) {
    if (std::string records = std::exchange(pax_, {}); !records.empty()) entry('x', "pax", records, {});
    std::int64_t size = fields.size >= 0 ? fields.size : static_cast<std::int64_t>(content.size());
    char header[512] = {};
    std::memcpy(header, path.data(), std::min<std::size_t>(path.size(), 100));
    number(header + 100, 8, fields.mode);
    number(header + 108, 8, fields.uid);
    number(header + 116, 8, fields.gid);
    number(header + 124, 12, size);
    number(header + 136, 12, 1'000'000'000);
    header[156] = type;
    std::memcpy(header + 157, fields.link.data(), std::min<std::size_t>(fields.link.size(), 100));
    std::memcpy(header + 257,
                "ustar\0"
                "00",
                8);
    std::memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header + 148, 8, "%06o", sum);
    out_.append(header, 512);
    out_ += content;
    out_.append((512 - out_.size() % 512) % 512, '\0');
    return *this;
  }
  std::string unfinished() const { return out_; }
  std::string finish() const { return out_ + std::string(1024, '\0'); }

 private:
  // Octal where it fits, base 256 where it does not: as GNU tar does for large and negative numbers.
  static void number(char* at, std::size_t width, std::int64_t value) {
    if (value >= 0 && value < (std::int64_t{1} << (3 * (width - 1)))) {
      std::snprintf(at, width, "%0*llo", static_cast<int>(width - 1), static_cast<unsigned long long>(value));
      return;
    }
    for (std::size_t i = 0; i < width; ++i) {
      std::size_t shift = 8 * (width - 1 - i);
      at[i] = static_cast<char>(shift >= 64 ? (value < 0 ? 0xff : 0) : (value >> shift) & 0xff);
    }
    at[0] = static_cast<char>(at[0] | static_cast<char>(0x80));
  }
  std::string out_;
  std::string pax_;
};

inline std::string compress(std::string_view data, int filter) {
  std::string out(data.size() * 2 + 65536, '\0');
  std::size_t used = 0;
  archive* a = archive_write_new();
  archive_write_add_filter(a, filter);
  archive_write_set_format_raw(a);
  archive_write_set_bytes_per_block(a, 0);
  archive_write_open_memory(a, out.data(), out.size(), &used);
  archive_entry* e = archive_entry_new();
  archive_entry_set_filetype(e, AE_IFREG);
  archive_write_header(a, e);
  archive_write_data(a, data.data(), data.size());
  archive_entry_free(e);
  archive_write_close(a);
  archive_write_free(a);
  out.resize(used);
  return out;
}
// The same bytes each time: without the second it was made in, which the library puts in front.
inline std::string gzip(std::string_view data) {
  auto out = compress(data, ARCHIVE_FILTER_GZIP);
  out.replace(4, 4, 4, '\0');
  return out;
}
inline std::string zstd(std::string_view data) { return compress(data, ARCHIVE_FILTER_ZSTD); }

// An image as files of an OCI layout: path -> content.
class OciMaker {
 public:
  std::string blob(std::string content) {
    std::string hex = sha256_hex(content);
    files_["blobs/sha256/" + hex] = std::move(content);
    return hex;
  }
  std::string descriptor(const std::string& media_type, const std::string& hex, const std::string& more = "") {
    return cat(R"({"mediaType":")", media_type, R"(","digest":"sha256:)", hex, R"(","size":)", files_["blobs/sha256/" + hex].size(), more,
               "}");
  }
  // `blobs`: as stored; `tars`: uncompressed.
  std::string manifest(const std::vector<std::string>& tars, const std::vector<std::string>& blobs, const std::string& config = "{}") {
    std::string diffs, layers;
    for (std::size_t i = 0; i < tars.size(); ++i) {
      diffs += cat(i == 0 ? "" : ",", R"("sha256:)", sha256_hex(tars[i]), '"');
      std::string type = blobs[i] == tars[i] ? "" : blobs[i].starts_with("\x1f\x8b") ? "+gzip" : "+zstd";
      layers += cat(i == 0 ? "" : ",", descriptor("application/vnd.oci.image.layer.v1.tar" + type, blob(blobs[i])));
    }
    std::string config_hex =
        blob(cat(R"({"os":"linux","architecture":"amd64","config":)", config, R"(,"rootfs":{"type":"layers","diff_ids":[)", diffs, "]}}"));
    return blob(cat(R"({"schemaVersion":2,"config":)", descriptor("application/vnd.oci.image.config.v1+json", config_hex), R"(,"layers":[)",
                    layers, "]}"));
  }
  OciMaker& index(const std::string& manifests) {
    files_["oci-layout"] = R"({"imageLayoutVersion":"1.0.0"})";
    files_["index.json"] = cat(R"({"schemaVersion":2,"manifests":[)", manifests, "]}");
    return *this;
  }
  std::map<std::string, std::string>& files() { return files_; }
  void write_to(const std::string& dir) const {
    for (const auto& [path, content] : files_) write_file(cat(dir, "/", path), content);
  }
  std::string tar() const {
    TarMaker maker;
    for (const auto& [path, content] : files_) maker.file(path, content);
    return maker.finish();
  }

 private:
  std::map<std::string, std::string> files_;
};

inline constexpr const char* kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr const char* kIndexType = "application/vnd.oci.image.index.v1+json";

// A store in a temporary directory, beside a small make-believe host and a place for archives.
class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(temp_ / "host/etc/os-release", "ID=pretend\n");
    stdfs::create_directories(temp_ / "host/usr/bin");
    stdfs::create_symlink("usr/bin", temp_ / "host/bin");
    reopen();
  }
  void reopen() {
    store_.reset();
    StoreOptions options{.host_root = temp_ / "host", .durable = sys::fs::Durable::no, .limits = {}};
    auto opened = FileStore::open(temp_ / "store", options);
    ASSERT_TRUE(opened) << opened.error().what();
    store_ = *std::move(opened);
  }
  std::string put(std::string_view bytes, std::string_view name = "archive") {
    write_file(temp_ / name, bytes);
    return temp_ / name;
  }
  Result<Image> import(std::string_view bytes, std::string name = "test", std::uint64_t max_bytes = 256u << 20,
                       std::uint64_t max_entries = 10000) {
    return store_->import(put(bytes), {.name = std::move(name), .max_bytes = max_bytes, .max_entries = max_entries, .progress = {}});
  }
  std::string layer(const std::string& hex, std::string_view path = "") {
    return temp_ / cat("store/layers/", hex, path.empty() ? "" : "/", path);
  }

  TempDir temp_;
  std::unique_ptr<FileStore> store_;
};

}  // namespace osb::image::testing_
