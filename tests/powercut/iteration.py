# SPDX-License-Identifier: GPL-2.0-only
"""One run and its cut, as files in a folder, and what they say must be there afterwards.

    start.index, start.data     what the writers began with; absent if with nothing
    plan.W                      what writer W was to do
    board                       how far each was when the power went
    found.index, found.data     what was there at the next boot
    drained.index, .data        what the lower file system had after unmounting
    ssd.json, console.log       of the boot that ran
"""

import itertools
import mmap
import os
import random
import shutil

from . import tree
from .model import Writer
from .ops import BOARD_GO, PROGRESS, unpack
from .plan import NOISE, Plan

WRITERS = 4
BOARD_BYTES = 1 << 20
FILES_AN_ITERATION = 10 ** 5
NOISE_BYTES = random.Random("noise").randbytes(NOISE)


class Iteration:
    def __init__(self, folder, **rules):
        self.folder = folder
        self.rules = rules          # what the model has to allow, for Writer

    # Before the run.

    def begin(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        with open(self.folder / "board", "wb") as board:
            board.truncate(BOARD_BYTES)

    def plan(self, seed, number, count, shape, start=None):
        """`start` is the iteration to go on from."""
        if start:
            for suffix in ("index", "data"):
                os.link(start.folder / f"found.{suffix}", self.folder / f"start.{suffix}")
        for writer, directory in enumerate(self._start()):
            first_id = (writer + 1) * 5 * 10 ** 8 + number * FILES_AN_ITERATION
            plan = self._plan(random.Random(f"{seed} {writer}"), directory, first_id, shape)
            (self.folder / f"plan.{writer}").write_bytes(b"".join(op.pack() for op in plan.ops(count)))

    def go(self):
        with open(self.folder / "board", "r+b") as board, mmap.mmap(board.fileno(), BOARD_BYTES) as words:
            PROGRESS.pack_into(words, BOARD_GO * PROGRESS.size, 1, 0, 0)

    # After it.

    def progress(self):
        """(begun, done, errno) of each writer."""
        board = (self.folder / "board").read_bytes()
        return [PROGRESS.unpack_from(board, writer * PROGRESS.size) for writer in range(WRITERS)]

    def errors(self):
        found = []
        for writer, (begun, _, error) in enumerate(self.progress()):
            if error:
                op = self._ops(writer)[begun - 1]
                found.append(f"writer {writer}: operation {begun} ({op}) failed: {os.strerror(error)}")
        return found

    def violations(self):
        found = []
        for writer, directory in enumerate(self._load("found")):
            texts = directory.faults + self._judge(self._model(writer), directory)
            found += [f"writer {writer}: {text}" for text in texts]
        return found

    def drain_violations(self):
        """What differs below from what was seen above before unmounting, and what no folder may look like."""
        found = []
        for writer, (above, below) in enumerate(zip(self._load("found"), self._load("drained"))):
            found += [f"writer {writer}: {text}" for text in (*below.faults, *self._differences(above, below))]
        return found

    def replay(self, writer):
        """(number, operation, whether it returned, the model after it) for all that began."""
        begun, done, _ = self.progress()[writer]
        model = self._model_at_start(writer)
        for number, op in enumerate(itertools.islice(self._ops(writer), begun), 1):
            returned = number <= done
            model.apply(op, returned)
            yield number, op, returned, model

    def _model(self, writer):
        model = self._model_at_start(writer)
        for *_, model in self.replay(writer):
            pass
        return model

    def _model_at_start(self, writer):
        return self._writer(self._start()[writer])

    def _start(self):
        if (self.folder / "start.index").exists():
            return self._load("start")
        return [self._nothing() for _ in range(WRITERS)]

    # What another campaign has in place of these: names/iteration.py.

    programs = {"writer": "writer.c", "dump": "dump.c"}         # in the guest, and their sources

    def _plan(self, dice, directory, first_id, shape):
        sizes = {file: len(content) for file, content in directory.contents.items()}
        return Plan(dice, directory.names, sizes, first_id, shape)

    def _ops(self, writer):
        return list(unpack((self.folder / f"plan.{writer}").read_bytes()))

    def _load(self, name):
        return tree.load(self.folder / name, WRITERS)

    def _nothing(self):
        return tree.Directory()

    def _writer(self, start):
        return Writer(start.names, start.contents, NOISE_BYTES, **self.rules)

    def _judge(self, model, directory):
        return model.check(directory.names, directory.contents)

    def _differences(self, above, below):
        if above.names != below.names:
            yield "names differ below after unmounting"
        for file in sorted(above.contents.keys() & below.contents.keys()):
            if above.contents[file] != below.contents[file]:
                yield (f"file {file} differs below after unmounting, "
                       + _first_difference(above.contents[file], below.contents[file]))


def _first_difference(above, below):
    if len(above) != len(below):
        return f"{len(above)} bytes above, {len(below)} below"
    return f"first at byte {next(at for at, (a, b) in enumerate(zip(above, below)) if a != b)}"
