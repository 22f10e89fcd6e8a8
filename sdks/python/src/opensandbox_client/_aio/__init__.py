"""The client that is awaited. The plain one, _sync, is written from this folder by tools/gen_sdk.py."""
