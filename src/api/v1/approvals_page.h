// The page where people answer: three texts, compiled in. It talks to the same API as everybody, with the key that is typed in.
#pragma once
#include <string_view>

namespace osb::api::v1 {

extern const std::string_view kApprovalsHtml;
extern const std::string_view kApprovalsScript;
extern const std::string_view kApprovalsStyle;

}  // namespace osb::api::v1
