// GET and HEAD /files/download: a regular file, or a range of it.
#pragma once
#include "execd/sandbox.h"
#include "http/http.h"

namespace osb::execd::files {

Task<void> download(Sandbox& sandbox, http::Request& request, http::Responder& responder);

}  // namespace osb::execd::files
