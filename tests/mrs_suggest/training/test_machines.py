"""The files of trainers/configs/accelerate/ are ones that Accelerate takes, with options that it has."""

from pathlib import Path

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import launch_command_parser
from accelerate.utils import DeepSpeedPlugin
from accelerate.utils.launch import prepare_multi_gpu_env

PLAIN = {  # processes, CPU, precision
    "cpu": (1, True, "no"),
    "cpu_two_ranks": (2, True, "no"),
    "gpu": (1, False, "no"),
    "gpu_bf16": (1, False, "bf16"),
    "gpus_8": (8, False, "no"),
}
FOLDER = Path(__file__).parents[3] / "trainers" / "configs" / "accelerate"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_accelerate_takes_the_file(path: Path) -> None:
    found = load_config_from_file(str(path))
    launch = {action.dest for action in launch_command_parser()._actions}
    assert set(found.fsdp_config) | set(found.deepspeed_config) <= launch, "options that Accelerate would ignore"
    kinds = {"fsdp": "FSDP", "deepspeed_zero2": "DEEPSPEED", "deepspeed_zero3": "DEEPSPEED"}
    assert kinds.get(path.stem, found.distributed_type) == found.distributed_type
    assert bool(found.fsdp_config) == (found.distributed_type == "FSDP")
    assert bool(found.deepspeed_config) == (found.distributed_type == "DEEPSPEED")
    if path.stem in PLAIN:
        processes, *others = PLAIN[path.stem]
        assert (found.num_processes, found.use_cpu, found.mixed_precision) == (processes, *others)
        assert found.distributed_type == ("MULTI_GPU" if processes > 1 else "NO")


def test_the_options_of_sharding_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.commands.launch import _validate_launch_command
    from accelerate.utils import FullyShardedDataParallelPlugin

    words = ["--config_file", str(FOLDER / "fsdp.yaml"), "script.py"]
    arguments, *_ = _validate_launch_command(launch_command_parser().parse_args(words))
    for name, value in prepare_multi_gpu_env(arguments).items():
        if name.startswith("FSDP_"):
            monkeypatch.setenv(name, value)
    plugin = FullyShardedDataParallelPlugin()
    assert (plugin.fsdp_version, plugin.reshard_after_forward) == (2, True)
    assert plugin.state_dict_type.name == "FULL_STATE_DICT"


@pytest.mark.parametrize("stage", [2, 3])
def test_the_options_of_deepspeed_are_valid(stage: int) -> None:
    own = load_config_from_file(str(FOLDER / f"deepspeed_zero{stage}.yaml")).deepspeed_config
    plugin = DeepSpeedPlugin(**own)
    assert plugin.deepspeed_config["zero_optimization"]["stage"] == stage
