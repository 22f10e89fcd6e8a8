// The wired daemon with a runtime made of memory: doors, keys, locks, private instances.
#include "daemon/app.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "daemon/secrets.h"
#include "daemon/wiring.h"
#include "lifecycle/fake_runtime.h"
#include "proxy/test_loop.h"

namespace osb::daemon {
namespace {

namespace fs = std::filesystem;

class Daemon : public testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::error);
    char path[] = "/tmp/osb-daemon-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    directory_ = path;
    config_.storage.state_dir = directory_ + "/state";
    config_.storage.run_dir = directory_ + "/run";
    config_.server.port = 0;
    config_.sessions.port = 0;
    config_.log.level = log::Level::error;
  }
  void TearDown() override { fs::remove_all(directory_); }

  RuntimeFactory fake() {
    return [this](RuntimeSetting setting) { return make_fake(std::move(setting)); };
  }
  Task<Result<StartedRuntime>> make_fake(RuntimeSetting setting) {
    auto runtime = std::make_unique<lifecycle::FakeRuntime>(setting.io);
    runtime->on_ended(setting.ended);
    runtime_ = runtime.get();
    StartedRuntime started;
    started.runtime = std::move(runtime);
    co_return started;
  }

  std::unique_ptr<App> app(bool private_instance = false) { return std::make_unique<App>(loop_.io, config_, private_instance, fake()); }

  http::ClientResponse get(http::Target target, std::string path, std::string key = {}) {
    http::ClientRequest request;
    request.target = std::move(path);
    if (!key.empty()) request.headers.add("OPEN-SANDBOX-API-KEY", key);
    auto response = loop_.run(http::fetch(std::move(target), std::move(request), std::chrono::seconds(5), 65536));
    EXPECT_TRUE(response) << (response ? "" : response.error().what());
    return response ? *std::move(response) : http::ClientResponse{};
  }
  static http::Target tcp(const App& app) {
    auto colon = app.address().rfind(':');
    return http::Target::tcp(app.address().substr(0, colon), *parse_int<std::uint16_t>(std::string_view(app.address()).substr(colon + 1)));
  }
  std::string key() {
    std::ifstream file(config_.storage.state_dir + "/api-key");
    std::string text;
    std::getline(file, text);
    return text;
  }
  static unsigned mode_of(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }

  proxy::TestLoop loop_;
  std::string directory_;
  Config config_;
  lifecycle::FakeRuntime* runtime_ = nullptr;
};

TEST_F(Daemon, OpensBothDoorsWithAKeyMadeAtFirstStart) {
  auto daemon = app();
  auto started = loop_.run(daemon->start());
  ASSERT_TRUE(started) << started.error().what();
  EXPECT_EQ(key().size(), 64u);
  EXPECT_EQ(mode_of(config_.storage.state_dir + "/api-key"), 0600u);
  EXPECT_EQ(mode_of(config_.storage.state_dir + "/secret"), 0600u);
  EXPECT_EQ(mode_of(daemon->socket()), 0600u);
  EXPECT_EQ(mode_of(config_.storage.state_dir), 0700u);
  EXPECT_EQ(get(tcp(*daemon), "/health").status, 200);
  EXPECT_EQ(get(tcp(*daemon), "/v1/sandboxes").status, 401);
  EXPECT_EQ(get(tcp(*daemon), "/v1/sandboxes", key()).status, 200);
  EXPECT_EQ(get(http::Target::unix_socket(daemon->socket()), "/v1/sandboxes").status, 200);
  loop_.run(daemon->stop());
}

TEST_F(Daemon, KeepsItsKeyAndSecretOverARestart) {
  auto first = app();
  ASSERT_TRUE(loop_.run(first->start()));
  auto before = key();
  loop_.run(first->stop());
  first.reset();
  auto second = app();
  ASSERT_TRUE(loop_.run(second->start()));
  EXPECT_EQ(key(), before);
  EXPECT_EQ(get(tcp(*second), "/v1/sandboxes", before).status, 200);
  loop_.run(second->stop());
}

