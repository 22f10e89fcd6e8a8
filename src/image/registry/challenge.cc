#include "image/registry/challenge.h"

#include <map>

#include "base/text.h"

namespace osb::image::registry {
namespace {

constexpr std::size_t kMaxField = 8 * 1024;

bool is_token_char(char c) {
  bool word = (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
  return word || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

struct Parsed {
  std::string scheme;
  std::map<std::string, std::string, std::less<>> parameters;
};

// One field may hold several challenges; a word that is not followed by '=' begins the next.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::vector<Parsed> all() {
    std::vector<Parsed> out;
    while (true) {
      blanks_and_commas();
      std::string word = token();
      if (word.empty()) return out;
      blanks();
      if (!rest_.starts_with('=') || out.empty()) {
        out.push_back({to_lower(word), {}});
        skip_token68();
        continue;
      }
      rest_.remove_prefix(1);
      blanks();
      auto read = value();
      if (!read) return out;
      out.back().parameters.emplace(to_lower(word), *std::move(read));
    }
  }

 private:
  void blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  void blanks_and_commas() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == ',')) rest_.remove_prefix(1);
  }
  std::string token() {
    std::size_t size = 0;
    while (size < rest_.size() && is_token_char(rest_[size])) ++size;
    std::string out(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return out;
  }
  // "Negotiate dGVzdA==": the blob belongs to the scheme, not to the next parameter.
  void skip_token68() {
    std::size_t size = 0;
    while (size < rest_.size() && (is_token_char(rest_[size]) || rest_[size] == '/')) ++size;
    std::size_t end = size;
    while (end < rest_.size() && rest_[end] == '=') ++end;
    bool ends = end == rest_.size() || rest_[end] == ',' || rest_[end] == ' ';
    if (size > 0 && ends && (end > size || rest_.substr(0, size).find('/') != rest_.npos)) rest_.remove_prefix(end);
  }
  std::optional<std::string> value() {
    if (!rest_.starts_with('"')) return token();
    std::string out;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return out;
      }
      if (rest_[i] == '\\' && ++i == rest_.size()) return std::nullopt;
      out += rest_[i];
    }
    return std::nullopt;
  }
  std::string_view rest_;
};

std::string parameter(const Parsed& parsed, std::string_view name) {
  auto found = parsed.parameters.find(name);
  return found == parsed.parameters.end() ? std::string() : found->second;
}

}  // namespace

Result<std::optional<Challenge>> choose_challenge(const std::vector<std::string_view>& fields) {
  std::optional<Challenge> chosen;
  for (std::string_view field : fields) {
    for (const Parsed& parsed : Reader(field.substr(0, kMaxField)).all()) {
      if (parsed.scheme == "basic" && !chosen) chosen = Challenge{Challenge::Scheme::basic, parameter(parsed, "realm"), {}};
      if (parsed.scheme != "bearer") continue;
      Challenge bearer{Challenge::Scheme::bearer, parameter(parsed, "realm"), parameter(parsed, "service")};
      if (bearer.realm.empty()) return Error(Errc::invalid_argument, "the registry asks for a token without saying where to get it");
      return std::optional<Challenge>(std::move(bearer));
    }
  }
  return chosen;
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = (group << 8) | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= have ? kDigits[(group >> (18 - 6 * k)) & 63] : '=';
  }
  return out;
}

}  // namespace osb::image::registry
