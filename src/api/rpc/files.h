// Files of a session in messages: read in pieces, written as they come.
#pragma once
#include "api/rpc/call.h"

namespace osb::api::rpc {

Task<Result<>> read_file(Call& call, ReadFileRequest request);
Task<Result<>> write_file(Call& call);
Task<Result<ListDirectoryResponse>> list_directory(Call& call, ListDirectoryRequest request);
Task<Result<RemoveFileResponse>> remove_file(Call& call, RemoveFileRequest request);

}  // namespace osb::api::rpc
