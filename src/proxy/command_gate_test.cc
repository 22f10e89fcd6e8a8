#include "proxy/command_gate.h"

#include "proxy/command_request.h"
#include "proxy/proxy_fixture.h"

namespace osb::proxy {
namespace {

CommandPolicy policy_of(std::string_view text) { return *parse_command_policy(text); }

class Gate : public ProxyFixture {
 protected:
  void use(std::string_view policy, std::uint32_t seconds = 60, SelfApproval self = SelfApproval::privileged) {
    proxy_->gate().set_settings({policy_of(policy), seconds, self});
  }
  Approvals& approvals() { return proxy_->gate().approvals(); }
  Result<CommandVerdict> pass(Caller caller, Command command, Asking asking = {}) {
    return loop_.run(proxy_->gate().pass(std::move(caller), sandbox_, std::move(command), std::move(asking)));
  }
  // What the asker gets when `then` is done with the question as soon as it is open.
  template <class Then>
  Result<CommandVerdict> asked(Caller caller, Then then) {
    Asking asking;
    asking.asked = [&](const Question& question) {
      id_ = question.id;
      then(question);
    };
    return pass(std::move(caller), Command::of_line("git push"), std::move(asking));
  }
  std::string id_;
  const Caller operator_{"default", true, "r"};
  const Caller agent_{"tester", false, "r"};  // who made the sandbox of the fixture
};

constexpr std::string_view kAsk = R"({"rules":[{"name":"push","program":"git","args_any":"push","action":"ask","reason":"shown"}]})";

TEST_F(Gate, WithoutAPolicyEverythingPassesUnseen) {
  EXPECT_FALSE(proxy_->gate().judges(sandbox_));
  EXPECT_EQ(execd("POST", "/command", R"({"command":"rm -rf /"})").status, 200);
  EXPECT_EQ(audit_text().find("command.refused"), std::string::npos);
}

TEST_F(Gate, ARefusedCommandReachesNobodyAndIsOnRecord) {
  use(R"({"rules":[{"name":"no-rm","program":"rm","action":"deny"}]})");
  auto before = requests_;
  EXPECT_EQ(execd("POST", "/command", R"({"command":"ls; rm x"})").status, 599);  // the fixture's way to show an error
  EXPECT_EQ(requests_, before);
  EXPECT_NE(audit_text().find(R"("action":"command.refused")"), std::string::npos);
  EXPECT_NE(audit_text().find(R"("rule":"no-rm")"), std::string::npos);
  EXPECT_EQ(audit_text().find("command.start"), std::string::npos);
  EXPECT_EQ(execd("POST", "/command", R"({"command":"ls"})").status, 200);
}

TEST_F(Gate, AnAllowedQuestionLetsTheCommandPass) {
  use(kAsk);
  auto passed = asked(agent_, [&](const Question& question) {
    EXPECT_EQ(question.rule, "push");
    EXPECT_EQ(question.asker, "tester");
    EXPECT_EQ(question.state, QuestionState::waiting);
    EXPECT_TRUE(approvals().answer(question.id, true, "seen", operator_));
  });
  ASSERT_TRUE(passed) << passed.error().what();
  auto settled = approvals().get(id_, operator_);
  EXPECT_EQ(settled->state, QuestionState::allowed);
  EXPECT_EQ(settled->answered_by, "default");
}

TEST_F(Gate, ADeniedOneSaysWhoAndWhy) {
  use(kAsk);
  auto passed = asked(agent_, [&](const Question& question) { EXPECT_TRUE(approvals().answer(question.id, false, "not now", operator_)); });
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code(), "COMMAND::NOT_APPROVED");
  EXPECT_EQ(passed.error().field(), "push");
  EXPECT_NE(passed.error().what().find("default did not approve it: not now"), std::string::npos) << passed.error().what();
}

TEST_F(Gate, NobodyAnswersInTime) {
  use(kAsk, 1);
  auto passed = pass(agent_, Command::of_line("git push"));
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code(), "COMMAND::NOT_APPROVED");
  EXPECT_EQ(approvals().list(operator_, false).back().state, QuestionState::expired);
  EXPECT_TRUE(approvals().list(operator_, true).empty());
}

TEST_F(Gate, TheEndOfTheSandboxWithdrawsItsQuestions) {
  use(kAsk);
  auto passed = asked(agent_, [&](const Question&) { proxy_->forget(sandbox_); });
  ASSERT_FALSE(passed);
  EXPECT_EQ(approvals().get(id_, operator_)->state, QuestionState::withdrawn);
}

TEST_F(Gate, WhoMayAnswerIsASetting) {
  use(kAsk);
  Question question;
  question.owner = question.asker = "tester";
  const Caller stranger{"other", false, "r"}, chief{"chief", true, "r"};
  struct Row {
    SelfApproval setting;
    bool agent, chief_for_own;
  };
  for (const auto& row :
       {Row{SelfApproval::privileged, false, true}, Row{SelfApproval::always, true, true}, Row{SelfApproval::never, false, false}}) {
    approvals().set_self_approval(row.setting);
    EXPECT_EQ(approvals().may_answer(question, agent_), row.agent) << name_of(row.setting);
    EXPECT_FALSE(approvals().may_answer(question, stranger));
    EXPECT_TRUE(approvals().may_answer(question, chief));
    auto own = question;
    own.asker = "chief";
    EXPECT_EQ(approvals().may_answer(own, chief), row.chief_for_own) << name_of(row.setting);
  }
}