TEST_F(Daemon, ASecondOneInTheSamePlaceIsRefusedAndHarmsNothing) {
  auto first = app();
  ASSERT_TRUE(loop_.run(first->start()));
  auto second = app();
  auto started = loop_.run(second->start());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind(), Errc::conflict);
  EXPECT_THAT(started.error().what(), testing::HasSubstr(cat("pid ", ::getpid())));
  config_.server.instance = "other";
  auto third = app();
  EXPECT_FALSE(loop_.run(third->start())) << "another run directory, but the same state";
  EXPECT_EQ(get(http::Target::unix_socket(first->socket()), "/v1/sandboxes").status, 200);
  loop_.run(first->stop());
}

TEST_F(Daemon, AnAddressInUseIsAnErrorAndLeavesNothingRunning) {
  auto first = app();
  ASSERT_TRUE(loop_.run(first->start()));
  config_.storage.state_dir += "2";
  config_.server.instance = "other";
  config_.server.port = *parse_int<std::uint16_t>(std::string_view(first->address()).substr(first->address().rfind(':') + 1));
  auto second = app();
  EXPECT_FALSE(loop_.run(second->start()));
  second.reset();
  loop_.run(first->stop());
}

TEST_F(Daemon, TellsWhereTheSessionApiIsForAsLongAsItIsThere) {
  auto daemon = app();
  ASSERT_TRUE(loop_.run(daemon->start()));
  auto file = config_.instance_dir() + "/sessions.address";
  std::ifstream in(file);
  std::string url;
  std::getline(in, url);
  EXPECT_EQ(url, cat("http://", daemon->sessions_address(), "/api/v1"));
  auto port = *parse_int<std::uint16_t>(std::string_view(daemon->sessions_address()).substr(10));
  EXPECT_EQ(get(http::Target::tcp("127.0.0.1", port), "/api/v1/sessions").status, 200) << "a program of the daemon's own user";
  loop_.run(daemon->stop());
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(Daemon, SwitchedOffThereIsNoSessionApi) {
  config_.sessions.enabled = false;
  auto daemon = app();
  ASSERT_TRUE(loop_.run(daemon->start()));
  EXPECT_EQ(daemon->sessions_address(), "");
  EXPECT_FALSE(fs::exists(config_.instance_dir() + "/sessions.address"));
  loop_.run(daemon->stop());
}

TEST_F(Daemon, APrivateInstanceTakesItsSandboxesAndDirectoriesWithIt) {
  auto daemon = app(true);
  auto started = loop_.run(daemon->start());
  ASSERT_TRUE(started) << started.error().what();
  EXPECT_EQ(daemon->address(), "");
  EXPECT_EQ(daemon->sessions_address(), "");
  EXPECT_FALSE(fs::exists(config_.storage.state_dir + "/api-key")) << "nobody needs one";
  SandboxSpec spec;
  spec.image = "host";
  spec.entrypoint = {"sleep", "1"};
  auto sandbox = loop_.run(daemon->lifecycle().create(spec, Caller{"local", true, "r"}));
  ASSERT_TRUE(sandbox) << sandbox.error().what();
  auto socket = daemon->socket();
  ASSERT_TRUE(fs::exists(socket));
  loop_.run(daemon->stop());
  EXPECT_FALSE(fs::exists(config_.storage.state_dir));
  EXPECT_FALSE(fs::exists(config_.instance_dir()));
}

TEST_F(Daemon, APrivateInstanceRemovesItsStateWhenItsRunDirectoryIsGoneAlready) {
  auto app = this->app(true);
  ASSERT_TRUE(loop_.run(app->start()));
  fs::remove_all(config_.instance_dir());
  loop_.run(app->stop());
  EXPECT_FALSE(fs::exists(config_.storage.state_dir));
}

TEST_F(Daemon, APrivateInstanceRefusesDirectoriesOfSomebodyElse) {
  fs::create_directories(config_.storage.state_dir);
  std::ofstream(config_.storage.state_dir + "/precious") << "x";
  auto daemon = app(true);
  auto started = loop_.run(daemon->start());
  ASSERT_FALSE(started);
  EXPECT_TRUE(fs::exists(config_.storage.state_dir + "/precious"));
}

TEST_F(Daemon, SandboxesOutliveAStop) {
  auto daemon = app();
  ASSERT_TRUE(loop_.run(daemon->start()));
  SandboxSpec spec;
  spec.image = "host";
  spec.entrypoint = {"sleep", "1"};
  ASSERT_TRUE(loop_.run(daemon->lifecycle().create(spec, Caller{"local", true, "r"})));
  auto destroyed = runtime_->count("destroy");
  loop_.run(daemon->lifecycle().stop());
  EXPECT_EQ(runtime_->count("destroy"), destroyed);
  loop_.run(daemon->stop());
}

TEST_F(Daemon, ReloadChangesKeysAndABadOneChangesNothing) {
  auto daemon = app();
  ASSERT_TRUE(loop_.run(daemon->start()));
  auto old_key = key();
  Config bad = config_;
  bad.auth.keys.push_back({"team", directory_ + "/missing", "", false});
  EXPECT_FALSE(daemon->apply(bad));
  EXPECT_EQ(get(tcp(*daemon), "/v1/sandboxes", old_key).status, 200);
  Config good = config_;
  good.auth.keys.push_back({"team", "", to_hex(api::sha256("team-key")), false});
  ASSERT_TRUE(daemon->apply(good));
  EXPECT_EQ(get(tcp(*daemon), "/v1/sandboxes", "team-key").status, 200);
  EXPECT_EQ(get(tcp(*daemon), "/v1/sandboxes", old_key).status, 200);
  EXPECT_EQ(get(tcp(*daemon), "/v1/sandboxes", "x").status, 401);
  loop_.run(daemon->stop());
}

TEST_F(Daemon, ARuntimeThatIsNotThereIsAClearError) {
  config_.runtime = "imaginary";
  App daemon(loop_.io, config_, false, start_runtime);
  auto started = loop_.run(daemon.start());
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().what(), testing::HasSubstr("imaginary"));
}

