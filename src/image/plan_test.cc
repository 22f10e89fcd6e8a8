#include "image/plan.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "image/json_text.h"

namespace osb::image {
namespace {

std::string config_with(std::string_view run) {
  return cat(R"({"os":"linux","architecture":")", host_architecture(), R"(","config":)", run, R"(,"rootfs":{"diff_ids":["sha256:)",
             std::string(64, 'a'), "\"]}}");
}

std::string env_of(std::size_t count, std::size_t bytes) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) list += cat(i == 0 ? "" : ",", "\"V", i, "=", std::string(bytes, 'x'), '"');
  return cat(R"({"Env":[)", list, "]}");
}

TEST(ImageConfig, ReadsWhatASandboxNeedsAndNothingElse) {
  auto config =
      parse_config(config_with(R"({"Env":["A=1","=odd","plain"],"WorkingDir":"/srv","User":"root","Cmd":["x"],"Volumes":{"/":{}}})"));
  ASSERT_TRUE(config) << config.error().what();
  ASSERT_EQ(config->env.size(), 1u);
  EXPECT_EQ(config->env[0], (std::pair<std::string, std::string>("A", "1")));
  EXPECT_EQ(config->working_dir, "/srv");
  EXPECT_EQ(config->diff_ids.size(), 1u);
}

TEST(ImageConfig, BoundsTheEnvironment) {
  EXPECT_TRUE(parse_config(config_with(env_of(1000, 10))));
  EXPECT_EQ(parse_config(config_with(env_of(1001, 10))).error().kind(), Errc::too_large);
  EXPECT_TRUE(parse_config(config_with(env_of(1, 65000))));
  EXPECT_EQ(parse_config(config_with(env_of(1, 66000))).error().kind(), Errc::too_large);
  EXPECT_EQ(parse_config(config_with(env_of(40, 60000))).error().kind(), Errc::too_large);
  EXPECT_FALSE(parse_config(config_with(R"({"Env":["A=\u0000x"]})")));
}

TEST(ImageConfig, DropsAWorkingDirectoryThatIsNoPlainPath) {
  for (const char* odd : {"relative", "/a/../../etc", "", "/proc/self/fd/../..", "/a\\u0000b"})
    EXPECT_EQ(parse_config(config_with(cat(R"({"WorkingDir":")", odd, "\"}")))->working_dir, "") << odd;
  EXPECT_EQ(parse_config(config_with(R"({"WorkingDir":7})"))->working_dir, "");
}

TEST(ImageConfig, RefusesAnotherPlatformAndMissingLayers) {
  EXPECT_EQ(parse_config(R"({"os":"windows","architecture":"amd64","rootfs":{"diff_ids":["sha256:aa"]}})").error().kind(),
            Errc::invalid_argument);
  std::string other = config_with("{}");
  other.replace(other.find("linux"), 5, "plan9");
  EXPECT_EQ(parse_config(other).error().kind(), Errc::unsupported);
  EXPECT_FALSE(parse_config(R"({"rootfs":{"diff_ids":[]}})"));
  EXPECT_FALSE(parse_config("{}"));
  EXPECT_FALSE(parse_config("[]"));
}

TEST(ImageJson, IsBoundedInDepthAndSize) {
  EXPECT_TRUE(parse_json("[" + std::string(30, '[') + std::string(30, ']') + "]", "x"));
  EXPECT_FALSE(parse_json(std::string(40, '[') + std::string(40, ']'), "x"));
  EXPECT_FALSE(parse_json(std::string(100000, '['), "x"));
  EXPECT_EQ(parse_json("\"" + std::string(5u << 20, 'a') + "\"", "x").error().kind(), Errc::too_large);
  EXPECT_FALSE(parse_json("{} {}", "x"));
  EXPECT_FALSE(parse_json("7", "x"));
}

}  // namespace
}  // namespace osb::image
