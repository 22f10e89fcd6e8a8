// How many requests of each key are being answered, and the bound on it: one key cannot hold every connection.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace osb::api {

class RequestCount {
  using Counts = std::map<std::string, std::size_t, std::less<>>;

 public:
  // Counts for as long as it lives. False when the key has its maximum already.
  class Mark {
   public:
    Mark() : fine_(true) {}  // counted nowhere
    Mark(Counts* counts, Counts::iterator at) : counts_(counts), at_(at), fine_(counts != nullptr) {}
    Mark(Mark&& other) noexcept : counts_(std::exchange(other.counts_, nullptr)), at_(other.at_), fine_(other.fine_) {}
    Mark& operator=(Mark&&) = delete;
    ~Mark() {
      if (counts_ != nullptr && --at_->second == 0) counts_->erase(at_);
    }
    explicit operator bool() const { return fine_; }

   private:
    Counts* counts_ = nullptr;
    Counts::iterator at_{};
    bool fine_;
  };

  explicit RequestCount(std::size_t most) : most_(most) {}
  void set_most(std::size_t most) { most_ = most; }

  Mark enter(std::string_view key) {
    auto at = counts_.find(key);
    if (at == counts_.end()) at = counts_.emplace(key, 0).first;
    if (at->second >= most_) return {nullptr, at};
    ++at->second;
    return {&counts_, at};
  }
  std::size_t of(std::string_view key) const {
    auto at = counts_.find(key);
    return at == counts_.end() ? 0 : at->second;
  }

 private:
  Counts counts_;
  std::size_t most_;
};

}  // namespace osb::api
