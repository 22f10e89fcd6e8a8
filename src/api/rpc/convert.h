// From messages to the values of the session service and back. The service itself checks what they mean.
#pragma once
#include "api/rpc/messages.h"
#include "base/result.h"
#include "session/values.h"

namespace osb::api::rpc {

// Of one unary answer, where the request does not say: both streams fit into what gRPC clients take by default (4 MiB).
inline constexpr std::uint64_t kDefaultAnswerBytes = 1u << 20;

Result<SandboxId> to_session_id(std::string_view text);
session::CreateRequest to_create(CreateSessionRequest message);
session::ExecRequest to_exec(ExecRequest message);
session::ExecRequest to_exec(CodeRequest message);
session::TerminalRequest to_terminal(TerminalOpen message);
Result<std::uint64_t> to_output_bound(std::optional<std::uint64_t> asked);
Result<std::uint32_t> to_mode(std::string_view octal);  // "" = 644
Result<bool> to_answer(std::string_view answer);

Session from(const session::Session& value);
ExecEnd from(session::Exit value);
Approval from(session::Approval value);
FileInfo from(session::FileInfo value);
ExecEvent from(session::ExecEvent value);

}  // namespace osb::api::rpc
