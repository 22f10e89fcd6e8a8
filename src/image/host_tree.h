// The built-in `host` image: a synthetic root around the host's own programs.
//
// The launcher adds the host's /usr (and /bin, /lib* where those are directories); this layer brings what is around them:
// mount points, a user database of our own, and the few files of the host's /etc that programs need and that are no
// secret. It is an allowlist: what host_tree.cc does not name does not come in. A file must also be regular, readable by
// everyone, small, and free of private keys and passwords. Links are copied as text and only where they point into
// /usr or into a directory that came along; none is ever followed.
#pragma once
#include <string>

#include "base/result.h"
#include "image/tree.h"

namespace osb::image {

// `host_root` is "/" except in tests.
Result<Tree> host_tree(const std::string& host_root);

}  // namespace osb::image
