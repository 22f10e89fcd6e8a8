// POST /files/replace: every occurrence of a text in files, literally. All files change or none.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "execd/files/work.h"
#include "execd/setup.h"

namespace osb::execd::files {

inline constexpr std::size_t kMaxReplaced = 128;  // files of one request

Result<std::unique_ptr<Work>> replace(const Setup& setup, std::string_view body, bool verbose);

// Finds every occurrence of `old` in text that comes in pieces, in time linear in the text whatever `old` is
// (Knuth, Morris, Pratt), and holds nothing back but what `old` itself says.
class Replacer {
 public:
  Replacer(std::string old, std::string replacement);
  // Appends to `out` what is certain now.
  void feed(std::string_view text, std::string& out);
  void finish(std::string& out);
  std::uint64_t count() const { return count_; }

 private:
  std::string old_;
  std::string new_;
  std::vector<std::uint32_t> border_;  // of each prefix of old_: its longest proper prefix that is also its end
  std::size_t matched_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace osb::execd::files
