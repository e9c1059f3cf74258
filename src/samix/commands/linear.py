"""samix linear RUN: linear evaluation of a run's encoder, by SGD as in papers or exactly."""

import argparse
from dataclasses import asdict, fields, replace
from typing import Any

from samix.commands.probing import Opened, open_run, publish, split_words
from samix.core.words import suggest
from samix.evaluate import PROTOCOLS, LinearProbe, linear_probe, logistic_probe
from samix.nn.from_timm import PREFIX

BY_DATA = {
    **dict.fromkeys(("folder", "shards"), "imagenet"),
    **dict.fromkeys(("stl10", "stl10-unlabelled"), "stl10"),
    "tiny-imagenet": "tiny",
}
"""The protocols of the paper, which its MoCo rows have."""
BY_METHOD = dict.fromkeys(("simclr", "byol", "swav", "simsiam"), "simsiam")
"""ResNets that these methods trained on ImageNet: the paper is silent, and their own protocols have learning
rates below 2."""
TRANSFORMERS = ("vit-s", "vit-s-moco", "deit-s", "swin-t")
TIMM_TRANSFORMERS = tuple(f"{PREFIX}{family}" for family in ("vit", "deit", "swin"))
SETTINGS = {field.name: type(field.default) for field in fields(LinearProbe)}


def run(words: list[str]) -> None:
    """Prints top-1, top-5 and ECE of a linear classifier and writes linear.json."""
    parser = make_parser()
    folder, options, rest = split_words(parser, words)
    settings = {name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None}
    if options.exact and settings:
        raise ValueError(f"--exact has no --{next(iter(settings))}: it solves for the optimum.")
    if options.penalty is not None and not options.exact:
        raise ValueError("--penalty goes with --exact; SGD has --weight_decay.")
    if options.protocol is not None and options.protocol not in PROTOCOLS:
        raise ValueError(f"unknown protocol {suggest(options.protocol, PROTOCOLS)}")
    opened = open_run(folder, rest)
    if options.exact:
        result = solve(opened, 1e-3 if options.penalty is None else options.penalty)
    else:
        result = train(opened, options.protocol or protocol_for(opened), settings)
    publish(folder, "linear", words, result, as_json=options.json)


def make_parser() -> argparse.ArgumentParser:
    """The command's options; every setting of a protocol is one."""
    parser = argparse.ArgumentParser(
        prog="samix linear",
        usage="samix linear RUN [--protocol NAME | --exact] [--setting value ...] [--json] "
        "[--data.field value ...]",
        description="Train a linear classifier on a run's frozen encoder. Writes linear.json in the run "
        "folder. Fields of data and machine may be overridden, for example --data.root.",
        allow_abbrev=False,
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--protocol", help=f"{', '.join(PROTOCOLS)} (default: by dataset, encoder and method)")
    way.add_argument("--exact", action="store_true", help="solve logistic regression on fixed features")
    parser.add_argument("--penalty", type=float, help="L2 penalty of --exact (default: 1e-3)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    for name, kind in SETTINGS.items():
        several = {"nargs": "+", "type": int} if kind is tuple else {"type": kind}
        parser.add_argument(f"--{name}", help="changes this setting of the protocol", **several)
    return parser


def protocol_for(opened: Opened) -> str:
    """The protocol that fits a run's encoder, dataset and, on ImageNet, method."""
    name = opened.network.name
    if name in TRANSFORMERS or name.startswith(TIMM_TRANSFORMERS):
        return "vit"
    protocol = BY_DATA.get(opened.data.name, "small")
    return BY_METHOD.get(opened.method or "", protocol) if protocol == "imagenet" else protocol


def train(opened: Opened, protocol: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The SGD protocol, some of its settings changed; milestones move along with the epochs."""
    probe = PROTOCOLS[protocol]
    if "epochs" in settings and "milestones" not in settings:
        probe = probe.lasting(settings["epochs"])
    if "milestones" in settings:
        settings["milestones"] = tuple(settings["milestones"])
    probe = replace(probe, **settings)
    score = linear_probe(opened.encoder, opened.split, opened.data, probe, device=opened.device)
    return score._asdict() | {"protocol": protocol} | asdict(probe)


def solve(opened: Opened, penalty: float) -> dict[str, Any]:
    """Logistic regression on features of pictures as they are seen in testing."""
    train, test = opened.features(opened.split.train), opened.features(opened.split.test)
    score = logistic_probe(*train, *test, classes=len(opened.split.train.classes), penalty=penalty)
    return score._asdict() | {"protocol": "exact", "penalty": penalty}
