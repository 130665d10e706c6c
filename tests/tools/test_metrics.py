# SPDX-License-Identifier: GPL-2.0-only
"""forebay metrics: OpenMetrics text of made-up mounts and mapped devices, as two parsers read it, against the status verbs."""

import json
import os
import re
import shutil
import subprocess

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus_text

from conftest import CHECKOUT, DONE, FAILED, USAGE
from test_status import MOUNTED, MOUNT_LINE, kernel     # noqa: F401: a fixture

assert callable(kernel)
PAGE, SECTOR = 4096, 512
TARGET_VALUES = {"writelog": ("dm/writelog/status.c", "DWL"), "transit": ("dm/transit/status.c", "DTC")}


def families(text, parser=open_metrics):
    return {family.name: family for family in parser(text)}


def samples(text):
    """The samples by their names, of one object each, but for the buckets of histograms."""
    found = {}
    for family in open_metrics(text):
        for sample in family.samples:
            if not sample.name.endswith("_bucket"):
                assert sample.name not in found
                found[sample.name] = sample
    return found


def counters_of(noun):
    """What a target of this checkout says at the end of its status line: its counters."""
    path, prefix = TARGET_VALUES[noun]
    names = re.findall(rf'^\t\[{prefix}_(?!PHASE)\w+\] = "(\w+)",$', (CHECKOUT / path).read_text(), re.MULTILINE)
    assert len(names) > 10
    return {name: 1000 + number for number, name in enumerate(names)}


@pytest.fixture
def everything(mapper, kernel, tmp_path):   # noqa: F811
    """A mount, a write log and a transit cache, with a different value in each counter."""
    values = {key: value + 7 * number if isinstance(value, int) and key != "volatile_cache" else value
              for number, (key, value) in enumerate(MOUNTED.items())}
    root = kernel(MOUNT_LINE, pmem0=values)["FOREBAY_SYSROOT"]
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    mapper.log(**{**counters_of("writelog"), "regions": 3, "refused": 5})
    pairs = {"refused": 2, **counters_of("transit")}
    mapper.device("quick", "forebay-transit", f"ok transit 12/4096 {2 * len(pairs)} " +
                  " ".join(f"{key} {value}" for key, value in pairs.items()), "253:0 2 workers 3")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/dm-0").symlink_to("../../devices/dm-0")
    return mapper


def test_no_device(forebay, kernel):    # noqa: F811
    result = forebay("metrics", **kernel())
    assert (result.status, result.out, result.err) == (DONE, "# EOF\n", "")
    assert families(result.out) == {}


def test_counters_are_those_of_status(everything):
    """Each value of sysfs is in a metric, in base units."""
    result = everything("metrics")
    assert result.status == DONE and not result.err
    shown, status = samples(result.out), everything("status", "--json").json[0]
    renamed = {"pages_total": "size_bytes", "cache_full": "full_total", "files_total": "files", "volatile_cache": "volatile",
               "writeback_age": "writeback_age_seconds"}
    for key, value in status.items():
        if not isinstance(value, int) or isinstance(value, bool) or key == "last_error":
            continue
        stem = re.sub(r"^pages_(\w+)$", r"\1_bytes", key).replace("_ns", "_seconds")
        names = [renamed.get(key, stem), stem + "_total", stem + "_bytes", f"{stem}_bytes_total"]
        sample, = {name: shown[name] for name in (f"forebay_cache_{part}" for part in names) if name in shown}.values()
        unit = PAGE if "bytes" in sample.name and not key.startswith(("names_", "cop", "mapped_")) else 1
        assert sample.value == pytest.approx(value * unit / (1e9 if key.endswith("_ns") else 1)), key
        assert sample.labels == {"cache": "/dev/pmem0", "uuid": MOUNTED["cache_uuid"], "mount": "/srv/my db"}
    assert shown["forebay_cache_writeback_failing"].value == 1      # of the made-up last_error
    assert shown["forebay_cache_info"].labels["lower"] == "/srv/ssd"


def test_histograms(everything):
    """Buckets add up to the count, are the same whatever was counted, and end with all."""
    found = families(everything("metrics").out)
    limits = None
    for kind, counted in ("memory", {2048: 50, 4096: 49, 8192: 1}), ("move", {16384: 200}), ("storage", {}):
        family = found[f"forebay_cache_sync_{kind}_seconds"]
        buckets = {sample.labels["le"]: sample.value for sample in family.samples if sample.name.endswith("_bucket")}
        limits = limits or list(buckets)
        assert list(buckets) == limits and limits[-1] == "+Inf" and len(limits) == 26
        for limit, value in buckets.items():
            assert value == sum(n for ns, n in counted.items() if ns <= float(limit) * 1e9 * 1.000001), limit
        count, total = (next(sample.value for sample in family.samples if sample.name.endswith(end)) for end in ("_count", "_sum"))
        assert count == buckets["+Inf"]
        assert total == pytest.approx({"memory": 300e-6, "move": 4e-3, "storage": 0}[kind])


