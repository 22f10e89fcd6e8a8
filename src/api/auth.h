// Who calls: API keys, kept as SHA-256 only and compared without early exit.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/http.h"
#include "model/caller.h"

namespace osb::api {

std::string sha256(std::string_view bytes);  // 32 raw bytes

class Keys {
 public:
  // Accepts every request; everybody is "anonymous" and sees every sandbox.
  static Keys insecure();

  void add(std::string name, std::string_view key, bool sees_all) { add_hash(std::move(name), sha256(key), sees_all); }
  void add_hash(std::string name, std::string raw_sha256, bool sees_all);
  // The key stands in exactly one OPEN-SANDBOX-API-KEY field; without that field, in exactly one X-API-Key field.
  Result<Caller> identify(const http::Headers& headers, const std::string& request_id) const;
  bool empty() const { return keys_.empty(); }

 private:
  struct Key {
    std::string name;
    std::string hash;
    bool sees_all;
  };
  std::vector<Key> keys_;
  bool insecure_ = false;
};

}  // namespace osb::api
