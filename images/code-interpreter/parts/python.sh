# Python: the kernel and the libraries that people expect of a code interpreter. All from Debian: no compiler, security updates.
source /recipe/lib/steps.sh

# OpenBLAS without threads: matrices are fast, and a sandbox with one processor starts no pool for those of the host.
install_packages python3-ipykernel python3-numpy libopenblas0-serial python3-pandas python3-matplotlib python3-openpyxl python3-requests
# Debian's kernelspec turns frozen modules off for a debugger that nobody attaches here; execd's fork server starts the plain one.
place usr/local/share/jupyter/kernels/python3
# The libraries' own tests: a fifth of their size, and nothing imports them.
find /usr/lib/python3/dist-packages -mindepth 2 -type d -name tests -prune -exec rm -rf {} +
# Character tables for programs that make fonts; Python has its own.
rm -rf /usr/share/unicode/*
python3 - <<'CHECK'
import ipykernel, matplotlib, numpy, pandas
print("python:", ipykernel.__version__, numpy.__version__, pandas.__version__, matplotlib.__version__)
CHECK
