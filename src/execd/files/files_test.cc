// The file API on a socket, in a directory of the test's own.
#include <sys/stat.h>
#include <sys/un.h>

#include "execd/daemon_fixture.h"
#include "http/http.h"

namespace osb::execd {
namespace {

std::string part(std::string_view name, std::string_view content) {
  return cat("--B\r\nContent-Disposition: form-data; name=\"", name, "\"; filename=\"x\"\r\n\r\n", content, "\r\n");
}

class FilesTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    start();
    ASSERT_EQ(::mkdir(work("").c_str(), 0755), 0);
  }
  std::string work(std::string_view name) const { return file(name.empty() ? "work" : cat("work/", name)); }
  std::string target(std::string_view route, std::string_view name) const { return cat(route, "?path=", http::percent_encode(work(name))); }
  void write(std::string_view name, std::string_view text) const { std::ofstream(work(name)) << text; }
  bool exists(std::string_view name) const {
    struct stat info{};
    return ::lstat(work(name).c_str(), &info) == 0;
  }
  mode_t mode(std::string_view name) const {
    struct stat info{};
    return ::stat(work(name).c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }
  // Names in a directory of the test, hidden ones too: what an upload left behind shows here.
  std::string names(std::string_view name = "") const { return trimmed(cat("ls -A ", work(name), " | tr '\\n' ' '")); }
  static std::string trimmed(const std::string& command) {
    std::string out;
    FILE* pipe = ::popen(command.c_str(), "r");
    for (int c = ::fgetc(pipe); c != EOF; c = ::fgetc(pipe)) out += static_cast<char>(c);
    ::pclose(pipe);
    return std::string(trim(out));
  }
  std::string meta(std::string_view name, std::string_view more = {}) const {
    return part("metadata", cat("{\"path\":", json_string(work(name)), more, "}"));
  }
  Reply send_form(std::string_view form, std::string_view type = "multipart/form-data; boundary=B") const {
    return ask("POST", "/files/upload", cat(form, "--B--\r\n"), cat("Content-Type: ", type, "\r\n"));
  }
  Event error_of(const Reply& reply) const { return boost::json::parse(reply.body).as_object(); }
  std::string code_of(const Reply& reply) const { return text_of(error_of(reply), "code"); }
};

TEST_F(FilesTest, an_upload_writes_pairs_and_makes_parents) {
  auto reply = send_form(meta("a.txt", ",\"mode\":644") + part("file", "AAA") + meta("d/e/b", "") + part("file", ""));
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.has("Content-Length: 0"));
  EXPECT_EQ(read_text(work("a.txt")), "AAA");
  EXPECT_EQ(mode("a.txt"), 0644u);
  EXPECT_EQ(mode("d/e/b"), 0755u);
  EXPECT_EQ(names(), "a.txt d");
}

