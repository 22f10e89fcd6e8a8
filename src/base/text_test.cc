#include "base/text.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace osb {
namespace {

// Byte by byte, for ASCII.
std::string slowly(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    std::string_view escaped = c == '"' ? "\\\"" : c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : "";
    if (!escaped.empty()) {
      out += escaped;
    } else if (c < 0x20 || c == 0x7F) {
      out += hex;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

TEST(JsonString, EveryAsciiByteAtEveryPlaceIsWrittenAsOneByOne) {
  for (int byte = 0; byte < 0x80; ++byte) {
    for (std::size_t place = 0; place < 20; ++place) {
      std::string text = "abcdefgh ~!#[]^ABCDEFG";
      text[place] = static_cast<char>(byte);
      EXPECT_EQ(json_string(text), slowly(text)) << byte << " at " << place;
    }
  }
}

TEST(JsonString, BytesAboveAsciiAreFoundInEveryPlace) {
  for (std::size_t before = 0; before < 20; ++before) {
    std::string plain(before, 'x');
    EXPECT_EQ(json_string(plain + "\xC3\xA4" + plain), "\"" + plain + "\\u00e4" + plain + "\"") << before;
    EXPECT_EQ(json_string(plain + "\xFF\x80"), "\"" + plain + "\\ufffd\\ufffd\"") << before;
  }
}

TEST(Rfc3339, TimesAreWrittenWithMicroseconds) {
  EXPECT_EQ(format_rfc3339(WallTime{0}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(format_rfc3339(WallTime{1'760'000'000'000'001}), "2025-10-09T08:53:20.000001Z");
  EXPECT_EQ(format_rfc3339(WallTime{4'102'444'799'999'999}), "2099-12-31T23:59:59.999999Z");
}

}  // namespace
}  // namespace osb