TEST_F(Gate, AStrangerSeesNothingAndAnAnswerCountsOnce) {
  use(kAsk);
  const Caller stranger{"other", false, "r"};
  auto passed = asked(agent_, [&](const Question& question) {
    EXPECT_TRUE(approvals().list(stranger, false).empty());
    EXPECT_EQ(approvals().get(question.id, stranger).error().kind(), Errc::not_found);
    EXPECT_EQ(approvals().answer(question.id, true, {}, stranger).error().kind(), Errc::not_found);
    EXPECT_EQ(approvals().answer(question.id, true, {}, agent_).error().code(), "COMMAND::SELF_APPROVAL");
    EXPECT_TRUE(approvals().answer(question.id, false, {}, operator_));
    EXPECT_EQ(approvals().answer(question.id, true, {}, operator_).error().code(), "COMMAND::ALREADY_ANSWERED");
  });
  EXPECT_FALSE(passed);
}

TEST_F(Gate, QuestionsAreBoundedAndTheSettledOnesForgottenInOrder) {
  Caller caller{"tester", false, "r"};
  Question draft;
  draft.owner = "tester";
  draft.sandbox = sandbox_.text();
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < kMaxQuestionsOfSandbox; ++i) ids.push_back(*approvals().open(draft, std::chrono::seconds(60), caller));
  EXPECT_EQ(approvals().open(draft, std::chrono::seconds(60), caller).error().code(), "COMMAND::TOO_MANY_QUESTIONS");
  approvals().withdraw(ids[3]);
  EXPECT_TRUE(approvals().open(draft, std::chrono::seconds(60), caller));
  for (std::size_t i = 0; i < 2 * kKeptQuestions; ++i) {
    draft.sandbox = "another";
    approvals().withdraw(*approvals().open(draft, std::chrono::seconds(60), caller));
  }
  EXPECT_LE(approvals().list(operator_, false).size(), kKeptQuestions + kMaxQuestions);
  EXPECT_FALSE(approvals().get(ids[3], operator_)) << "the oldest that is over";
  EXPECT_TRUE(approvals().get(ids[0], operator_)) << "it still waits";
  approvals().stop();
}

TEST_F(Gate, AQuestionThatCannotBeRecordedIsNotAsked) {
  auto full = audit::Log::to([](std::string_view) -> Result<> { return Error(Errc::unavailable, "disk full"); });
  Approvals strict(loop_.io, *full);
  auto opened = strict.open({}, std::chrono::seconds(60), agent_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), "GENERAL::AUDIT_UNAVAILABLE");
}

TEST_F(Gate, TheFirstProgramIsJudgedAndWhatKeepsAliveIsNot) {
  use(R"({"default":"deny","rules":[{"program":"ls","action":"allow"}]})");
  auto first = [&](std::vector<std::string> argv) {
    SandboxSpec spec;
    spec.entrypoint = std::move(argv);
    return static_cast<bool>(loop_.run(proxy_->gate().pass_create(agent_, std::move(spec))));
  };
  EXPECT_TRUE(first({"tail", "-f", "/dev/null"}));
  EXPECT_TRUE(first({"sleep", "infinity"}));
  EXPECT_TRUE(first({"ls"}));
  EXPECT_FALSE(first({"tail", "-f", "/etc/passwd"}));
  EXPECT_FALSE(first({"sh", "-c", "ls"}));
}

TEST(CommandRequest, ReadsBodiesAsExecdDoes) {
  using Judged = CommandRoutes::Judged;
  EXPECT_EQ(command_of(Judged::line, R"({"command":"ls"})").text, "ls");
  EXPECT_EQ(command_of(Judged::line, R"({"argv":["rm","x"]})").argv.front(), "rm");
  EXPECT_EQ(command_of(Judged::argv, R"({"argv":["a"],"tty":{"cols":80,"rows":24}})").typed, true);
  EXPECT_EQ(command_of(Judged::argv, R"({"argv":["a"],"tty":null})").typed, false);
  EXPECT_EQ(command_of(Judged::argv, R"({"argv":["a"],"env":{"LD_PRELOAD":"x"}})").variables.front(), "LD_PRELOAD");
  EXPECT_EQ(command_of(Judged::code, R"({"code":"1","context":{"language":"Python"}})").language, "python");
  EXPECT_EQ(command_of(Judged::code, R"({"code":"ls"})").language, "command");
  EXPECT_EQ(command_of(Judged::code, R"({"code":"1","context":{"id":"x","language":"python"}})").language, "") << "a claim";
  EXPECT_EQ(command_of(Judged::terminal, "").kind, Command::Kind::terminal);
  for (auto [judged, body] :
       std::initializer_list<std::pair<Judged, std::string_view>>{{Judged::line, ""},
                                                                  {Judged::line, "[]"},
                                                                  {Judged::line, R"({"command":1})"},
                                                                  {Judged::line, R"({"command":"ls","command":"rm"})"},
                                                                  {Judged::line, R"({"command":"ls","argv":["rm"]})"},
                                                                  {Judged::argv, R"({"argv":"rm"})"},
                                                                  {Judged::argv, R"({"argv":["rm",1]})"},
                                                                  {Judged::code, R"({"code":"1","context":[]})"},
                                                                  {Judged::terminal, R"({"command":{}})"}})
    EXPECT_EQ(command_of(judged, body).kind, Command::Kind::unreadable) << body;
}

}  // namespace
}  // namespace osb::proxy
