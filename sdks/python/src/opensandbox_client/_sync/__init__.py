"""The client that is awaited. The plain one, _sync, is written from this folder by tools/gen_sdk.py.

Written by tools/gen_sdk.py from _aio/__init__.py; change that, not this.
"""
