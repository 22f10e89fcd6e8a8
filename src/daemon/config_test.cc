#include "daemon/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "daemon/config_yaml.h"

namespace osb::daemon {
namespace {

namespace fs = std::filesystem;
using ::testing::Test;

class ConfigTest : public Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-config-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string write(std::string_view text) {
    auto path = dir_ + "/c.yaml";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  Result<Config> load_text(std::string_view text) { return load({.file = write(text), .environment = {}, .flags = {}}); }
  std::string problem(std::string_view text) {
    auto config = load_text(text);
    EXPECT_FALSE(config) << text.substr(0, 200);
    return config ? "" : config.error().what();
  }

  std::string dir_;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string repository_file(std::string_view name) { return (fs::path(__FILE__).parent_path() / "../.." / name).lexically_normal(); }

TEST_F(ConfigTest, DefaultsAreTheDocumentedOnes) {
  auto config = load({});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->runtime, "native");
  EXPECT_EQ(config->default_limits(), Limits{});
  EXPECT_EQ(config->default_policy(), Policy{});
  EXPECT_EQ(config->server.listen, "127.0.0.1");
  EXPECT_EQ(config->server.port, 8080);
  EXPECT_EQ(config->api_key_file(), "/var/lib/opensandbox/api-key");
  EXPECT_EQ(config->audit_directory(), "/var/lib/opensandbox/audit");
  EXPECT_EQ(config->instance_dir(), "/run/opensandbox/default");
  EXPECT_FALSE(config->auth.insecure_no_auth);
}

TEST_F(ConfigTest, TheShippedFileNamesEveryKeyAndHoldsTheDefaults) {
  auto path = repository_file("deploy/sandbox-config.yaml");
  auto config = load({.file = path, .environment = {}, .flags = {}});
  ASSERT_TRUE(config) << config.error().what();
  const Config defaults;
  for (const auto& option : options()) EXPECT_EQ(option.show(*config), option.show(defaults)) << option.path;
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  std::string section;
  std::set<std::string> named;
  for (auto line : split(text, '\n')) {
    auto word = std::string(trim(line.substr(0, line.find(':'))));
    if (line.empty() || word.starts_with('#') || line.find(':') == std::string_view::npos) continue;
    if (line.front() != ' ') section = word;
    named.insert(line.front() == ' ' ? cat(section, ".", word) : word);
  }
  for (const auto& option : options())
    EXPECT_TRUE(named.contains(std::string(option.path))) << option.path << " is not in the shipped file";
}

// docs/command-policy.md: each ```verdicts block is what the ```yaml block before it says.
TEST_F(ConfigTest, TheExamplesOfTheCommandPolicyHold) {
  std::ifstream in(repository_file("docs/command-policy.md"));
  std::string line, kind, text;
  CommandPolicy policy;
  int verdicts = 0;
  while (std::getline(in, line)) {
    if (line.starts_with("```")) {
      if (kind == "yaml") {
        auto config = load_text(text);
        ASSERT_TRUE(config) << config.error().what() << "\n" << text;
        policy = config->command_policy.policy;
      }
      kind = line.substr(3);
      text.clear();
      continue;
    }
    text += line + "\n";
    if (kind != "verdicts") continue;
    auto wanted = parse_command_action(line.substr(0, line.find(' ')));
    ASSERT_TRUE(wanted) << line;
    auto command = line.substr(line.find_first_not_of(' ', line.find(' ')));
    auto verdict = judge(policy, Command::of_line(command));
    EXPECT_EQ(name_of(verdict.action), name_of(*wanted)) << command << ": " << verdict.sentence();
    ++verdicts;
  }
  EXPECT_GT(verdicts, 15);
}

TEST_F(ConfigTest, TellsWhatIsWrongWithACommandRule) {
  auto config = load_text("command_policy:\n  default: no\n  rules:\n    - {program: rm}\n");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().what().find(":2: command_policy.default"), std::string::npos) << config.error().what();
  EXPECT_NE(config.error().what().find("command_policy.rules[0]: needs action"), std::string::npos) << config.error().what();
}

TEST_F(ConfigTest, ReadsEverySectionOfAFile) {
  auto config = load_text(R"(
runtime: native
resources: {memory_mb: 1024, cpu_cores: 0.25, disk_mb: 64, timeout_seconds: 120, pids: 32}
security:
  syscall_allowlist: minimal
  read_only_root: false
  mode: root
sessions:
  max_concurrent: 50
server:
  listen: "::1"
  port: 0
  public_host: "sandbox.example:9000"
  max_sandbox_timeout_seconds: 600
  instance: two
auth:
  keys:
    - {name: team-a, key_file: /etc/k}
    - name: ci
      sha256: 2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824
      sees_all: true
storage:
  state_dir: /srv/osb/
audit:
images:
  aliases:
    "opensandbox/code-interpreter:latest": host
log: {level: debug}
)");
  ASSERT_TRUE(config) << config.error().what();
  EXPECT_EQ(config->default_limits().memory_bytes, 1ull << 30);
  EXPECT_EQ(config->default_limits().cpu_millis, 250u);
  EXPECT_EQ(config->default_policy(), (Policy{UserMode::root, SyscallProfile::minimal, RootMode::writable}));
  EXPECT_EQ(config->server.max_sandbox_timeout_seconds, 600);
  ASSERT_EQ(config->auth.keys.size(), 2u);
  EXPECT_EQ(config->auth.keys[0].key_file, "/etc/k");
  EXPECT_EQ(config->auth.keys[1].sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  EXPECT_TRUE(config->auth.keys[1].sees_all);
  EXPECT_EQ(config->storage.state_dir, "/srv/osb");
  EXPECT_EQ(config->audit_directory(), "/srv/osb/audit");
  EXPECT_EQ(config->images.aliases.at("opensandbox/code-interpreter:latest"), "host");
  EXPECT_EQ(config->log.level, log::Level::debug);
  EXPECT_EQ(config->sources.at("server.instance"), Source::file);
  EXPECT_FALSE(config->sources.contains("audit.directory"));
}

TEST_F(ConfigTest, FlagWinsOverEnvironmentWinsOverFile) {
  auto file = write("server: {port: 1, instance: a, listen: 127.0.0.2}\n");
  auto config = load({.file = file,
                      .environment = {{"OPENSANDBOX_SERVER_PORT", "2"},
                                      {"OPENSANDBOX_SERVER_INSTANCE", "b"},
                                      {"OPENSANDBOX_SERVER_LISTEN", ""},
                                      {"OPENSANDBOX_DOMAIN", "ignored"},
                                      {"PATH", "/bin"}},
                      .flags = {{"port", "3"}}});
  ASSERT_TRUE(config) << config.error().what();
  EXPECT_EQ(config->server.port, 3);
  EXPECT_EQ(config->server.instance, "b");
  EXPECT_EQ(config->server.listen, "127.0.0.2");
  EXPECT_EQ(config->sources.at("server.port"), Source::flag);
  EXPECT_EQ(config->sources.at("server.instance"), Source::environment);
  EXPECT_EQ(config->sources.at("server.listen"), Source::file);
}

TEST_F(ConfigTest, EveryScalarCanComeFromAllThreePlaces) {
  // Rows whose default is not a value one can write get one here.
  const std::map<std::string_view, std::string> kValues{{"server.max_sandbox_timeout_seconds", "7200"},
                                                        {"server.public_host", "h"},
                                                        {"limits.max_sandboxes_per_key", "100"},
                                                        {"limits.memory_overcommit_percent", "400"},
                                                        {"auth.api_key_file", "/k"},
                                                        {"audit.directory", "/a"},
                                                        {"images.default_registry", "registry.example"},
                                                        {"images.ca_file", "/c"},
                                                        {"images.max_bytes", "1048576"},
                                                        {"pool.max_memory", "64Mi"}};
  const Config defaults;
  std::set<std::string_view> flags, variables;
  for (const auto& option : options()) {
    if (!option.is_scalar) continue;
    EXPECT_TRUE(flags.insert(option.flag).second) << option.flag;
    EXPECT_TRUE(variables.insert(option.env).second) << option.env;
    auto shown = option.show(defaults);
    auto value = kValues.contains(option.path) ? kValues.at(option.path)
                 : shown.starts_with('"')      ? shown.substr(1, shown.size() - 2)
                                               : shown;
    auto by_flag = load({.file = {}, .environment = {}, .flags = {{std::string(option.flag), value}}});
    auto by_variable = load({.file = {}, .environment = {{std::string(option.env), value}}, .flags = {}});
    auto path = split(option.path, '.');
    auto by_file = load_text(path.size() == 1 ? cat(path[0], ": ", value, "\n") : cat(path[0], ": {", path[1], ": \"", value, "\"}\n"));
    ASSERT_TRUE(by_flag && by_variable && by_file) << option.path;
    EXPECT_EQ(option.show(*by_flag), option.show(*by_variable)) << option.path;
    EXPECT_EQ(option.show(*by_flag), option.show(*by_file)) << option.path;
    EXPECT_EQ(by_flag->sources.at(std::string(option.path)), Source::flag) << option.path;
  }
}

TEST_F(ConfigTest, UnknownKeysAreErrorsWithLineAndSuggestion) {
  auto text = problem("resources:\n  memory_mb: 64\n  memroy_mb: 64\n");
  EXPECT_HAS(text, ":3: resources.memroy_mb: unknown key; did you mean memory_mb?");
  EXPECT_HAS(problem("resurces: {}\n"), ":1: resurces: unknown key; did you mean resources?");
  EXPECT_HAS(problem("server: {zzzzzzzzzzzz: 1}\n"), "known are listen, port");
  EXPECT_HAS(problem("auth: {api_key: s3cret}\n"), "auth.api_key_file");
  EXPECT_EQ(problem("auth: {api_key: s3cret}\n").find("s3cret"), std::string::npos);
  EXPECT_HAS(problem("auth: {keys: [{name: a, key: s3cret}]}\n"), "keys are not written here");
  EXPECT_HAS(problem("<<: {a: b}\n"), "unknown key");
  auto flag = load({.file = {}, .environment = {}, .flags = {{"prot", "1"}}});
  ASSERT_FALSE(flag);
  EXPECT_HAS(flag.error().what(), "--prot: unknown flag; did you mean --port?");
}

TEST_F(ConfigTest, AllProblemsAreToldAtOnce) {
  auto file = write("runtime: dokcer\nresources: {memory_mb: 0}\n");
  auto config = load({.file = file, .environment = {{"OPENSANDBOX_SERVER_PORT", "x"}}, .flags = {{"pids", "1"}}});
  ASSERT_FALSE(config);
  EXPECT_EQ(split(config.error().what(), '\n').size(), 4u) << config.error().what();
  EXPECT_EQ(config.error().kind(), Errc::invalid_argument);
}

TEST_F(ConfigTest, RefusesValuesOutOfBoundsAndNamesThem) {
  struct Row {
    std::string_view text, key;
  };
  const Row rows[] = {
      {"resources: {memory_mb: 15}", "resources.memory_mb"},
      {"resources: {memory_mb: 1048577}", "resources.memory_mb"},
      {"resources: {memory_mb: -1}", "resources.memory_mb"},
      {"resources: {memory_mb: 0}", "resources.memory_mb"},
      {"resources: {memory_mb: 1e3}", "resources.memory_mb"},
      {"resources: {memory_mb: .nan}", "resources.memory_mb"},
      {"resources: {memory_mb: 9223372036854775808}", "resources.memory_mb"},
      {"resources: {memory_mb: 512MB}", "resources.memory_mb"},
      {"resources: {memory_mb: \"\"}", "resources.memory_mb"},
      {"resources: {memory_mb: [1]}", "resources.memory_mb"},
      {"resources: {memory_mb: {a: 1}}", "resources.memory_mb"},
      {"resources: {cpu_cores: 0}", "resources.cpu_cores"},
      {"resources: {cpu_cores: -1}", "resources.cpu_cores"},
      {"resources: {cpu_cores: .inf}", "resources.cpu_cores"},
      {"resources: {cpu_cores: 1025}", "resources.cpu_cores"},
      {"resources: {disk_mb: 0}", "resources.disk_mb"},
      {"resources: {timeout_seconds: 0}", "resources.timeout_seconds"},
      {"resources: {pids: 7}", "resources.pids"},
      {"resources: {pids: 32769}", "resources.pids"},
      {"resources: 5", "resources"},
      {"resources: [a]", "resources"},
      {"security: {syscall_allowlist: all}", "security.syscall_allowlist"},
      {"security: {network_policy: allow_all}", "security.network_policy"},
      {"security: {read_only_root: yes}", "security.read_only_root"},
      {"security: {read_only_root: 1}", "security.read_only_root"},
      {"security: {mode: admin}", "security.mode"},
      {"sessions: {ephemeral: false}", "sessions.ephemeral"},
      {"sessions: {max_concurrent: 0}", "sessions.max_concurrent"},
      {"server: {listen: localhost}", "server.listen"},
      {"server: {listen: 127.0.0.1:80}", "server.listen"},
      {"server: {port: 65536}", "server.port"},
      {"server: {port: -1}", "server.port"},
      {"server: {public_host: \"http://x\"}", "server.public_host"},
      {"server: {max_sandbox_timeout_seconds: 59}", "server.max_sandbox_timeout_seconds"},
      {"server: {instance: ../x}", "server.instance"},
      {"server: {instance: \"\"}", "server.instance"},
      {"auth: {insecure_no_auth: maybe}", "auth.insecure_no_auth"},
      {"auth: {api_key_file: relative}", "auth.api_key_file"},
      {"auth: {keys: {a: b}}", "auth.keys"},
      {"auth: {keys: [x]}", "auth.keys[0]"},
      {"auth: {keys: [{name: a}]}", "auth.keys[0]"},
      {"auth: {keys: [{key_file: /k}]}", "auth.keys[0]"},
      {"auth: {keys: [{name: a, key_file: /k, sha256: aa}]}", "auth.keys[0]"},
      {"auth: {keys: [{name: a, sha256: aa}]}", "auth.keys[0]"},
      {"auth: {keys: [{name: a, key_file: k}]}", "auth.keys[0]"},
      {"auth: {keys: [{name: local, key_file: /k}]}", "auth.keys[0]"},
      {"auth: {keys: [{name: a, key_file: /k}, {name: a, key_file: /k}]}", "auth.keys[1]"},
      {"auth: {keys: [{name: a, key_file: /k, sees_al: true}]}", "auth.keys[0].sees_al"},
      {"storage: {state_dir: /}", "storage.state_dir"},
      {"storage: {run_dir: run}", "storage.run_dir"},
      {"storage: {run_dir: \"/a\\nb\"}", "storage.run_dir"},
      {"images: {aliases: [a]}", "images.aliases"},
      {"images: {aliases: {a: [b]}}", "images.aliases.a"},
      {"images: {pull: always}", "images.pull"},
      {"images: {default_registry: \"https://r\"}", "images.default_registry"},
      {"images: {insecure_registries: r.example}", "images.insecure_registries"},
      {"images: {insecure_registries: [\"http://r.example\"]}", "images.insecure_registries"},
      {"images: {trusted_hosts: [[a]]}", "images.trusted_hosts"},
      {"images: {registries: [{host: r.example, username: me, password: secret}]}", "images.registries[0].password"},
      {"images: {registries: [{host: r.example, username: me}]}", "images.registries[0]"},
      {"images: {registries: [{host: r.example, user: me}]}", "images.registries[0].user"},
      {"images: {ca_file: ca.pem}", "images.ca_file"},
      {"images: {max_bytes: 0}", "images.max_bytes"},
      {"images: {max_bytes: -1}", "images.max_bytes"},
      {"log: {level: loud}", "log.level"},
      {"runtime: docker", "runtime"},
      {"runtime: {a: b}", "runtime"},
  };
  for (const auto& row : rows) {
    auto text = problem(cat(row.text, "\n"));
    EXPECT_HAS(text, cat(":1: ", row.key, ": "));
  }
  EXPECT_HAS(problem("runtime: docker\n"), "not available in this build");
  EXPECT_HAS(problem("resources: {memory_mb: 15}\n"), "from 16 to 1048576, not \"15\"");
}

TEST_F(ConfigTest, ChecksKeysAgainstEachOther) {
  EXPECT_HAS(problem("security: {mode: root, allow_root_mode: false}\n"), "allow_root_mode");
  EXPECT_HAS(problem("security: {syscall_allowlist: permissive}\n"), "allow_permissive");
  EXPECT_TRUE(load_text("security: {syscall_allowlist: permissive, allow_permissive: true}\n"));
  EXPECT_HAS(problem("server: {max_sandbox_timeout_seconds: 60}\n"), "resources.timeout_seconds");
  EXPECT_HAS(problem(cat("storage: {run_dir: /", std::string(80, 'r'), "}\n")), "sockets");
}

TEST_F(ConfigTest, TheServerKeyComesFromTheEnvironmentAndIsNeverShown) {
  auto config = load({.file = {}, .environment = {{"OPENSANDBOX_SERVER_API_KEY", "s3cret-key"}}, .flags = {}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->auth.api_key, "s3cret-key");
  EXPECT_EQ(render(*config).find("s3cret"), std::string::npos);
  EXPECT_HAS(render(*config), "OPENSANDBOX_SERVER_API_KEY");
  auto bad = load({.file = {}, .environment = {{"OPENSANDBOX_SERVER_API_KEY", "s3cret\r\nX: y"}}, .flags = {}});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().what().find("s3cret"), std::string::npos);
}

TEST_F(ConfigTest, OnlyTheWordYesTurnsAuthenticationOff) {
  auto with = [](std::string value) {
    return load({.file = {}, .environment = {{"OPENSANDBOX_INSECURE_SERVER", std::move(value)}}, .flags = {}});
  };
  EXPECT_TRUE(with("YES")->auth.insecure_no_auth);
  EXPECT_FALSE(with("")->auth.insecure_no_auth);
  for (auto value : {"yes", "1", "true", "NO"}) EXPECT_FALSE(with(value)) << value;
}

TEST_F(ConfigTest, WhatIsRenderedLoadsToTheSame) {
  auto first = load_text(
      "resources: {cpu_cores: 1.5}\nauth: {keys: [{name: a, key_file: \"/k y\"}]}\nimages: {aliases: {\"a:b\": host}, "
      "insecure_registries: [\"r.example:5000\"], registries: [{host: r.example, username: me, password_file: /p}], max_bytes: "
      "1048576}\nserver: "
      "{public_host: \"h:1\"}\n");
  ASSERT_TRUE(first) << first.error().what();
  auto text = render(*first);
  EXPECT_HAS(text, "cpu_cores: 1.5 ");
  EXPECT_HAS(text, "# default");
  auto second = load_text(text);
  ASSERT_TRUE(second) << second.error().what() << "\n" << text;
  for (const auto& option : options()) EXPECT_EQ(option.show(*first), option.show(*second)) << option.path;
}

TEST_F(ConfigTest, HelpAndDocsNameEveryKey) {
  for (const auto& option : options()) {
    EXPECT_HAS(help_text(), std::string(option.path));
    EXPECT_HAS(markdown(), cat("`", option.path, "`"));
  }
}

TEST_F(ConfigTest, ThePageOfEveryKeyIsTheOneTheTableMakes) {
  std::ifstream in(repository_file("docs/config.md"));
  std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(page.ends_with(markdown())) << "put this at the end of docs/config.md:\n" << markdown();
}

TEST_F(ConfigTest, AMissingOrStrangeFileIsAClearError) {
  auto missing = load({.file = dir_ + "/none.yaml", .environment = {}, .flags = {}});
  ASSERT_FALSE(missing);
  EXPECT_HAS(missing.error().what(), "none.yaml");
  auto folder = load({.file = dir_, .environment = {}, .flags = {}});
  ASSERT_FALSE(folder);
  EXPECT_HAS(folder.error().what(), "not a regular file");
  EXPECT_FALSE(load({.file = "/dev/zero", .environment = {}, .flags = {}}));
  EXPECT_HAS(problem(std::string(kMaxYamlBytes + 1, '#')), "larger than");
  EXPECT_HAS(problem(std::string("a: b\0c", 6)), "NUL");
  EXPECT_TRUE(load_text(""));
  EXPECT_TRUE(load_text("# only a comment\n"));
  EXPECT_TRUE(load_text("---\nlog:\n"));
}

TEST_F(ConfigTest, YamlTricksAreRefused) {
  EXPECT_HAS(problem("a: &x [1]\nb: *x\n"), "anchors");
  EXPECT_HAS(problem("b: *x\n"), "line 1");
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 30; ++i) bomb += cat("a", i, ": &a", i, " [*a", i - 1, ",*a", i - 1, "]\n");
  EXPECT_HAS(problem(bomb), "line 1");
  EXPECT_HAS(problem("log: {level: !!str info}\n"), "tags");
  EXPECT_HAS(problem("log: {level: info, level: warn}\n"), "twice");
  EXPECT_HAS(problem("log: {level: info}\nlog: {level: warn}\n"), "line 2: key log appears twice");
  EXPECT_HAS(problem("a: 1\n---\nb: 2\n"), "more than one document");
  EXPECT_HAS(problem("? [a]\n: b\n"), "plain text");
  problem(std::string(100'000, '['));
  problem(std::string(100'000, '{'));
  std::string deep;
  for (std::size_t i = 0; i < 5000; ++i) deep += std::string(i % 60, ' ') + "a:\n";
  problem(deep);
  std::string blocks;
  for (std::size_t i = 0; i < 400; ++i) blocks += std::string(i, ' ') + "a:\n";
  EXPECT_HAS(problem(blocks), "nested");
  problem("a: [1\n");
  problem("\tlog: {}\n");
  problem("log: \"unclosed\n");
  problem("just a text\n");
  problem("- list\n");
}

}  // namespace
}  // namespace osb::daemon
