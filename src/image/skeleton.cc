#include "image/skeleton.h"

#include "base/text.h"

namespace osb::image {
namespace {

constexpr std::uint32_t kUser = 1000;

std::string passwd(const std::string& shell) {
  return cat("root:x:0:0:root:/root:", shell,
             "\n"
             "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
             "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
             "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
             "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
             "user:x:1000:1000:user:/home/user:",
             shell,
             "\n"
             "agent:x:65533:65533:OpenSandbox agent:/:/usr/sbin/nologin\n"
             "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
}

constexpr const char* kGroup =
    "root:x:0:\n"
    "daemon:x:1:\n"
    "bin:x:2:\n"
    "sys:x:3:\n"
    "adm:x:4:\n"
    "tty:x:5:\n"
    "disk:x:6:\n"
    "mail:x:8:\n"
    "www-data:x:33:\n"
    "utmp:x:43:\n"
    "staff:x:50:\n"
    "users:x:100:\n"
    "user:x:1000:\n"
    "agent:x:65533:\n"
    "nogroup:x:65534:\n";

constexpr const char* kNsswitch =
    "passwd: files\n"
    "group: files\n"
    "shadow: files\n"
    "hosts: files dns\n"
    "networks: files\n"
    "protocols: files\n"
    "services: files\n"
    "ethers: files\n"
    "rpc: files\n";

constexpr const char* kProfile =
    "# Login shells of the sandbox.\n"
    "PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}\n"
    "export PATH\n"
    "if [ -n \"$BASH_VERSION\" ] && [ -r /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi\n";

constexpr const char* kBashrc =
    "# Interactive shells of the sandbox.\n"
    "case $- in *i*) ;; *) return ;; esac\n"
    "PS1='\\u@\\h:\\w\\$ '\n"
    "HISTFILE=\n"
    "alias ls='ls --color=auto'\n";

// Enough for `openssl req` and for libraries that insist on the file.
constexpr const char* kOpenssl =
    "[req]\n"
    "distinguished_name = req_distinguished_name\n"
    "x509_extensions = v3_ca\n"
    "[req_distinguished_name]\n"
    "commonName = Common Name\n"
    "[v3_ca]\n"
    "subjectKeyIdentifier = hash\n"
    "authorityKeyIdentifier = keyid:always,issuer\n"
    "basicConstraints = critical,CA:true\n";

}  // namespace

void add_skeleton(Tree& tree, const std::string& login_shell) {
  for (const char* dir :
       {"usr", "proc", "sys", "dev", "run", "opt", "srv", "mnt", "etc", "var/lib", "var/cache", "var/log", "etc/ssl/certs"})
    tree.add_dir(dir);
  tree.add_dir("tmp", 01777);
  tree.add_dir("var/tmp", 01777);
  tree.add_dir("root", 0700);
  tree.add_dir("home/user", 0755, kUser);
  tree.add_dir("workspace", 0755, kUser);
  tree.add_link("var/run", "/run");
  tree.add_link("var/lock", "/run/lock");
  tree.add_link("etc/mtab", "../proc/self/mounts");

  tree.add_file("etc/passwd", passwd(login_shell));
  tree.add_file("etc/group", kGroup);
  tree.add_file("etc/shells", "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n");
  tree.add_file("etc/nsswitch.conf", kNsswitch);
  tree.add_file("etc/profile", kProfile);
  tree.add_file("etc/bash.bashrc", kBashrc);
  tree.add_file("etc/ssl/openssl.cnf", kOpenssl);
  // The launcher mounts its own over these.
  for (const char* file : {"etc/hosts", "etc/resolv.conf", "etc/hostname", "etc/machine-id"}) tree.add_file(file, "");
}

}  // namespace osb::image
