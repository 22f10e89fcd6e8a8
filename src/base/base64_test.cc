#include "base/base64.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

TEST(Base64, IsReadBackByteForByte) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(base64(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(base64("ab"), "YWI=");
  EXPECT_EQ(base64("abc"), "YWJj");
}

TEST(Base64, RefusesWhatIsNotWholeGroupsOfItsAlphabet) {
  for (const char* bad : {"a", "YWI", "YW=I", "====", "YW J", "YWJj\n", "Y===", "-_-_"}) EXPECT_FALSE(decode_base64(bad)) << bad;
  EXPECT_EQ(decode_base64(""), "");
}

}  // namespace
}  // namespace osb
