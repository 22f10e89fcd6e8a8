"""Files and directories through the published Python SDK: what its own suites assert, and the edges around it."""
import io
from datetime import timedelta

import pytest
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.filesystem import ContentReplaceEntry, DirectoryListEntry, MoveEntry, SearchEntry, SetPermissionEntry, WriteEntry

TEXT = "Hello Filesystem! Line one åäö\nLine two with a word\n"


def paths(entries):
    return sorted(entry.path for entry in entries)


async def outputs(box, command):
    return [message.text for message in (await box.commands.run(command)).logs.stdout]


async def test_the_bundle_of_the_published_suites(box):
    one, two = "/tmp/fs_test1", "/tmp/fs_test2"
    await box.files.create_directories([WriteEntry(path=one, mode=755), WriteEntry(path=two, mode=644)])
    info = await box.files.get_file_info([one, two])
    assert [(info[path].path, info[path].mode, info[path].entry_type) for path in (one, two)] == [(one, 755, "directory"), (two, 644, "directory")]
    assert all(abs(entry.created_at - entry.modified_at) <= timedelta(seconds=2) for entry in info.values())
    assert len(await outputs(box, "ls -la /tmp | grep fs_test")) == 2

    text, data, stream = f"{one}/text.txt", f"{one}/bytes.bin", f"{one}/stream.txt"
    await box.files.write_files([
        WriteEntry(path=text, data=TEXT, mode=644),
        WriteEntry(path=data, data=TEXT.encode(), mode=755),
        WriteEntry(path=stream, data=io.BytesIO(TEXT.encode()), mode=755, owner="nobody", group="nogroup"),
    ])
    assert await box.files.read_file(text) == TEXT
    assert await box.files.read_bytes(data) == TEXT.encode()
    assert await box.files.read_bytes(stream, range_header="bytes=0-9") == TEXT.encode()[:10]
    info = await box.files.get_file_info([text, data, stream])
    assert {entry.size for entry in info.values()} == {len(TEXT.encode())}
    assert [info[path].mode for path in (text, data, stream)] == [644, 755, 755]
    assert (info[stream].owner, info[stream].group) == ("nobody", "nogroup")
    assert paths(await box.files.search(SearchEntry(path=one, pattern="*"))) == sorted([text, data, stream])

    await box.files.set_permissions([SetPermissionEntry(path=text, mode=755, owner="nobody", group="nogroup"),
                                     SetPermissionEntry(path=data, mode=600, owner="nobody", group="nogroup")])
    changed = await box.files.get_file_info([text, data])
    assert [(changed[path].mode, changed[path].owner, changed[path].group) for path in (text, data)] == [(755, "nobody", "nogroup"), (600, "nobody", "nogroup")]

    before = changed[text]
    await box.files.write_file(text, TEXT + "more", mode=644)
    after = (await box.files.get_file_info([text]))[text]
    assert (await box.files.read_file(text), after.size) == (TEXT + "more", len((TEXT + "more").encode()))
    assert after.modified_at > before.modified_at

    await box.files.replace_contents([ContentReplaceEntry(path=text, old_content="Line one", new_content="Line 1")])
    assert "Line 1" in await box.files.read_file(text)
    counted = await box.files.replace_contents_detailed([ContentReplaceEntry(path=text, old_content="Line", new_content="Row"),
                                                         ContentReplaceEntry(path=data, old_content="absent", new_content="x")])
    assert sorted(result.replaced_count for result in counted) == [0, 2]

    moved = f"{two}/moved.txt"
    content = await box.files.read_bytes(text)
    await box.files.move_files([MoveEntry(src=text, dest=moved)])
    with pytest.raises(SandboxException):
        await box.files.get_file_info([text])
    assert await box.files.read_bytes(moved) == content

    await box.files.delete_files([data])
    with pytest.raises(SandboxException):
        await box.files.read_file(data)
    assert paths(await box.files.search(SearchEntry(path=one, pattern="*"))) == [stream]
    await box.files.delete_directories([one, two])
    assert (await box.commands.run(f"test ! -d {one} && test ! -d {two} && echo OK")).logs.stdout[0].text == "OK"


async def test_new_files_belong_to_the_user_of_the_sandbox(box):
    await box.files.write_file("/tmp/deep/er/own.txt", "x", mode=600)
    me = (await outputs(box, "id -un"))[0]
    info = (await box.files.get_file_info(["/tmp/deep/er/own.txt"]))["/tmp/deep/er/own.txt"]
    assert info.owner == me
    assert await outputs(box, "echo more >> /tmp/deep/er/own.txt && touch /tmp/deep/er/new && cat /tmp/deep/er/own.txt") == ["xmore"]


async def test_a_file_larger_than_a_buffer_comes_back_whole(sdk, box):
    blob = bytes(range(256)) * 20_000
    await box.files.write_file("/tmp/big.bin", blob)
    assert await box.files.read_bytes("/tmp/big.bin") == blob
    stream = await box.files.read_bytes_stream("/tmp/big.bin")
    joined = b"".join([part async for part in stream]) if sdk.is_async else b"".join(stream)
    assert joined == blob


async def test_list_directory(box):
    await box.files.write_files([WriteEntry(path=f"/tmp/tree/{name}", data="x") for name in ("b/c", "a", "d")])
    listed = await box.files.list_directory(DirectoryListEntry(path="/tmp/tree", depth=2))
    assert [entry.path for entry in listed] == ["/tmp/tree/a", "/tmp/tree/b", "/tmp/tree/b/c", "/tmp/tree/d"]


async def test_what_is_missing_is_a_404_with_a_code(box):
    for call in (box.files.read_file("/none"), box.files.get_file_info(["/none"]), box.files.search(SearchEntry(path="/none", pattern="*"))):
        with pytest.raises(SandboxApiException) as caught:
            await call
        assert caught.value.status_code == 404
