#include "model/volume_request.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/text.h"

namespace osb {
namespace {

Result<std::vector<VolumeSpec>> parse(const std::string& text) { return parse_volumes(boost::json::parse(text)); }

std::string item(const std::string& members) { return cat(R"({"name":"v","host":{"path":"/srv/x"},"mountPath":"/mnt/v",)", members, "}"); }

TEST(VolumeRequest, ReadsWhatClientsSendWithTheirNulls) {
  auto volumes = parse(R"([{"name":"a","host":{"path":"/srv/x"},"pvc":null,"ossfs":null,"mountPath":"//mnt//a/","subPath":null},
    {"name":"b","pvc":{"claimName":"data","storage":"1.5Gi","storageClass":null,"accessModes":null,"createIfNotExists":false,
     "deleteOnSandboxTermination":true},"host":null,"mountPath":"/workspace","readOnly":true,"subPath":"x//y/"}])");
  ASSERT_TRUE(volumes) << volumes.error().what();
  const auto& [a, b] = std::tie((*volumes)[0], (*volumes)[1]);
  EXPECT_TRUE(a.host_path == "/srv/x" && a.mount_path == "/mnt/a" && a.sub_path.empty() && !a.read_only && a.create_if_missing);
  EXPECT_TRUE(b.claim == "data" && b.mount_path == "/workspace" && b.sub_path == "x/y" && b.read_only && !b.create_if_missing);
  EXPECT_TRUE(b.delete_with_sandbox && b.size_bytes == (3ull << 29));
}

TEST(VolumeRequest, EveryRefusalHasItsCode) {
  const std::pair<std::string, std::string> cases[] = {
      {R"([{"mountPath":"/m","host":{"path":"/x"}}])", "INVALID_NAME"},
      {R"([{"name":"-a","mountPath":"/m","host":{"path":"/x"}}])", "INVALID_NAME"},
      {cat("[", item(R"("readOnly":false)"), ",", item(R"("readOnly":true)"), "]"), "DUPLICATE_NAME"},
      {R"([{"name":"v","mountPath":"/m"}])", "INVALID_BACKEND"},
      {R"([{"name":"v","mountPath":"/m","host":{"path":"/x"},"pvc":{"claimName":"c"}}])", "INVALID_BACKEND"},
      {R"([{"name":"v","mountPath":"/m","ossfs":{"bucket":"abc"}}])", "UNSUPPORTED_BACKEND"},
      {R"([{"name":"v","mountPath":"/m","host":{"path":"x"}}])", "INVALID_HOST_PATH"},
      {R"([{"name":"v","mountPath":"/m","host":{"path":"/x/../y"}}])", "INVALID_HOST_PATH"},
      {R"([{"name":"v","mountPath":"/m","pvc":{"claimName":"a/b"}}])", "INVALID_PVC_NAME"},
      {cat("[", item(R"("subPath":"../x")"), "]"), "INVALID_SUB_PATH"},
      {cat("[", item(R"("subPath":"/x")"), "]"), "INVALID_SUB_PATH"},
  };
  for (const auto& [text, code] : cases) {
    auto volumes = parse(text);
    ASSERT_FALSE(volumes) << text;
    EXPECT_EQ(volumes.error().code(), "VOLUME::" + code) << text;
  }
  for (std::string path :
       {"", "m", "/", "//", "/proc", "/proc/self", "/sys/x", "/dev/shm", "/etc", "/etc/hosts", "/run", "/usr", "/a/../b", "/a\\n"}) {
    auto volumes = parse(cat(R"([{"name":"v","host":{"path":"/x"},"mountPath":")", path, R"("}])"));
    ASSERT_FALSE(volumes) << path;
    EXPECT_EQ(volumes.error().code(), "VOLUME::INVALID_MOUNT_PATH") << path;
  }
}

TEST(VolumeRequest, VolumesMayNotLieInsideOneAnother) {
  auto two = [](std::string a, std::string b) {
    return parse(
        cat(R"([{"name":"a","host":{"path":"/x"},"mountPath":")", a, R"("},{"name":"b","host":{"path":"/x"},"mountPath":")", b, R"("}])"));
  };
  EXPECT_FALSE(two("/mnt/a", "/mnt/a"));
  EXPECT_FALSE(two("/mnt/a", "/mnt/a/b"));
  EXPECT_FALSE(two("/mnt/a/b", "/mnt/a"));
  EXPECT_TRUE(two("/mnt/a", "/mnt/ab"));
}

TEST(VolumeRequest, SizesAreBounded) {
  EXPECT_EQ(*parse_volume_size("16Mi"), 16ull << 20);
  EXPECT_EQ(*parse_volume_size("1Ti"), 1ull << 40);
  for (std::string_view text : {"0", "15Mi", "2Ti", "1G", "-1Gi", "1Gi ", "lots", "", "1e3Mi"})
    EXPECT_FALSE(parse_volume_size(text)) << text;
}

}  // namespace
}  // namespace osb
