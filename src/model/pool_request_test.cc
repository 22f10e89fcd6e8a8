#include "model/pool_request.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace osb {
namespace {

constexpr std::string_view kCapacity = R"("capacitySpec":{"bufferMin":1,"bufferMax":2,"poolMin":0,"poolMax":5})";

std::string pool(std::string_view shape, std::string_view capacity = kCapacity) {
  return cat(R"({"name":"agents","template":)", shape, ",", capacity, "}");
}

TEST(PoolRequest, TakesOurOwnShape) {
  auto made =
      parse_pool(pool(R"({"image":{"uri":"debian:12"},"resourceLimits":{"memory":"64Mi"},"extensions":{"opensandbox.mode":"root"}})"), {});
  ASSERT_TRUE(made) << made.error().what();
  EXPECT_EQ(made->name, "agents");
  EXPECT_EQ(made->spec.image, "debian:12");
  EXPECT_EQ(made->spec.limits.memory_bytes, 64ull << 20);
  EXPECT_EQ(made->spec.policy.user, UserMode::root);
  EXPECT_EQ(made->spec.entrypoint, (std::vector<std::string>{"tail", "-f", "/dev/null"}));
  EXPECT_EQ(made->capacity, (PoolCapacity{1, 2, 0, 5}));
}

TEST(PoolRequest, TakesAPodTemplateAsKubernetesWritesIt) {
  auto made = parse_pool(pool(R"({"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"main","image":"debian:12",
      "command":["sleep"],"args":["100"],"env":[{"name":"A","value":"b"}],
      "resources":{"requests":{"cpu":"1"},"limits":{"cpu":"500m","memory":"128Mi","ephemeral-storage":"64Mi"}}}]}})"),
                         {});
  ASSERT_TRUE(made) << made.error().what();
  EXPECT_EQ(made->spec.image, "debian:12");
  EXPECT_EQ(made->spec.limits.cpu_millis, 500u);
  EXPECT_EQ(made->spec.limits.memory_bytes, 128ull << 20);
  EXPECT_EQ(made->spec.limits.disk_bytes, 64ull << 20);
  EXPECT_EQ(made->spec.entrypoint, (std::vector<std::string>{"sleep", "100"}));
  EXPECT_EQ(made->spec.env.at("A"), "b");
}

struct Refused {
  std::string body;
  std::string field;
};

TEST(PoolRequest, NamesWhatItCannotDo) {
  const Refused kCases[] = {
      {pool(R"({"image":"host","volumes":[]})"), "template.volumes"},
      {pool(R"({"spec":{"containers":[{"image":"host"}],"nodeSelector":{}}})"), "template.spec.nodeSelector"},
      {pool(R"({"spec":{"containers":[{"image":"host","securityContext":{}}]}})"), "template.spec.containers[0].securityContext"},
      {pool(R"({"spec":{"containers":[]}})"), "template.spec.containers"},
      {pool(R"({"spec":{"containers":[{"name":"a"}]}})"), "template.spec.containers[0].image"},
      {pool(R"({"resourceLimits":{}})"), "template.image"},
      {pool(R"({"image":"host","extensions":{"poolRef":"x"}})"), "extensions.poolRef"},
      {R"({"name":"agents","capacitySpec":{"bufferMin":0,"bufferMax":0,"poolMin":0,"poolMax":0}})", "template"},
      {R"({"name":"Agents","template":{"image":"host"}})", "name"},
      {pool(R"({"image":"host"})", R"("capacitySpec":{"bufferMin":3,"bufferMax":2,"poolMin":0,"poolMax":5})"), "capacitySpec.bufferMin"},
      {pool(R"({"image":"host"})", R"("capacitySpec":{"bufferMin":0,"bufferMax":2,"poolMin":6,"poolMax":5})"), "capacitySpec.poolMin"},
      {pool(R"({"image":"host"})", R"("capacitySpec":{"bufferMin":0,"bufferMax":9,"poolMin":0,"poolMax":5})"), "capacitySpec.bufferMax"},
      {pool(R"({"image":"host"})", R"("capacitySpec":{"bufferMin":-1,"bufferMax":9,"poolMin":0,"poolMax":9})"), "capacitySpec.bufferMin"},
      {pool(R"({"image":"host"})", R"("capacitySpec":{"bufferMin":1,"bufferMax":9,"poolMin":0})"), "capacitySpec.poolMax"},
      {pool(R"({"image":"host"})", R"("capacitySpec":{"bufferMin":1,"bufferMax":9,"poolMin":0,"poolMax":99999999999})"),
       "capacitySpec.poolMax"},
      {pool(R"({"image":"host"})", cat(kCapacity, R"(,"replicas":3)")), "replicas"},
  };
  for (const auto& each : kCases) {
    auto made = parse_pool(each.body, {});
    ASSERT_FALSE(made) << each.body;
    EXPECT_EQ(made.error().field(), each.field) << each.body << "\n" << made.error().what();
  }
}

