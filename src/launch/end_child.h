// The end of a child of ours that nobody needs any more: killed, waited for with a limit, reaped.
#pragma once

namespace osb::launch {

// False: it does not die (the kernel has it in something it cannot leave), and stays for whoever reaps us.
bool end_child(int pidfd);

}  // namespace osb::launch