class Secrets : public Daemon {};

TEST_F(Secrets, AreMadeOnceAndReadAfterwards) {
  auto path = directory_ + "/s";
  auto made = read_or_make_secret(path, 32);
  ASSERT_TRUE(made) << made.error().what();
  EXPECT_EQ(made->size(), 64u);
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(*read_or_make_secret(path, 32), *made);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator{}), 1) << "nothing beside it";
}

TEST_F(Secrets, OthersMayReadAreRefused) {
  auto path = directory_ + "/s";
  ASSERT_TRUE(read_or_make_secret(path, 32));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  auto read = read_or_make_secret(path, 32);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), Errc::permission_denied);
}

TEST_F(Secrets, EmptyFilesAndLinksAreRefused) {
  std::ofstream(directory_ + "/empty") << "\n";
  ASSERT_EQ(::chmod((directory_ + "/empty").c_str(), 0600), 0);
  EXPECT_FALSE(read_or_make_secret(directory_ + "/empty", 32));
  ASSERT_EQ(::symlink("/etc/hostname", (directory_ + "/link").c_str()), 0);
  EXPECT_FALSE(read_or_make_secret(directory_ + "/link", 32));
}

TEST_F(Secrets, TheEnvironmentsKeyReplacesTheFile) {
  fs::create_directories(config_.storage.state_dir);
  config_.auth.api_key = "from-environment";
  auto keys = load_keys(config_);
  ASSERT_TRUE(keys);
  http::Headers headers;
  headers.add("OPEN-SANDBOX-API-KEY", "from-environment");
  EXPECT_TRUE(keys->identify(headers, "r"));
  EXPECT_FALSE(fs::exists(config_.storage.state_dir + "/api-key"));
}

}  // namespace
}  // namespace osb::daemon
