// The pure parts of the code interpreter: messages, kernelspecs, events.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>
#include <fstream>

#include "base/sha256.h"
#include "base/text.h"
#include "execd/kernels/jupyter.h"
#include "execd/kernels/kernelspec.h"
#include "execd/kernels/output.h"

namespace osb::execd {
namespace {

namespace json = boost::json;

json::object event(const std::string& members) { return json::parse("{" + members + "}").as_object(); }

TEST(JupyterMessage, IsReadBackAsItWasMade) {
  jupyter::Session session{"s", "key"};
  zmtp::Message message{jupyter::make(session, "execute_request", "m1", R"({"code":"1"})"), 0};
  message.frames[3] = R"({"msg_id":"parent"})";
  message.frames[1] = hmac_sha256_hex("key", {message.frames[2], message.frames[3], message.frames[4], message.frames[5]});
  message.frames.insert(message.frames.begin(), "topic");
  auto read = jupyter::read(session, message);
  ASSERT_TRUE(read) << read.error().what();
  EXPECT_EQ(read->type, "execute_request");
  EXPECT_EQ(read->parent_id, "parent");
  EXPECT_EQ(read->content, R"({"code":"1"})");
}

TEST(JupyterMessage, WithoutTheRightSignatureIsRefused) {
  jupyter::Session session{"s", "key"};
  jupyter::Session other{"s", "another key"};
  auto frames = jupyter::make(other, "status", "m1", "{}");
  auto read = jupyter::read(session, {frames, 0});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), Errc::permission_denied);
  EXPECT_FALSE(jupyter::read(session, {{"<IDS|MSG>", "a", "b"}, 0}));
  EXPECT_FALSE(jupyter::read(session, {{}, 0}));
}

TEST(Kernelspecs, AreFoundByTheNamesClientsUse) {
  char folder[] = "/tmp/kernelspec-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  std::string base = folder;
  auto add = [&](const std::string& name, const std::string& text) {
    ::mkdir((base + "/kernels").c_str(), 0755);
    ::mkdir((base + "/kernels/" + name).c_str(), 0755);
    std::ofstream(base + "/kernels/" + name + "/kernel.json") << text;
  };
  add("gonb", R"({"argv":["/bin/gonb","{connection_file}"],"language":"go","interrupt_mode":"message"})");
  add("jslab", R"({"argv":["tslab","--js"],"language":"javascript"})");
  add("tslab", R"({"argv":["tslab"],"language":"typescript"})");
  add("my-python", R"({"argv":["/opt/python3","-m","ipykernel_launcher","-f","{connection_file}"],"language":"python","env":{"A":"b"}})");
  add("broken", "{");
  add("empty", R"({"argv":[],"language":"go"})");
  Env env{{"JUPYTER_PATH", base}};
  auto find = [&](std::string_view language) { return find_kernelspec(env, "/nowhere", language); };
  ASSERT_TRUE(find("go"));
  EXPECT_EQ(find("go")->name, "gonb");
  EXPECT_TRUE(find("go")->interrupt_by_message);
  EXPECT_FALSE(find("go")->speaks_ipc());
  EXPECT_EQ(find("javascript")->name, "jslab");
  EXPECT_EQ(find("typescript")->name, "tslab");
  auto java = find("java");
  ASSERT_FALSE(java);
  EXPECT_NE(java.error().what().find("install"), std::string::npos);
  EXPECT_FALSE(find("../kernels"));
  auto python =
      parse_kernelspec("x", R"({"argv":["/opt/python3","-m","ipykernel_launcher","-f","{connection_file}"],"language":"python"})");
  ASSERT_TRUE(python);
  EXPECT_TRUE(python->is_ipykernel());
  EXPECT_EQ(::system(cat("rm -rf ", base).c_str()), 0);
}

TEST(CodeEvents, AreCutBetweenCharacters) {
  EXPECT_EQ(whole_characters("abc", 10), 3u);
  EXPECT_EQ(whole_characters("ab\xC3\xA9x", 3), 2u);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98\x80x", 4), 4u);
  EXPECT_EQ(whole_characters("\xF0\x9F\x98\x80x", 3), 0u + 3u) << "a character that does not fit at all is cut like bytes";
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80\x80\x80", 5), 5u);
}

TEST(CodeEvents, GiveResultsAsTextUnderBothNames) {
  auto bundle =
      json::parse(R"({"text/plain":"4","image/png":"aGk=\n","application/json":{"a":[1]},"text/html":"<b>","x":null})").as_object();
  auto results = event(result_members(bundle)).at("results").as_object();
  EXPECT_EQ(results.size(), 5u);
  EXPECT_EQ(results.at("text"), "4");
  EXPECT_EQ(results.at("text/plain"), "4");
  EXPECT_EQ(results.at("image/png"), "aGk=");
  EXPECT_EQ(results.at("application/json"), R"({"a":[1]})");
}

TEST(CodeEvents, NameWhatDoesNotFit) {
  json::object bundle{{"text/plain", "plot"}, {"image/png", std::string(5'000'000, 'A')}};
  auto results = event(result_members(bundle)).at("results").as_object();
  EXPECT_FALSE(results.contains("image/png"));
  EXPECT_NE(std::string(results.at("text").as_string()).find("image/png of 5000000 bytes"), std::string::npos);
}

TEST(CodeEvents, ErrorsAlwaysSaySomethingAndNeverTooMuch) {
  auto error = event(error_members("", " ", {})).at("error").as_object();
  EXPECT_EQ(error.at("ename"), "Error");
  EXPECT_EQ(error.at("evalue"), "Error");
  EXPECT_EQ(error.at("traceback").as_array().size(), 1u);
  json::array lines;
  for (int i = 0; i < 1000; ++i) lines.emplace_back(std::string(10'000, '\n'));
  std::string members = error_members("E", std::string(1'000'000, 'x'), {{"traceback", lines}});
  EXPECT_LT(members.size(), 1'000'000u);
}

}  // namespace
}  // namespace osb::execd
