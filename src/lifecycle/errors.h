// Errors that several files of this room give.
#pragma once
#include "base/id.h"
#include "base/result.h"

namespace osb::lifecycle {

Error unknown_sandbox(const SandboxId& id);

// The room below knows what went wrong; the code says which of our operations it was.
inline Error coded(Error error, std::string_view code) {
  return error.code().empty() ? std::move(error).with_code(code) : std::move(error);
}

}  // namespace osb::lifecycle
