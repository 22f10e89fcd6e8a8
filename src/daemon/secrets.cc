#include "daemon/secrets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/fd.h"
#include "base/id.h"
#include "base/text.h"

namespace osb::daemon {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kMaxSecretBytes = 4096;

std::string_view without_line_end(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

Result<> check_private(const Fd& file, const std::string& path) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return Error::from_errno(cat("look at ", path), errno);
  if (!S_ISREG(info.st_mode)) return Error(Errc::invalid_argument, cat(path, " is not a regular file"));
  if ((info.st_mode & 077) == 0) return Ok{};
  return Error(Errc::permission_denied, cat(path, " can be read or written by others"))
      .with_hint(cat("chmod 600 ", path, ", and replace its content if others may have read it"));
}

Result<std::string> read_all(const Fd& file, const std::string& path) {
  std::string text(kMaxSecretBytes + 1, '\0');
  auto n = ::pread(file.get(), text.data(), text.size(), 0);
  if (n < 0) return Error::from_errno(cat("read ", path), errno);
  text.resize(static_cast<std::size_t>(n));
  auto secret = without_line_end(text);
  if (secret.empty() || secret.size() > kMaxSecretBytes)
    return Error(Errc::invalid_argument, cat(path, " must hold one line of 1 to ", kMaxSecretBytes, " bytes"));
  return std::string(secret);
}

Result<Fd> write_beside(const std::string& path, std::string_view text) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Error::from_errno(cat("create ", path), errno);
  auto n = ::write(file.get(), text.data(), text.size());
  if (n != static_cast<ssize_t>(text.size())) return Error::from_errno(cat("write ", path), n < 0 ? errno : ENOSPC);
  if (::fsync(file.get()) != 0) return Error::from_errno(cat("sync ", path), errno);
  return file;
}

// A hard link gives the complete file its name, or fails when somebody else was faster; it never replaces.
Result<> make_secret(const std::string& path, std::size_t bytes) {
  std::string beside = cat(path, ".", random_hex(8));
  auto written = write_beside(beside, cat(random_hex(bytes), "\n"));
  int linked = written ? ::link(beside.c_str(), path.c_str()) : 0;
  int failure = linked != 0 ? errno : 0;
  ::unlink(beside.c_str());
  if (!written) return std::move(written).error();
  if (failure != 0 && failure != EEXIST) return Error::from_errno(cat("create ", path), failure);
  return Ok{};
}

Result<std::string> read_key_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error::from_errno(cat("open ", path), errno, Errc::invalid_argument);
  return read_all(file, path);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

std::optional<std::string> from_hex(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
  }
  if (text.size() != 64) return std::nullopt;
  return out;
}

Result<> add_key(api::Keys& keys, const KeyConfig& key) {
  if (key.sha256.empty()) {
    TRY(auto text, read_key_file(key.key_file));
    keys.add(key.name, text, key.sees_all);
    return Ok{};
  }
  auto hash = from_hex(key.sha256);
  if (!hash) return Error(Errc::invalid_argument, cat("auth.keys: sha256 of '", key.name, "' must be 64 hex digits"));
  keys.add_hash(key.name, *std::move(hash), key.sees_all);
  return Ok{};
}

}  // namespace

Result<std::string> read_or_make_secret(const std::string& path, std::size_t bytes) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) {
    CHECK_OK(make_secret(path, bytes));
    file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  }
  if (!file) return Error::from_errno(cat("open ", path), errno);
  CHECK_OK(check_private(file, path));
  return read_all(file, path);
}

Result<api::Keys> load_keys(const Config& config) {
  if (config.auth.insecure_no_auth) return api::Keys::insecure();
  api::Keys keys;
  std::string default_key = config.auth.api_key;
  if (default_key.empty()) {
    TRY(default_key, read_or_make_secret(config.api_key_file(), kKeyBytes));
  }
  // The operator's own key sees what the local door sees; keys in the list are confined to their own sandboxes.
  keys.add("default", default_key, true);
  for (const auto& key : config.auth.keys) CHECK_OK(add_key(keys, key));
  return keys;
}

Result<image::Registries> load_registries(const Config& config) {
  image::Registries out;
  out.default_registry = config.images.default_registry;
  out.insecure = config.images.insecure_registries;
  out.trusted_hosts = config.images.trusted_hosts;
  out.ca_file = config.images.ca_file;
  for (const RegistryConfig& login : config.images.registries) {
    Fd file(::open(login.password_file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return Error::from_errno(cat("open ", login.password_file), errno, Errc::invalid_argument);
    CHECK_OK(check_private(file, login.password_file));
    TRY(auto password, read_all(file, login.password_file));
    out.logins[login.host] = {login.username, std::move(password)};
  }
  return out;
}

}  // namespace osb::daemon
