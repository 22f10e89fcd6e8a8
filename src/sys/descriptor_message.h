// One message with descriptors, over a unix socket. No heap: also runs after clone.
#pragma once
#include <sys/types.h>

#include <cstddef>

#include "base/fd.h"

namespace osb::sys {

// sendmsg(2), never waiting and never raising SIGPIPE; `descriptor` -1 = none. The kernel's value, or -1 with errno.
ssize_t send_with_descriptor(int socket, const void* bytes, std::size_t size, int descriptor);

// recvmsg(2) with `flags`. The first descriptor goes to `descriptor`, close-on-exec; others are closed unseen. EMSGSIZE when
// the message or its descriptors did not fit.
ssize_t receive_with_descriptor(int socket, void* bytes, std::size_t size, int flags, Fd& descriptor);

// The same for several, in order. At most kMostDescriptors.
inline constexpr std::size_t kMostDescriptors = 128;
ssize_t send_with_descriptors(int socket, const void* bytes, std::size_t size, const int* descriptors, std::size_t count);
// `descriptors` has room for kMostDescriptors and owns none of them: whoever calls this ends or closes them all.
ssize_t receive_with_descriptors(int socket, void* bytes, std::size_t size, int flags, int* descriptors, std::size_t& count);

}  // namespace osb::sys