TEST(PoolRequest, AResizeIsTheCapacityAlone) {
  auto size = parse_pool_resize(cat("{", kCapacity, "}"));
  ASSERT_TRUE(size);
  EXPECT_EQ(size->pool_max, 5u);
  EXPECT_FALSE(parse_pool_resize(cat("{", kCapacity, R"(,"template":{}})")));
}

TEST(PoolRequest, ACreateThatNamesAPoolHasItsShapeAndNoOther) {
  auto find = [](const std::string& name) -> Result<SandboxSpec> {
    if (name != "agents") return Error(Errc::not_found, "no").with_code("KUBERNETES::POOL_NOT_FOUND");
    SandboxSpec spec;
    spec.image = "debian:12";
    spec.limits.memory_bytes = 64ull << 20;
    spec.policy.user = UserMode::root;
    spec.entrypoint = {"sleep", "9"};
    spec.env = {{"A", "pool"}, {"B", "pool"}};
    return spec;
  };
  auto made = parse_create(R"({"extensions":{"poolRef":"agents"},"env":{"A":"mine"},"timeout":60})", {}, find);
  ASSERT_TRUE(made) << made.error().what();
  EXPECT_EQ(made->image, "debian:12");
  EXPECT_EQ(made->limits.memory_bytes, 64ull << 20);
  EXPECT_EQ(made->policy.user, UserMode::root);
  EXPECT_EQ(made->entrypoint, (std::vector<std::string>{"sleep", "9"}));
  EXPECT_EQ(made->env.at("A"), "mine");
  EXPECT_EQ(made->env.at("B"), "pool");
  EXPECT_EQ(pool_of(*made), "agents");
  EXPECT_TRUE(parse_create(R"({"extensions":{"poolRef":"agents"},"image":{"uri":"debian:12"},"resourceLimits":{"memory":"64Mi"},
      "entrypoint":["x"]})",
                           {}, find));
  const std::pair<std::string, std::string> kWrong[] = {
      {R"("image":{"uri":"host"},"entrypoint":["x"])", "image.uri"},
      {R"("resourceLimits":{"memory":"128Mi"})", "resourceLimits.memory"},
      {R"("resourceLimits":{"cpu":"2"})", "resourceLimits.cpu"},
  };
  for (const auto& [text, field] : kWrong) {
    auto refused = parse_create(cat(R"({"extensions":{"poolRef":"agents"},)", text, "}"), {}, find);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().kind(), Errc::invalid_argument);
    EXPECT_EQ(refused.error().field(), field);
  }
  auto other = parse_create(R"({"extensions":{"poolRef":"agents","opensandbox.mode":"user"}})", {}, find);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().field(), "extensions.opensandbox.mode");
  auto unknown = parse_create(R"({"extensions":{"poolRef":"none"}})", {}, find);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), Errc::not_found);
}

}  // namespace
}  // namespace osb
