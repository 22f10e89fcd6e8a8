// Feeds arbitrary bytes to the readers behind an upload and a search, whole and in pieces, and checks what they promise: how a
// form is cut changes nothing, what was replaced is what a plain search finds, a pattern always comes to an end.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "execd/files/glob.h"
#include "execd/files/range.h"
#include "execd/files/replace.h"
#include "http/multipart.h"

namespace {

using namespace osb;

void require(bool promise) {
  if (!promise) std::abort();
}

std::string parts_of(std::string_view body, std::size_t step) {
  http::Multipart form("B");
  std::string out;
  for (std::size_t at = 0; at < body.size(); at += step) {
    std::string_view input = body.substr(at, step);
    while (!input.empty()) {
      auto before = input.size();
      auto event = form.next(input);
      require(input.size() <= before);
      if (event.kind == http::Multipart::Kind::part) out += cat("[", form.name(), ":");
      if (event.kind == http::Multipart::Kind::data) out += event.data;
      if (event.kind == http::Multipart::Kind::part_end) out += "]";
      if (event.kind == http::Multipart::Kind::end) return out + "end";
      if (event.kind == http::Multipart::Kind::failed) return out + "failed";
    }
  }
  return out;
}

std::string replaced_plainly(std::string_view text, std::string_view old, std::string_view by) {
  std::string out;
  for (auto at = text.find(old); at != text.npos; at = text.find(old)) {
    out += cat(text.substr(0, at), by);
    text.remove_prefix(at + old.size());
  }
  return out += text;
}

void check_replace(std::string_view bytes) {
  auto cut = bytes.size() / 4;
  if (cut == 0) return;
  std::string_view old = bytes.substr(0, cut);
  std::string_view text = bytes.substr(cut);
  execd::files::Replacer replacer{std::string(old), "<>"};
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 3) replacer.feed(text.substr(at, 3), out);
  replacer.finish(out);
  require(out == replaced_plainly(text, old, "<>"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto whole = parts_of(bytes, size + 1);
  require(parts_of(bytes, 1) == whole && parts_of(bytes, 7) == whole);
  http::Multipart::boundary_of(bytes);
  check_replace(bytes);
  auto half = bytes.substr(0, size / 2);
  if (auto glob = execd::files::Glob::parse(half)) (void)glob->matches(bytes.substr(half.size()));
  if (auto range = execd::files::parse_range(bytes, size)) require(range->first + range->length <= size);
  auto disposition = execd::files::content_disposition(bytes);
  require(disposition.find_first_of("\r\n") == disposition.npos);
  return 0;
}
