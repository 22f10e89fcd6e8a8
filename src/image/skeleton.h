// The parts of the `host` image that do not come from the host.
#pragma once
#include <string>

#include "image/tree.h"

namespace osb::image {

// Mount points, home directories, and a /etc that knows root, user (1000), agent (65533) and nobody (65534).
void add_skeleton(Tree& tree, const std::string& login_shell);

}  // namespace osb::image
