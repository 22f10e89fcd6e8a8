# Bash: bash_kernel, which drives a real bash on a terminal of its own.
source /recipe/lib/steps.sh

install_packages python3-ipykernel python3-pexpect python3-filetype
install_wheels /recipe/wheels/bash.txt
python3 -W ignore -m compileall -q /usr/local/lib/python3*/dist-packages
place usr/local/share/jupyter/kernels/bash
