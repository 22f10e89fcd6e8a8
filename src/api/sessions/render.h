// From the values of the session service to the JSON of spec/sessions.yaml.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/http.h"
#include "session/service.h"

namespace osb::api::sessions {

int status_of(const Error& error);
// What a client reads of an error: its stable code, never empty, and the words that are for it. For every door of the service.
std::string_view code_of(const Error& error);
std::string_view message_of(const Error& error);
std::string_view state_name(State state);
std::string error_json(const Error& error, std::string_view request_id);
http::Response render(const Error& error, std::string_view request_id);

std::string session_json(const session::Session& session);
std::string page_json(const session::SessionPage& page);
std::string result_json(const session::Collector& taken);
std::string event_name(const session::ExecEvent& event);
std::string event_json(const session::ExecEvent& event);
std::string file_json(const session::FileInfo& info);
std::string directory_json(const std::vector<session::FileInfo>& entries);
std::string approval_json(const session::Approval& approval);

}  // namespace osb::api::sessions