@pytest.mark.parametrize("noun", TARGET_VALUES)
def test_counters_of_a_target(everything, noun):
    """Every counter of the target in this checkout has a metric, of the same value."""
    shown = samples(everything("metrics").out)
    values = everything(noun, "status", "--json").json[0]["values"]
    for key, value in counters_of(noun).items():
        assert values[key] == value
        name, unit = (key[:-len("_sectors")] + "_bytes", SECTOR) if key.endswith("_sectors") else (key, 1)
        assert shown[f"forebay_{noun}_{name}_total"].value == value * unit


def test_states(everything, tmp_path):
    shown = samples(everything("metrics").out)
    assert shown["forebay_writelog_healthy"].value == 1 and shown["forebay_writelog_failed"].value == 0
    assert shown["forebay_writelog_refused_blocks"].value == 5
    assert shown["forebay_writelog_used_bytes"].value == 3 << 20
    assert shown["forebay_transit_slots"].value == 4096 and shown["forebay_transit_healthy"].value == 1
    everything.log(health="failed")
    shown = samples(everything("metrics").out)
    assert shown["forebay_writelog_healthy"].value == 0 and shown["forebay_writelog_failed"].value == 1
    everything.log(health="error")
    shown = samples(everything("metrics").out)
    assert shown["forebay_writelog_healthy"].value == 0 and shown["forebay_writelog_failed"].value == 0


def test_names_and_units(everything):
    """Prometheus' conventions: base units at the end, _total behind a counter only; each family has a sentence."""
    text = everything("metrics").out
    for name, family in families(text).items():
        assert re.fullmatch(r"forebay_(cache|writelog|transit)_[a-z_]+", name) and not name.endswith("_total")
        assert family.type in ("counter", "gauge", "histogram") and re.fullmatch(r"[A-Z1][^\n]*\.", family.documentation)
        assert family.unit == next((unit for unit in ("bytes", "seconds") if name.endswith(f"_{unit}")), "")
        for sample in family.samples:
            suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}[family.type]
            assert sample.name in [name + suffix for suffix in suffixes]
    assert text.endswith("\n# EOF\n")


def test_the_textfile_collector_reads_it(everything):
    """The collector takes Prometheus' older format: no family is lost there, and no name is of an unknown type."""
    text = everything("metrics").out
    older = {sample.name: sample.value for family in prometheus_text(text) for sample in family.samples
             if not sample.name.endswith("_bucket")}
    assert older == {name: sample.value for name, sample in samples(text).items()}
    assert set(re.findall(r"^# TYPE \S+ (\w+)$", text, re.MULTILINE)) == {"counter", "gauge", "histogram"}


def test_labels_are_escaped(forebay, kernel):   # noqa: F811
    line = MOUNT_LINE.replace(r"my\040db", r'a"b\134c\012d')
    text = forebay("metrics", **kernel(line, pmem0={})).out
    assert samples(text)["forebay_cache_volatile"].labels["mount"] == '/srv/a"b\\c\nd'


@pytest.mark.parametrize("name, label", [(b"\xff\xfe", "\ufffd\ufffd"), (b"a\xed\xa0\x80", "a\ufffd\ufffd\ufffd"), (b"\xe8\xaa", "\ufffd\ufffd"),
                                         (b"\xc2\x85\xe2\x80\xa8", "\x85\u2028"), (b"\r\x7f\x01", None), (b'{}",le="3', None),
                                         ("\u8a9e".encode() * 85, None), (b"", None)])
