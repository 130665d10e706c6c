# SPDX-License-Identifier: GPL-2.0-only
"""The writer and the dump, on a file system of the host: plan, programs and model must be of one opinion."""

import mmap
import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from ..iteration import BOARD_BYTES, NOISE_BYTES
from ..ops import BOARD_GO, PROGRESS
from .found import Found, load
from .model import Writer
from .ops import unpack
from .plan import Plan, Shape

HERE = Path(__file__).parent
WRITERS, OPS, PATIENCE = 3, 1500, 60


@pytest.fixture(scope="module", name="programs")
def programs_fixture(tmp_path_factory):
    """Built with what finds wrong memory accesses."""
    target = tmp_path_factory.mktemp("bin")
    for name in ("writer", "dump"):
        subprocess.run(["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-Wall", "-Wextra", "-Werror", "-o", target / name,
                        HERE / f"{name}.c"], check=True)
    return target


def carry_out(programs, tmp_path, first_id, starts):
    """All of the plans, to their ends; what is there then."""
    plans, top = tmp_path / f"plans{first_id}", tmp_path / "top"
    plans.mkdir()
    for writer, start in enumerate(starts):
        (top / f"d{writer}").mkdir(parents=True, exist_ok=True)
        (top / f"d{writer}").chmod(0o777)
        ops = Plan(random.Random(f"{first_id} {writer}"), start, first_id + writer * 10 ** 8, Shape(xattrs=False)).ops(OPS)
        (plans / f"plan.{writer}").write_bytes(b"".join(op.pack() for op in ops))
    (tmp_path / "noise").write_bytes(NOISE_BYTES)
    board = bytearray(BOARD_BYTES)
    PROGRESS.pack_into(board, BOARD_GO * PROGRESS.size, 1, 0, 0)
    (tmp_path / "board").write_bytes(board)
    with subprocess.Popen([programs / "writer", top, plans, tmp_path / "noise", str(WRITERS)], start_new_session=True,
                          env={**os.environ, "POWERCUT_BOARD": str(tmp_path / "board")}, stdout=subprocess.DEVNULL) as process:
        await_end(tmp_path / "board")
        os.killpg(process.pid, 9)
    subprocess.run([programs / "dump", top, tmp_path / "found", str(WRITERS)], check=True)
    return plans, load(tmp_path / "found", WRITERS)


def await_end(path):
    """Of all writers; an operation that fails ends the test."""
    deadline = time.monotonic() + PATIENCE
    with open(path, "rb") as file, mmap.mmap(file.fileno(), BOARD_BYTES, prot=mmap.PROT_READ) as board:
        while True:
            states = [PROGRESS.unpack_from(board, writer * PROGRESS.size) for writer in range(WRITERS)]
            assert not any(error for *_, error in states), states
            if all(done == OPS for _, done, _ in states):
                return
            assert time.monotonic() < deadline, states
            time.sleep(0.02)


@pytest.mark.skipif(os.getuid() != 0, reason="files are made in the names of many users")
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_dumped_is_what_the_model_says(programs, tmp_path, seed):
    starts = [Found() for _ in range(WRITERS)]
    for first_id in (seed * 10 ** 6, seed * 10 ** 6 + 10 ** 5):
        plans, found = carry_out(programs, tmp_path, first_id, starts)
        for writer, each in enumerate(found):
            model = Writer(starts[writer], NOISE_BYTES)
            for op in unpack((plans / f"plan.{writer}").read_bytes()):
                model.apply(op)
            assert each.entries == model.tree.entries and not each.faults
            assert not model.check(each)
            for id_, what in each.objects.items():
                assert what.kind != "f" or what.content == bytes(model.files[id_].now)
        starts = found