TEST_F(FilesTest, metadata_may_all_come_first_and_other_parts_are_passed_by) {
  auto reply = send_form(part("note", "x") + meta("a") + meta("b") + part("file", "1") + part("file", "2"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(read_text(work("a")) + read_text(work("b")), "12");
}

TEST_F(FilesTest, an_upload_that_is_wrong_leaves_nothing) {
  write("old", "old");
  struct Case {
    std::string form;
    std::string_view code;
  };
  for (auto& [form, code] :
       {Case{part("file", "x"), "INVALID_FILE_METADATA"}, Case{"", "INVALID_FILE_METADATA"}, Case{meta("n/m"), "INVALID_FILE_CONTENT"},
        Case{meta("old") + part("file", "x") + meta("n"), "INVALID_FILE"}, Case{part("metadata", "{"), "INVALID_FILE_METADATA"},
        Case{part("metadata", "{\"path\":\"\"}"), "INVALID_FILE_METADATA"}, Case{meta("n", ",\"mode\":4777"), "INVALID_FILE_METADATA"},
        Case{meta("old") + part("file", "x") + "--B\r\n\r\nno name\r\n", "INVALID_FILE"},
        Case{meta("n/m/o") + part("file", "x") + meta("old/x") + part("file", "y"), "INVALID_FILE"}}) {
    auto reply = send_form(form);
    EXPECT_EQ(reply.status, 400) << form;
    EXPECT_EQ(code_of(reply), code) << form << reply.body;
  }
  EXPECT_EQ(code_of(send_form(meta("n"), "application/json")), "INVALID_FILE");
  EXPECT_EQ(read_text(work("old")), "old");
  EXPECT_EQ(names(), "old");
}

TEST_F(FilesTest, an_upload_that_breaks_off_leaves_the_old_file) {
  write("old", "old");
  {
    Wire wire = connect();
    auto form = meta("old") + part("file", std::string(100'000, 'x'));
    wire.send(
        cat("POST /files/upload HTTP/1.1\r\nHost: t\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 1000000\r\n\r\n",
            form));
    EXPECT_TRUE(eventually([&] { return names() != "old"; })) << "control: it writes beside it";
  }
  EXPECT_TRUE(eventually([&] { return names() == "old"; })) << names();
  EXPECT_EQ(read_text(work("old")), "old");
}

TEST_F(FilesTest, replacing_keeps_mode_and_follows_a_link) {
  write("real", "1");
  ::chmod(work("real").c_str(), 0600);
  ASSERT_EQ(::symlink("real", work("link").c_str()), 0);
  EXPECT_EQ(send_form(meta("link") + part("file", "2")).status, 200);
  EXPECT_EQ(read_text(work("real")), "2");
  EXPECT_EQ(mode("real"), 0600u);
  ASSERT_EQ(::symlink("not/there", work("dangling").c_str()), 0);
  EXPECT_EQ(send_form(meta("dangling") + part("file", "2")).status, 404);
  ASSERT_EQ(::symlink("made", work("to-new").c_str()), 0);
  EXPECT_EQ(send_form(meta("to-new") + part("file", "3")).status, 200);
  EXPECT_EQ(read_text(work("made")), "3");
}

TEST_F(FilesTest, only_regular_files_have_content) {
  ASSERT_EQ(::mkfifo(work("fifo").c_str(), 0644), 0);
  ASSERT_EQ(::symlink("/dev/zero", work("zero").c_str()), 0);
  ASSERT_EQ(::symlink("/proc/self/mem", work("mem").c_str()), 0);
  ASSERT_EQ(::symlink("/proc/self/root/etc/hostname", work("root").c_str()), 0);
  ASSERT_EQ(::symlink("loop", work("loop").c_str()), 0);
  for (auto name : {"fifo", "zero", "mem", "root", "loop", ""}) {
    auto reply = ask("GET", target("/files/download", name));
    EXPECT_EQ(reply.status, 400) << name << reply.body;
    EXPECT_EQ(code_of(reply), "INVALID_FILE") << name;
    if (*name) EXPECT_GE(send_form(meta(name) + part("file", "x")).status, 400) << name;
  }
  EXPECT_EQ(ask("GET", "/files/download?path=/proc/1/environ").status, 400);
  auto told = ask("GET", "/files/download?path=/proc/uptime");
  EXPECT_TRUE(told.status == 200 && !told.body.empty()) << "control: what the kernel tells everybody";
}

TEST_F(FilesTest, a_download_has_ranges_and_a_head) {
  write("f", "0123456789");
  auto whole = ask("GET", target("/files/download", "f"));
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(whole.body, "0123456789");
  EXPECT_TRUE(whole.has("Accept-Ranges: bytes") && whole.has("Last-Modified: ") &&
              whole.has("Content-Disposition: attachment; filename=\"f\""));
  auto some = ask("GET", target("/files/download", "f"), {}, "Range: bytes=2-4\r\n");
  EXPECT_EQ(some.status, 206);
  EXPECT_EQ(some.body, "234");
  EXPECT_TRUE(some.has("Content-Range: bytes 2-4/10"));
  auto none = ask("GET", target("/files/download", "f"), {}, "Range: bytes=10-\r\n");
  EXPECT_EQ(none.status, 416);
  EXPECT_TRUE(none.has("Content-Range: bytes */10") && code_of(none) == "UNKNOWN");
  EXPECT_EQ(ask("GET", target("/files/download", "f"), {}, "Range: bytes=2-4\r\nIf-Range: \"other\"\r\n").body, "0123456789");
  Wire wire = connect();
  wire.request("HEAD", target("/files/download", "f"));
  auto head = wire.head();
  EXPECT_TRUE(head.status == 200 && head.has("Content-Length: 10"));
  wire.request("GET", "/ping");
  EXPECT_EQ(wire.reply().status, 200) << "no body came behind the head";
  EXPECT_EQ(ask("GET", "/files/download").status, 400);
  EXPECT_EQ(ask("GET", target("/files/download", "none")).status, 404);
}

TEST_F(FilesTest, a_large_download_is_the_file) {
  std::string bytes;
  for (int i = 0; bytes.size() < 3'000'000; ++i) bytes += cat(i, " ");
  write("big", bytes);
  EXPECT_EQ(ask("GET", target("/files/download", "big")).body, bytes);
  EXPECT_EQ(ask("GET", target("/files/download", "big"), {}, "Range: bytes=1000000-\r\n").body, bytes.substr(1'000'000));
}

TEST_F(FilesTest, info_is_keyed_by_what_was_asked) {
  write("f", "12");
  auto asked = cat(work(""), "//x/../f");
  auto reply = ask("GET", cat("/files/info?path=", http::percent_encode(asked)));
  auto info = boost::json::parse(reply.body).at(asked).as_object();
  EXPECT_EQ(text_of(info, "path"), work("f"));
  EXPECT_EQ(text_of(info, "type"), "file");
  EXPECT_EQ(info.at("size").as_int64(), 2);
  EXPECT_EQ(info.at("mode").as_int64(), 644);
  EXPECT_EQ(ask("GET", "/files/info").body, "{}");
  EXPECT_EQ(code_of(ask("GET", cat(target("/files/info", "f"), "&path=/none"))), "FILE_NOT_FOUND");
}

TEST_F(FilesTest, files_are_deleted_directories_are_not) {
  write("f", "");
  EXPECT_EQ(ask("DELETE", cat(target("/files", "f"), "&path=/none")).status, 200);
  EXPECT_FALSE(exists("f"));
  EXPECT_EQ(ask("DELETE", target("/files", "")).status, 500);
}

TEST_F(FilesTest, permissions_are_checked_before_the_first_is_changed) {
  write("f", "");
  auto change = [&](std::string_view name, std::string_view what) {
    return ask("POST", "/files/permissions", cat("{", json_string(work(name)), ":", what, "}"));
  };
  EXPECT_EQ(change("f", R"({"mode":600})").status, 200);
  EXPECT_EQ(mode("f"), 0600u);
  EXPECT_EQ(change("f", R"({"mode":0,"owner":"nobody-here"})").status, 200);
  EXPECT_EQ(mode("f"), 0600u);
  for (auto wrong : {R"({"mode":4777})", R"({"mode":-1})", R"({"mode":99999})", R"({"mode":888})", R"({"owner":"-1"})",
                     R"({"owner":"4294967296"})", R"({"group":"4294967295"})", R"({"owner":7})", R"([])"})
    EXPECT_EQ(change("f", wrong).status, 400) << wrong;
  EXPECT_EQ(change("none", R"({"mode":600})").status, 404);
  EXPECT_EQ(mode("f"), 0600u);
}

TEST_F(FilesTest, moves_make_parents_and_replace_nothing) {
  write("a", "1");
  write("b", "2");
  auto mv = [&](std::string_view from, std::string_view to) {
    return ask("POST", "/files/mv", cat("[{\"src\":", json_string(work(from)), ",\"dest\":", json_string(work(to)), "}]"));
  };
  EXPECT_EQ(mv("a", "b").status, 500);
  EXPECT_EQ(mv("a", "a").status, 500);
  EXPECT_EQ(mv("none", "c").status, 404);
  EXPECT_EQ(mv("a", "x/y/a").status, 200);
  EXPECT_EQ(read_text(work("x/y/a")), "1");
  EXPECT_EQ(mv("x", "x/z").status, 400);
  EXPECT_EQ(mv("none", "q/r").status, 404);
  EXPECT_EQ(names(), "b x") << "a move that failed leaves no parents";
  EXPECT_EQ(ask("POST", "/files/mv", "{}").status, 400);
}

TEST_F(FilesTest, a_move_to_another_mount_copies_all_and_removes_the_source) {
  char other[] = "/dev/shm/execd-test-XXXXXX";
  ASSERT_NE(::mkdtemp(other), nullptr);
  ASSERT_EQ(::mkdir(work("tree").c_str(), 0750), 0);
  write("tree/f", "content");
  ::chmod(work("tree/f").c_str(), 0640);
  ASSERT_EQ(::symlink("f", work("tree/l").c_str()), 0);
  auto reply = ask("POST", "/files/mv", cat("[{\"src\":", json_string(work("tree")), ",\"dest\":\"", other, "/moved\"}]"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(read_text(cat(other, "/moved/l")), "content");
  EXPECT_EQ(trimmed(cat("ls -A ", other, "; stat -c %a ", other, "/moved ", other, "/moved/f | tr '\\n' ' '")), "moved\n750 640");
  EXPECT_EQ(names(), "");
  EXPECT_EQ(::system(cat("rm -rf ", other).c_str()), 0);
}

TEST_F(FilesTest, replace_counts_and_keeps_the_mode) {
  write("f", "a-a-a");
  write("g", "x");
  ::chmod(work("f").c_str(), 0700);
  auto one = [&](std::string_view name, std::string_view old) {
    return cat(json_string(work(name)), ":{\"old\":\"", old, "\",\"new\":\"b\"}");
  };
  auto reply = ask("POST", "/files/replace?verbose=true", cat("{", one("f", "a"), ",", one("g", "none"), "}"));
  auto counts = boost::json::parse(reply.body).as_object();
  EXPECT_EQ(counts.at(work("f")).at("replacedCount").as_int64(), 3);
  EXPECT_EQ(counts.at(work("g")).at("replacedCount").as_int64(), 0);
  EXPECT_EQ(read_text(work("f")), "b-b-b");
  EXPECT_EQ(mode("f"), 0700u);
  EXPECT_EQ(ask("POST", "/files/replace", cat("{", one("f", "b"), ",", one("none", "a"), "}")).status, 404);
  EXPECT_EQ(ask("POST", "/files/replace", cat("{", one("f", ""), "}")).status, 400);
  EXPECT_EQ(read_text(work("f")), "b-b-b") << "all files change or none";
  EXPECT_EQ(ask("POST", "/files/replace", cat("{", one("f", "b"), "}")).body, "");
  EXPECT_EQ(names(), "f g");
}

std::vector<std::string> paths_of(const Reply& reply) {
  std::vector<std::string> paths;
  for (auto& entry : boost::json::parse(reply.body).as_array()) paths.push_back(std::string(entry.at("path").as_string()));
  return paths;
}

TEST_F(FilesTest, search_and_list_walk_the_tree_in_order) {
  ASSERT_EQ(::mkdir(work("b").c_str(), 0755), 0);
  write("c.txt", "");
  write("b/d.txt", "");
  write("b/e.py", "");
  ASSERT_EQ(::symlink("/", work("a.txt").c_str()), 0);
  EXPECT_EQ(paths_of(ask("GET", cat(target("/files/search", ""), "&pattern=*.txt"))),
            (std::vector<std::string>{work("a.txt"), work("b/d.txt"), work("c.txt")}));
  EXPECT_EQ(paths_of(ask("GET", target("/files/search", ""))).size(), 4u);
  EXPECT_EQ(paths_of(ask("GET", target("/directories/list", ""))), (std::vector<std::string>{work("a.txt"), work("b"), work("c.txt")}));
  EXPECT_EQ(paths_of(ask("GET", cat(target("/directories/list", ""), "&depth=1000000000"))),
            (std::vector<std::string>{work("a.txt"), work("b"), work("b/d.txt"), work("b/e.py"), work("c.txt")}));
  EXPECT_EQ(ask("GET", cat(target("/directories/list", ""), "&depth=0")).body, "[]");
  EXPECT_EQ(ask("GET", cat(target("/directories/list", ""), "&depth=-1")).status, 400);
  EXPECT_EQ(ask("GET", target("/directories/list", "a.txt")).status, 400);
  EXPECT_EQ(ask("GET", target("/directories/list", "none")).status, 404);
  EXPECT_EQ(ask("GET", cat(target("/files/search", ""), "&pattern=[")).status, 400);
  EXPECT_EQ(code_of(ask("GET", "/files/search?pattern=x")), "MISSING_QUERY");
}

TEST_F(FilesTest, directories_are_made_and_removed_however_deep) {
  auto reply = ask("POST", "/directories", cat("{", json_string(work("a/b")), ":{\"mode\":700},", json_string(work("c")), ":{}}"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(mode("a/b") == 0700 && mode("a") == 0755 && mode("c") == 0755);
  EXPECT_EQ(::system(cat("cd ", work("a"), " && for i in $(seq 100); do mkdir d && touch f && cd d; done").c_str()), 0);
  ASSERT_EQ(::symlink(work("c").c_str(), work("a/link").c_str()), 0);
  EXPECT_EQ(ask("DELETE", cat(target("/directories", "a"), "&path=/none/x")).status, 200);
  EXPECT_EQ(names(), "c") << "what a link leads to stays";
  EXPECT_EQ(ask("DELETE", "/directories?path=/").status, 400);
}

}  // namespace
}  // namespace osb::execd
