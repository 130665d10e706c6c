# SPDX-License-Identifier: GPL-2.0-only
"""One run of the campaign about names, and its cut: ../iteration.py with this folder's plans, programs and model."""

from ..iteration import NOISE_BYTES, WRITERS, Iteration
from .found import Found, load
from .model import Writer
from .ops import unpack
from .plan import Plan, Shape


class NamesIteration(Iteration):
    """`rules` are the other campaign's."""

    programs = {"names-writer": "names/writer.c", "names-dump": "names/dump.c"}

    def _plan(self, dice, directory, first_id, shape):
        # Half the time one writer never syncs: nothing is promised to it, and what it leaves must be a state that it had.
        syncs = 0 if first_id // (5 * 10 ** 8) == WRITERS and dice.random() < 0.5 else shape.syncs
        return Plan(dice, directory, first_id, Shape(syncs=syncs))

    def _ops(self, writer):
        return list(unpack((self.folder / f"plan.{writer}").read_bytes()))

    def _load(self, name):
        return load(self.folder / name, WRITERS)

    def _nothing(self):
        return Found()

    def _writer(self, start):
        return Writer(start, NOISE_BYTES, old_end=self.rules["old_end"])

    def _judge(self, model, directory):
        return model.check(directory)

    def _differences(self, above, below):
        if above.entries != below.entries:
            yield "names differ below after unmounting"
        for id_ in sorted(above.objects.keys() & below.objects.keys()):
            one, other = above.objects[id_], below.objects[id_]
            if one.content != other.content:
                yield f"the content of object {id_} ({above.path(id_)}) differs below after unmounting"
            for field in ("mode", "owner", "group", "mtime", "xattr"):
                if one.attributes[field] != other.attributes[field]:
                    yield (f"{field} of object {id_} ({above.path(id_)}) is {other.attributes[field]} below after unmounting, "
                           f"was {one.attributes[field]}")
