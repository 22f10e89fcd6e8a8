// Named volumes: ext4 images with a name that outlive sandboxes. However many sandboxes share one, its image is attached to one
// loop device and has one superblock, so that all see the same files at once.
//
// Nothing is remembered: a helper finds the loop device that has the image already, or attaches a free one, and the kernel
// gives every mount of the same device the same superblock. The device clears itself with its last mount.
#pragma once
#include <functional>
#include <string>

#include "launch/disk.h"

namespace osb::launch {

// Starts a helper that mounts the image `directory`/`name`, which is made from the template when it is missing, and sends the
// detached mount as start_disk_helper does.
Result<DiskHelper> start_volume_helper(const std::string& directory, const std::string& name, const std::string& template_path,
                                       const std::function<bool()>& leave_device_rules);

}  // namespace osb::launch
