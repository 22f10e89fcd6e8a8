#include "image/host_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "image/harmless.h"
#include "image/testing.h"
#include "sys/fs_open.h"

namespace osb::image {
namespace {

using namespace testing_;

constexpr const char* kCanary = "CANARY-7d1f";
constexpr const char* kCertificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

// A host full of secrets, with the public things in between.
class HostTree : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* secret : {"etc/shadow",
                               "etc/gshadow",
                               "etc/ssh/ssh_host_ed25519_key",
                               "etc/sudoers",
                               "etc/sudoers.d/admin",
                               "etc/machine-id",
                               "etc/hostname",
                               "etc/fstab",
                               "etc/apt/auth.conf",
                               "etc/docker/daemon.json",
                               "etc/docker/key.json",
                               "etc/ssl/private/server.key",
                               "etc/passwd",
                               "etc/group",
                               "etc/hosts",
                               "etc/resolv.conf",
                               "etc/environment",
                               "etc/profile",
                               "etc/bash.bashrc",
                               "etc/npmrc",
                               "etc/pip.conf",
                               "etc/gitconfig",
                               "etc/postgresql/pg_hba.conf",
                               "etc/kubernetes/admin.conf",
                               "etc/nsswitch.conf",
                               "etc/ssl/openssl.cnf",
                               "etc/java-17-openjdk/management/jmxremote.password",
                               "etc/python3/notes.txt",
                               "etc/ssl/certs/README.txt",
                               "root/.ssh/id_rsa",
                               "home/admin/notes",
                               "opt/app/config",
                               "var/lib/db",
                               "srv/data"})
      write_file(host_ / secret, kCanary);
    write_file(host_ / "etc/mime.types", kCanary, 0640);  // allowed by name, not by mode
    write_file(host_ / "etc/ssl/certs/mixed.pem", cat(kCertificate, "-----BEGIN RSA PRIVATE KEY-----\n", kCanary));
    write_file(host_ / "etc/ssl/certs/notes.pem", kCanary);
    write_file(host_ / "etc/java-17-openjdk/net.properties", cat("# proxy password: see below\nhttp.proxyPassword=", kCanary, "\n"));
    stdfs::create_symlink("../../shadow", host_ / "etc/ssl/certs/linked.pem");
    stdfs::create_symlink("../../../../../etc/shadow", host_ / "etc/ssl/certs/climbing.pem");
    stdfs::create_directories(host_ / "etc/alternatives");
    stdfs::create_symlink(cat("/root/", kCanary), host_ / "etc/alternatives/odd");
    stdfs::create_symlink("shadow", host_ / "etc/timezone");
    write_file(host_ / "etc/ld.so.conf.d/closed/x.conf", kCanary);
    ::chmod((host_ / "etc/ld.so.conf.d/closed").c_str(), 0700);
    write_file(host_ / "etc/ld.so.conf.d/huge.conf", std::string(5u << 20, 'x'));

    write_file(host_ / "etc/os-release", "ID=pretend\n");
    write_file(host_ / "etc/ld.so.cache", "glibc-ld.so.cache password=none");
    write_file(host_ / "etc/ld.so.conf.d/local.conf", "/usr/local/lib\n");
    write_file(host_ / "etc/ssl/certs/ca-certificates.crt", kCertificate);
    write_file(host_ / "etc/java-17-openjdk/security/java.security", "security.provider.1=SUN\n");
    write_file(host_ / "etc/python3.11/sitecustomize.py", "pass\n");
    stdfs::create_symlink("ca-certificates.crt", host_ / "etc/ssl/certs/0a1b2c3d.0");
    stdfs::create_symlink("/usr/bin/vim.basic", host_ / "etc/alternatives/vim");
    stdfs::create_symlink("/usr/share/zoneinfo/Etc/UTC", host_ / "etc/localtime");
    stdfs::create_directories(host_ / "usr/bin");
    stdfs::create_symlink("usr/bin", host_ / "bin");
    stdfs::create_symlink("/opt/strange", host_ / "lib32");
    stdfs::create_directories(host_ / "lib64");
    write_file(host_ / "lib64/ld.so", kCanary);
  }

  void write_out() {
    auto tree = host_tree(host_.path());
    ASSERT_TRUE(tree) << tree.error().what();
    stdfs::create_directories(out_ / "root");
    auto dir = sys::fs::open_directory(out_ / "root");
    auto written = tree->write_to(dir->get());
    ASSERT_TRUE(written) << written.error().what();
  }
  std::string at(std::string_view path) { return out_ / cat("root/", path); }

  TempDir host_;
  TempDir out_;
};