def test_labels_of_all_kinds(command, kernel, tmp_path, name, label):   # noqa: F811
    """A byte that is not UTF-8 is replaced; all else is as it is. Both parsers take it."""
    environment = kernel(MOUNT_LINE, pmem0={})
    mountinfo = tmp_path / "root/proc/self/mountinfo"
    mountinfo.write_bytes(mountinfo.read_bytes().replace(rb"my\040db", name))
    text = subprocess.run([command, "metrics"], env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert samples(text)["forebay_cache_volatile"].labels["mount"] == "/srv/" + (label or name.decode())
    assert families(text, prometheus_text)


def test_an_older_module_lacks_metrics(forebay, kernel):    # noqa: F811
    environment = kernel(MOUNT_LINE, pmem0={})
    os.remove(f"{environment['FOREBAY_SYSROOT']}/sys/fs/forebay/pmem0/names_used")
    shown = samples(forebay("metrics", **environment).out)
    assert "forebay_cache_names_used_bytes" not in shown and "forebay_cache_names_size_bytes" in shown


def test_output(forebay, kernel, tmp_path):     # noqa: F811
    """The file is replaced at once: a reader that has it open keeps the old text, and nothing is left beside it."""
    environment, path = kernel(MOUNT_LINE, pmem0={}), tmp_path / "out/forebay.prom"
    path.parent.mkdir()
    path.write_text("old\n")
    with open(path, encoding="utf-8") as reader:
        result = forebay("metrics", "--output", path, **environment)
        assert (result.status, result.out, result.err) == (DONE, "", "")
        assert reader.read() == "old\n"
    assert path.read_text() == forebay("metrics", **environment).out
    assert path.stat().st_mode & 0o777 == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["forebay.prom"]


def test_output_to_what_is_no_file(forebay, kernel, tmp_path):      # noqa: F811
    """/dev/null and the like are written to: another file in their place would break the machine."""
    environment, pipe = kernel(MOUNT_LINE, pmem0={}), tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert forebay("metrics", "--output", pipe, **environment).status == DONE
    assert os.read(reader, 1 << 16).decode() == forebay("metrics", **environment).out and pipe.is_fifo()
    os.close(reader)
    folder = forebay("metrics", "--output", tmp_path, **environment)
    assert folder.status == FAILED and "Is a directory" in folder.err


def test_output_to_standard_output(forebay, kernel, tmp_path, monkeypatch):      # noqa: F811
    environment = kernel(MOUNT_LINE, pmem0={})
    monkeypatch.chdir(tmp_path)
    result = forebay("metrics", "--output", "-", **environment)
    assert result.status == DONE and result.out == forebay("metrics", **environment).out
    assert not os.path.lexists("-")


def test_output_to_a_link(forebay, kernel, tmp_path):      # noqa: F811
    """The owner of the folder can make one that leads to a disk. The link is replaced, and nothing is written where it leads."""
    environment, pipe, path = kernel(MOUNT_LINE, pmem0={}), tmp_path / "pipe", tmp_path / "forebay.prom"
    os.mkfifo(pipe)
    path.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert forebay("metrics", "--output", path, **environment).status == DONE
    assert os.read(reader, 1 << 16) == b"" and path.is_file() and not path.is_symlink()
    os.close(reader)


def test_output_that_fails(forebay, kernel, tmp_path):      # noqa: F811
    environment, folder = kernel(MOUNT_LINE, pmem0={}), tmp_path / "folder"
    folder.mkdir()
    for path in folder, tmp_path / "missing/forebay.prom":
        result = forebay("metrics", "--output", path, **environment)
        assert result.status == FAILED and result.err.startswith(f"forebay metrics: cannot write {path}: ")
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith("folder.")] and folder.is_dir()


def test_part_of_the_devices_is_no_output(everything, tmp_path):
    """A target that the command doesn't understand: the old file stays."""
    path = tmp_path / "forebay.prom"
    path.write_text("old\n")
    everything.device("fast", "forebay-wlog", "nonsense", "nonsense")
    assert everything("metrics", "--output", path).status == FAILED
    assert path.read_text() == "old\n"


def test_arguments(forebay):
    result = forebay("metrics", "more")
    assert result.status == USAGE and "unexpected argument 'more'" in result.err
    result = forebay("metrics", "--output", "")
    assert result.status == USAGE and "--output '': expected a file" in result.err


def printable(everything):
    """The names of all samples that the command can print."""
    return {sample.name for family in open_metrics(everything("metrics").out) for sample in family.samples}


def names_in(text):
    return set(re.findall(r"\bforebay_[a-z_]+", text))


def test_documentation_names_every_metric(everything):
    table = names_in("\n".join(re.findall(r"^\| (`.*?`) \|", (CHECKOUT / "docs/metrics.md").read_text(), re.MULTILINE)))
    shown = {family.name if family.type == "histogram" else sample.name
             for family in open_metrics(everything("metrics").out) for sample in family.samples}
    assert table == shown


def test_dashboard_and_alerts_use_metrics_that_exist(everything):
    """Every metric in an expression; a name that `metrics` can't print would show an empty panel, or never alert."""
    board = json.loads((CHECKOUT / "docs/grafana/forebay.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    assert len(expressions) > 10 and len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    rules = (CHECKOUT / "docs/grafana/alerts.yml").read_text()
    found = re.findall(r"^ +expr: (.*)$", rules, re.MULTILINE)
    assert len(found) == len(re.findall(r"^ +- alert: ", rules, re.MULTILINE)) > 5
    variables = [variable["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    for expression in [*expressions, *found, *variables]:
        assert names_in(expression) and names_in(expression) <= printable(everything), expression
