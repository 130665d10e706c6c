# SPDX-License-Identifier: GPL-2.0-only
"""What scripts/mentions takes for a name of something that is not there."""

import subprocess
from pathlib import Path

import pytest

MENTIONS = Path(__file__).resolve().parents[2] / "scripts/mentions"
GOOD = {
    "fs/a.c": "/* fb_a(), fb_* and a.h; the kernel's vfs_x(). */\nvoid fb_a(void)\n{\n}\n",
    "fs/a.h": "void fb_a(void);\n",
    "fs/b.py": '"""fs/a.c."""\nX = "FOREBAY_X"\n',
    "docs/page.md": "# A page\n`fb_a()` [here](#a-page), [there](other.md#other-page)\n\n    fs/a.c   fb_a()\n",
    "docs/other.md": "# Other page\nNames of files are relative to `fs/`: `a.c`, FOREBAY_X, [page.md](page.md).\n",
}


@pytest.fixture
def mentions(tmp_path):
    """Runs the script in a checkout of the given files; returns the exit code and the lines."""
    def run(files):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
        done = subprocess.run([MENTIONS, tmp_path], capture_output=True, text=True)
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()
    return run


def test_what_is_there(mentions):
    assert mentions(GOOD) == (0, [])


@pytest.mark.parametrize("name,text,said", [
    ("fs/a.c", "/*\n * fb_gone()\n */\nvoid fb_a(void)\n{\n}\n", "fs/a.c:2: nothing is called fb_gone"),
    ("fs/a.c", "/* see gone.c */\nvoid fb_a(void)\n{\n}\n", "fs/a.c:1: no file gone.c"),
    ("fs/b.py", "X = 'FOREBAY_X'     # dm/a.c\n", "fs/b.py:1: no file dm/a.c"),
    ("docs/page.md", "`FOREBAY_GONE`\n", "docs/page.md:1: nothing is called FOREBAY_GONE"),
    ("docs/page.md", "[x](gone)\n", "docs/page.md:1: no gone"),
    ("docs/page.md", "# A page\n[x](#gone)\n", "docs/page.md:2: no #gone"),
    ("docs/page.md", "Walk\n\n    fs/a.h\n    fs/b.py\n    fs/a.c    fb_a()\n", None),
    ("docs/page.md", "Walk\n\n    fs/a.c\n              fb_b()\n", "docs/page.md:4: no fb_b() in fs/a.c"),
    ("docs/other.md", "# Other page\nrelative to `fs/`: `page.md`, `b.c`\n", "docs/other.md:2: no file b.c"),
])
def test_what_is_not_there(mentions, name, text, said):
    """A comment of the code doesn't count as the code itself."""
    more = {"dm/b.c": "void fb_b(void)\n{\n}\n", "docs/other.md": "# Other page\n"}
    assert mentions(GOOD | more | {name: text}) == ((1, [said]) if said else (0, []))
