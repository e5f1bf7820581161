"""`mrs convert`: convert a fairseq checkpoint, or one with pytorch_model.bin, to the format of transformers 5."""

import argparse
import math
from pathlib import Path

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.text.text import visible


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs convert", description=__doc__)
    models = parser.add_subparsers(dest="model", required=True)
    unicoder = models.add_parser("unicoder", help="Unicoder-xDAE (fairseq), the generation baseline of MRS")
    unicoder.add_argument("checkpoint", type=Path, help="checkpoint.pt of Unicoder-xDAE")
    unicoder.add_argument(
        "--tokenizer",
        metavar="DIR_OR_HUB_ID",
        help="XLM-R's tokenizer (FacebookAI/xlm-roberta-base), gets the tags; without it, only the model is written",
    )
    unicoder.add_argument(
        "--language-tags",
        type=Path,
        metavar="FILE",
        help="one tag per line, in the order of their ids (default: the checkpoint's own, else the official 100)",
    )
    unicoder.set_defaults(run=_unicoder)
    xprophetnet = models.add_parser("xprophetnet", help="xProphetNet (fairseq), the Unicoder-xFNP of XGLUE")
    xprophetnet.add_argument("checkpoint", type=Path, help="prophetnet_multi.pt or another of ProphetNet_Multi")
    xprophetnet.add_argument(
        "--tokenizer", type=Path, required=True, metavar="FILE", help="its sentencepiece.bpe.model"
    )
    xprophetnet.set_defaults(run=_xprophetnet)
    old = models.add_parser("transformers", help="a checkpoint of transformers with pytorch_model.bin")
    old.add_argument("checkpoint", metavar="DIR_OR_HUB_ID", help="a folder, or ORG/NAME[@REVISION]")
    old.set_defaults(run=_transformers)
    for each in (unicoder, xprophetnet, old):
        each.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
        each.add_argument("--overwrite", action="store_true", help="replace the folder, if it holds a model")
    return parser


def _unicoder(options: argparse.Namespace) -> None:
    from mrs_suggest.models.checkpoint_loading import from_pretrained
    from mrs_suggest.models.generation.architectures.unicoder import convert_unicoder, read_language_tags

    tags = read_language_tags(options.language_tags) if options.language_tags else None
    out = convert_unicoder(options.checkpoint, options.out, options.tokenizer, options.overwrite, tags)
    config = from_pretrained("AutoConfig", out)
    print(f"{config.encoder_layers} + {config.decoder_layers} layers, {config.d_model} wide, {_parameters(out)}")
    print(f"vocabulary of {config.vocab_size:,}, texts of up to {config.max_position_embeddings} tokens")
    print(f"wrote {visible(out)}")
    if options.tokenizer:
        print(f"next: mrs train generation --model_name_or_path {visible(out)}")
    else:
        print("next: add --tokenizer FacebookAI/xlm-roberta-base --overwrite, for a model that reads text")


def _xprophetnet(options: argparse.Namespace) -> None:
    from mrs_suggest.models.generation.architectures.xprophetnet import convert_xprophetnet

    out = convert_xprophetnet(options.checkpoint, options.out, options.tokenizer, options.overwrite)
    print(f"{_parameters(out)}\nwrote {visible(out)}\nnext: mrs train generation --model_name_or_path {visible(out)}")


def _transformers(options: argparse.Namespace) -> None:
    from mrs_suggest.models.old_checkpoints import convert_transformers

    out = convert_transformers(options.checkpoint, options.out, options.overwrite)
    print(f"{_parameters(out)}\nwrote {visible(out)}")


def _parameters(folder: Path) -> str:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        trained = [name for name in weights.keys() if name != "final_logits_bias"]  # noqa: SIM118  (not a dictionary)
        return f"{sum(math.prod(weights.get_slice(name).get_shape()) for name in trained):,} parameters"