TEST_F(HostTree, ShowsNoSecretOfTheHost) {
  write_out();
  for (const auto& [path, what] : picture(out_ / "root")) {
    EXPECT_EQ(what.find(kCanary), std::string::npos) << path << " -> " << what;
    EXPECT_EQ(path.find("shadow"), std::string::npos) << path;
    std::string whole = at(path);
    if (stdfs::is_regular_file(stdfs::symlink_status(whole))) EXPECT_EQ(read_file(whole).find(kCanary), std::string::npos) << path;
    if (stdfs::is_symlink(stdfs::symlink_status(whole)))
      EXPECT_EQ(stdfs::read_symlink(whole).string().find("shadow"), std::string::npos) << path;
  }
  for (const char* never : {"etc/shadow", "etc/ssh", "etc/sudoers", "etc/fstab", "etc/apt", "etc/docker", "etc/ssl/private",
                            "etc/mime.types", "etc/ssl/certs/mixed.pem", "etc/ssl/certs/notes.pem", "etc/ssl/certs/linked.pem",
                            "etc/ssl/certs/climbing.pem", "etc/alternatives/odd", "etc/timezone", "etc/ld.so.conf.d/huge.conf",
                            "etc/ld.so.conf.d/closed", "lib32", "etc/java-17-openjdk/net.properties"})
    EXPECT_FALSE(stdfs::exists(stdfs::symlink_status(at(never)))) << never;
}

TEST_F(HostTree, ShowsWhatProgramsNeed) {
  write_out();
  EXPECT_EQ(read_file(at("etc/os-release")), "ID=pretend\n");
  EXPECT_EQ(read_file(at("etc/ssl/certs/ca-certificates.crt")), kCertificate);
  EXPECT_TRUE(stdfs::exists(at("etc/ld.so.cache")));
  EXPECT_TRUE(stdfs::exists(at("etc/ld.so.conf.d/local.conf")));
  EXPECT_TRUE(stdfs::exists(at("etc/java-17-openjdk/security/java.security")));
  EXPECT_TRUE(stdfs::exists(at("etc/python3.11/sitecustomize.py")));
  EXPECT_EQ(stdfs::read_symlink(at("etc/ssl/certs/0a1b2c3d.0")), "ca-certificates.crt");
  EXPECT_EQ(stdfs::read_symlink(at("etc/alternatives/vim")), "/usr/bin/vim.basic");
  EXPECT_EQ(stdfs::read_symlink(at("etc/localtime")), "/usr/share/zoneinfo/Etc/UTC");
  EXPECT_EQ(stdfs::read_symlink(at("bin")), "usr/bin");
  EXPECT_TRUE(stdfs::is_empty(at("lib64")));
  EXPECT_FALSE(stdfs::exists(at("sbin")));
}

TEST_F(HostTree, HasAUserDatabaseOfItsOwn) {
  write_out();
  std::string passwd = read_file(at("etc/passwd"));
  EXPECT_NE(passwd.find("user:x:1000:1000:user:/home/user:/bin/sh\n"), std::string::npos) << passwd;  // this host has no bash
  EXPECT_NE(passwd.find("agent:x:65533:"), std::string::npos);
  EXPECT_NE(read_file(at("etc/group")).find("tty:x:5:"), std::string::npos);
  for (const char* empty : {"etc/hosts", "etc/resolv.conf", "etc/hostname", "etc/machine-id"}) EXPECT_EQ(read_file(at(empty)), "") << empty;
  struct stat info = {};
  ASSERT_EQ(::stat(at("home/user").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1000u);
  ASSERT_EQ(::stat(at("tmp").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  for (const char* dir : {"usr", "proc", "sys", "dev", "run", "workspace", "root", "opt", "srv", "mnt", "var/tmp", "var/lib"})
    EXPECT_TRUE(stdfs::is_empty(at(dir))) << dir;
}

TEST_F(HostTree, IsTheSameForTheSameHostAndAnotherAfterAChange) {
  std::string first = host_tree(host_.path())->digest();
  EXPECT_EQ(host_tree(host_.path())->digest(), first);
  write_file(host_ / "etc/shadow", "changed");
  EXPECT_EQ(host_tree(host_.path())->digest(), first);
  write_file(host_ / "etc/os-release", "ID=changed\n");
  EXPECT_NE(host_tree(host_.path())->digest(), first);
}

TEST(RealHost, ComesTogetherAndHoldsNoShadow) {
  auto tree = host_tree("/");
  ASSERT_TRUE(tree) << tree.error().what();
  EXPECT_TRUE(tree->has("etc/passwd"));
  EXPECT_TRUE(tree->has("usr"));
  EXPECT_FALSE(tree->has("etc/shadow"));
  EXPECT_FALSE(tree->has("etc/ssl/private"));
  EXPECT_LE(tree->content_bytes(), 17u << 20);
}

std::string key_store(std::initializer_list<char> tags) {
  std::string store("\xfe\xed\xfe\xed\0\0\0\2\0\0\0", 11);
  store += static_cast<char>(tags.size());
  for (char tag : tags) store += std::string("\0\0\0", 3) + tag + std::string("\0\1a\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\3abc", 25);
  return store;
}

TEST(Harmless, ACertificateStoreWithAPrivateKeyIsNone) {
  EXPECT_TRUE(is_public_certificates(key_store({2, 2})));
  EXPECT_FALSE(is_public_certificates(key_store({2, 1})));
  EXPECT_FALSE(is_public_certificates(key_store({2, 2}).substr(0, 30)));
  EXPECT_FALSE(is_public_certificates("PKCS12?"));
}

TEST(Harmless, AValueAfterASecretWordIsTold) {
  EXPECT_FALSE(is_free_of_secrets("user=a\npassword = x\n"));
  EXPECT_FALSE(is_free_of_secrets("-----BEGIN PRIVATE KEY-----"));
  EXPECT_TRUE(is_free_of_secrets("# password=x\nport=1\n"));
}

}  // namespace
}  // namespace osb::image
