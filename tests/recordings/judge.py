"""Judges recordings and exports; see `run` beside this file."""

import json
import signal
import sys
import tempfile
from pathlib import Path

import jsonschema
import numpy
import pandas
import pyarrow.parquet
from judging import FPS, check, held, serving, steadyhand
from kills import judge_kills
from mcap.reader import make_reader

SCHEMAS, KILLS = Path(sys.argv[2]), int(sys.argv[3])
INDEX_COLUMNS = {"timestamp": "float32", "frame_index": "int64", "episode_index": "int64", "index": "int64", "task_index": "int64"}

def node_file(folder):
    """A node with a camera that it records."""
    file = folder / "node.toml"
    file.write_text(
        f'state = "{folder / "state"}"\noutput = "{folder / "out"}"\nrecord = {{ cameras = ["over"], fps = 2 }}\n'
        '[[cameras]]\nname = "over"\nsource = "simulator"\nfocal_px = [450.0, 450.0]\nsize_px = [640, 480]\n'
        "[cameras.simulated]\nstands_m = [0.01, -0.402, 0.345]\nlooks_at_m = [0.0, -0.175, 0.005]\n"
    )
    return file


def validator(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def judge_recording(path, schemas):
    """Every message of a finished recording: sums, schemas, order, and that each tick is whole."""
    counts, validators = {}, {}
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        check(summary is not None and summary.chunk_indexes, f"{path} is indexed")
        check({chunk.compression for chunk in summary.chunk_indexes} == {"lz4"}, "its chunks are compressed")
        for schema, channel, message in reader.iter_messages():
            said = json.loads(message.data)
            if schema.id not in validators:
                validators[schema.id] = [validator(json.loads(schema.data))]
                if schema.name.startswith("foxglove."):
                    validators[schema.id].append(validator(schemas[schema.name.removeprefix("foxglove.")]))
            for each in validators[schema.id]:
                wrong = next(each.iter_errors(said), None)
                check(wrong is None, f"{channel.topic}: {wrong}")
            counts[channel.topic] = counts.get(channel.topic, 0) + 1
        names = [attachment.name for attachment in reader.iter_attachments()]
    stored = {summary.channels[channel].topic: count for channel, count in summary.statistics.channel_message_counts.items()}
    check(counts == stored, f"{counts} are the messages that its statistics count: {stored}")
    ticks = counts["/job"]
    for topic in ["/joint_states", "/joint_setpoints", "/pen", "/target", "/servos"]:
        check(counts[topic] == ticks, f"{topic} has {counts[topic]} messages for {ticks} ticks")
    for topic in ["/tf", "/plan", "/ink", "/log", "/bus"]:
        check(counts.get(topic, 0) > 0, f"{topic} has messages")
    for name in ["plan-1.json", "job.json", "audit.log"]:
        check(name in names, f"{name} is attached: {names}")
    return counts


def tables(out, kind):
    files = sorted((out / kind).glob("chunk-*/file-*.parquet"))
    check(files, f"{kind} has files")
    return pandas.concat([pandas.read_parquet(file) for file in files], ignore_index=True), files


def judge_dataset(out):
    """The data set as LeRobot's loader sees it, and its statistics against numpy's."""
    info = json.loads((out / "meta/info.json").read_text())
    stats = json.loads((out / "meta/stats.json").read_text())
    frames, files = tables(out, "data")
    episodes, _ = tables(out, "meta/episodes")
    tasks = pandas.read_parquet(out / "meta/tasks.parquet")
    check(info["codebase_version"] == "v3.0" and info["fps"] == FPS, "v3.0 at the frames a second that were asked for")
    check(info["total_frames"] == len(frames) == episodes["length"].sum(), "as many frames as info.json and the episodes say")
    check(info["total_episodes"] == len(episodes), "as many episodes as info.json says")
    check(info["total_tasks"] == len(tasks) and list(tasks.columns) == ["task_index"], "tasks are indexed by their text")
    groups = sum(pyarrow.parquet.ParquetFile(file).num_row_groups for file in files)
    check(groups == len(episodes), "a row group an episode")
    check(set(frames.columns) == set(info["features"]), f"the features are the columns: {list(frames.columns)}")
    check((frames["index"] == numpy.arange(len(frames))).all(), "index runs over the data set")
    exact = (frames["frame_index"] / FPS).astype("float32")
    check((frames["timestamp"] == exact).all(), "timestamp is frame / fps")
    for name, kind in INDEX_COLUMNS.items():
        check(str(frames[name].dtype) == kind, f"{name} is {frames[name].dtype}")
    for row in episodes.itertuples():
        ours = frames.iloc[row.dataset_from_index : row.dataset_to_index]
        check(len(ours) == row.length and (ours["episode_index"] == row.episode_index).all(), f"episode {row.episode_index}")
        check((ours["frame_index"] == numpy.arange(row.length)).all(), "frames of an episode are counted from 0")
        check(row.tasks[0] in tasks.index, f"its task is known: {row.tasks}")
        check((ours["task_index"] == tasks.loc[row.tasks[0], "task_index"]).all(), "its frames have its task")
    for name, feature in info["features"].items():
        if feature["dtype"] == "image":
            judge_images(frames[name], feature, stats[name])
            continue
        values = numpy.stack([numpy.atleast_1d(value) for value in frames[name]]).astype(numpy.float64)
        check(values.shape[1] == feature["shape"][0], f"{name} has {feature['shape']} numbers: {values.shape}")
        check(feature["names"] is None or len(feature["names"]) == feature["shape"][0], f"{name} names each")
        check(numpy.isfinite(values).all(), f"{name} has numbers")
        right = {
            "min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0), "count": [len(values)],
            **{f"q{share:02}": numpy.quantile(values, share / 100, axis=0) for share in (1, 10, 50, 90, 99)},
        }
        for figure, expected in right.items():
            told = numpy.array(stats[name][figure])
            check(numpy.allclose(told, expected, rtol=1e-9, atol=1e-6), f"{figure} of {name} is {expected}, not {told}")
    moved = numpy.stack(frames["action"]).std(0).max()
    check(moved > 1.0, f"the arm moved: {moved} degrees")
    off = numpy.abs(numpy.stack(frames["action"]) - numpy.stack(frames["observation.state"])).max()
    check(0 < off < 10, f"what was read follows what was sent, and is not the same: {off} degrees")
    return info, frames


def judge_images(column, feature, stats):
    """Pictures are files inside the table, with the size that the feature says."""
    height, width, _ = feature["shape"]
    for picture in column:
        data = picture["bytes"]
        check(data[:8] == b"\x89PNG\r\n\x1a\n" or data[:2] == b"\xff\xd8", "a PNG or a JPEG")
        if data[:4] == b"\x89PNG":
            size = (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
            check(size == (width, height), f"a picture of {width} by {height}: {size}")
    for figure in ["min", "max", "mean", "std"]:
        told = numpy.array(stats[figure])
        check(told.shape == (3, 1, 1) and (0 <= told).all() and (told <= 1).all(), f"{figure} is per channel: {told}")


def judge_with_datasets(out, info, frames):
    """Hugging Face's own reader, with the features that LeRobot gives it."""
    import datasets

    kinds = {}
    for name, feature in info["features"].items():
        if feature["dtype"] == "image":
            kinds[name] = datasets.Image()
        elif feature["shape"] == [1]:
            kinds[name] = datasets.Value(feature["dtype"])
        else:
            kinds[name] = datasets.List(datasets.Value(feature["dtype"]), length=feature["shape"][0])
    files = [str(file) for file in sorted(out.glob("data/chunk-*/file-*.parquet"))]
    with tempfile.TemporaryDirectory() as cache:
        read = datasets.Dataset.from_parquet(files, features=datasets.Features(kinds), cache_dir=cache)
        check(len(read) == len(frames), "as many rows")
        row = len(read) // 2
        check(read[row]["index"] == row and len(read[row]["action"]) == info["features"]["action"]["shape"][0], "a row in the middle")


def same_files(one, other):
    paths = lambda folder: sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    check(paths(one) == paths(other), "the same names")
    for path in paths(one):
        check((one / path).read_bytes() == (other / path).read_bytes(), f"{path} is the same")


def judge_exports(folder, config):
    """Each form twice: the same recordings give the same files."""
    for form in ["csv", "svg", "gcode"]:
        steadyhand("--config", config, "recording", "export", form, "job-1", "--out", folder / form)
    svg = (folder / "svg/job-1.svg").read_text()
    gcode = (folder / "gcode/job-1.gcode").read_text()
    table = pandas.read_csv(folder / "csv/job-1.csv")
    strokes = table[table["doing"] == "draw"]["stroke"].nunique()
    check(svg.count("<polyline") == strokes == gcode.count("G1 Z0"), "a line a stroke in each form")
    check("\nT1\n" in gcode and "\nT0\n" not in gcode, "pens count from 1 in G-code")
    check((table["time_s"].diff().dropna() > 0).all(), "time goes on")
    args = ["--config", config, "recording", "export", "lerobot", "job-1", "job-2", "--fps", FPS, "--out"]
    steadyhand(*args, folder / "set")
    info, frames = judge_dataset(folder / "set")
    steadyhand(*args, folder / "again")
    same_files(folder / "set", folder / "again")
    # One that was cut short has no info.json; the same command makes it whole.
    (folder / "again/meta/info.json").unlink()
    (folder / "again/data/chunk-000/file-000.parquet").write_bytes(b"PAR1")
    steadyhand(*args, folder / "again")
    same_files(folder / "set", folder / "again")
    (folder / "foreign").mkdir()
    (folder / "foreign/mine.txt").write_text("mine")
    steadyhand(*args, folder / "foreign", code=1)
    if KILLS >= 200:
        judge_with_datasets(folder / "set", info, frames)
    print(f"data set: {info['total_episodes']} episodes, {info['total_frames']} frames, {list(info['features'])}")


def longest_without_picture_s(recording):
    """The longest time between two pictures, or between one and an end of the recording."""
    with recording.open("rb") as file:
        at_ns = {"/camera/over": [], "/job": []}
        for _, channel, message in make_reader(file).iter_messages(topics=list(at_ns)):
            at_ns[channel.topic].append(message.log_time)
    ticks, pictures = at_ns["/job"], at_ns["/camera/over"]
    return max(numpy.diff([ticks[0], *pictures, ticks[-1]])) / 1e9


def draw_with_pictures(folder, config, state):
    with serving(folder, config, state) as (node, url):
        steadyhand("call", "stroke", '{"scene":"letters"}', "--node", url)
        node.send_signal(signal.SIGTERM)
        node.wait()
    return state / "jobs/job-1/job.mcap"


def judge_pictures(folder, config, schemas):
    """A drawing in real time, with pictures of a camera: recorded at their rate, and in the data set."""
    # A frame of the data set wants a picture within a second: a machine that was busier than that is asked again.
    for attempt in range(10):
        recording = draw_with_pictures(folder, config, folder / f"seen-{attempt}")
        if longest_without_picture_s(recording) < 1.0:
            break
    counts = judge_recording(recording, schemas)
    check(counts.get("/camera/over", 0) >= 10, f"pictures are recorded: {counts}")
    steadyhand("recording", "export", "lerobot", recording, "--fps", FPS, "--out", folder / "seen-set")
    info, frames = judge_dataset(folder / "seen-set")
    check("observation.images.over" in info["features"], f"pictures are exported: {list(info['features'])}")
    if KILLS >= 200:
        judge_with_datasets(folder / "seen-set", info, frames)
    size = sum(path.stat().st_size for path in (folder / "seen-set").rglob("*") if path.is_file())
    print(f"pictures: {counts['/camera/over']}, recording {recording.stat().st_size // 1000} kB, data set {size // 1000} kB")


def main():
    schemas = json.loads(SCHEMAS.read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scenes").mkdir()
        config = node_file(folder)
        for scene in ["letters", "default"]:
            steadyhand("--config", config, "call", "stroke", json.dumps({"scene": scene}))
        for job in ["job-1", "job-2"]:
            counts = judge_recording(folder / f"state/jobs/{job}/job.mcap", schemas)
            print(f"{job}: {sum(counts.values())} messages, {counts}")
        judge_exports(folder, config)
        judge_pictures(folder, config, schemas)
        steadyhand("--config", config, "recording", "replay", "job-1")
        steadyhand("--config", config, "recording", "report", "job-1", "--out", folder / "report.html")
        steadyhand("--config", config, "recording", "show", "job-1", "--out", folder / "show.png")
        judge_kills(folder, config, KILLS)
    print(f"{held()} things hold")


main()
