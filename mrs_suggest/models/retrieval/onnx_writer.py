"""Writes the message encoder of a retriever as an ONNX graph: all modules of its message route, in fp32 or int8."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.models.exports import GRAPH, ONNX, SETTINGS, require_packages
from mrs_suggest.models.retrieval.onnx_encoder import INPUTS, OUTPUT, message_tokenizer
from mrs_suggest.models.retrieval.routes import prompts_of, routes_of

if TYPE_CHECKING:
    import onnx
    from sentence_transformers import SentenceTransformer

LARGEST = 2 << 30  # bytes of one protobuf message
BLOCK = 32  # weights, and activations, that share a scale: ours; with one scale for all, other replies are suggested
INT8_PRODUCTS = 4  # ONNX Runtime's `accuracy_level`


class _MessageRoute(nn.Module):
    """Token ids and mask, (n, length) each -> (n, dimension) vectors."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.route = nn.ModuleList(modules)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        features: dict[str, Tensor] = {"input_ids": input_ids, "attention_mask": attention_mask}
        for module in self.route:
            features = module(features)
        return features["sentence_embedding"]


def write_onnx_encoder(model: SentenceTransformer, folder: Path, target: Path, int8: bool) -> None:
    """Write `onnx/` with the graph and its settings.

    Args:
        int8: the weights of matrix products take 8 bits, and activations when a message is read, with a scale for
            each block of 32; token vectors take 16 bits.

    Raises:
        MissingExtraError: a package of the extra `onnx` is missing.
        InputError: the model has no encoder of transformers, or one that cannot be exported.
    """
    require_packages(ONNX)
    from sentence_transformers.sentence_transformer.modules import Transformer

    modules = routes_of(model)[0]
    first = cast(Any, modules[0])
    if not isinstance(modules[0], Transformer):
        raise InputError(f"{folder}: its message vectors come from a table, not from an encoder; nothing to export.")
    if not all(getattr(module, "include_prompt", True) for module in modules):
        raise InputError(f"{folder}: its pooling leaves the prompt out, which cannot be exported.")
    size = sum(tensor.numel() * tensor.element_size() for tensor in first.state_dict().values())
    if size >= LARGEST:
        raise InputError(f"{folder}: the encoder has {size:,} bytes, and one ONNX file holds {LARGEST:,} at most.")
    try:
        message_tokenizer(folder)
    except Exception as error:  # tokenizers raises plain exceptions
        raise InputError(f"{folder}: no usable tokenizer.json of the message route ({first_line(error)}).") from None
    place = target / ONNX
    place.mkdir()
    length = first.query_length or first.max_seq_length
    with torch.random.fork_rng(devices=[]), _quiet():
        _write_graph(_MessageRoute(modules).eval(), place / GRAPH, int(length), folder)
        if int8:
            _quantise(place / GRAPH)
    settings = {
        "int8": int8,
        "dimension": model.get_embedding_dimension(),
        "max_tokens": int(length),
        "pad": int(first.tokenizer.pad_token_id),
        "prompt": prompts_of(model)[0],
    }
    (place / SETTINGS).write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_graph(route: nn.Module, path: Path, length: int, folder: Path) -> None:
    example = torch.ones(2, min(length, 7), dtype=torch.long)
    mask = example.clone()
    mask[1, -2:] = 0  # no input that needs no mask, or the graph may be written without one
    shapes = {0: torch.export.Dim("messages"), 1: torch.export.Dim("length", max=max(length, 8))}
    try:
        program = torch.onnx.export(
            route, (example, mask), dynamo=True, verbose=False, input_names=list(INPUTS), output_names=[OUTPUT],
            dynamic_shapes=(shapes, shapes),
        )  # fmt: skip
    except Exception as error:  # what cannot be traced fails in many ways
        raise InputError(f"{folder}: the encoder cannot be written as an ONNX graph ({first_line(error)}).") from error
    assert program is not None
    program.save(str(path), external_data=False)


def _quantise(path: Path) -> None:
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    model = onnx.load(path)
    _halve_tables(model.graph)
    quantizer = MatMulNBitsQuantizer(model, bits=8, block_size=BLOCK, accuracy_level=INT8_PRODUCTS)
    quantizer.process()
    quantizer.model.save_model_to_file(str(path))


def _halve_tables(graph: onnx.GraphProto) -> None:
    """Store the tables of vectors that token ids select from in 16 bits; most of a multilingual encoder's size."""
    from onnx import TensorProto, helper, numpy_helper

    others = {name for node in graph.node for name in node.input[node.op_type == "Gather" :]}
    floats = [one for one in graph.initializer if one.data_type == TensorProto.FLOAT and len(one.dims) == 2]
    tables = {one.name: one for one in floats if one.name not in others}
    nodes = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type == "Gather" and (table := tables.get(node.input[0])):
            table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table).astype(np.float16), table.name))
            selected = node.output[0]
            node.output[0] += "_half"
            nodes.append(helper.make_node("Cast", [node.output[0]], [selected], to=TensorProto.FLOAT))
    del graph.node[:]
    graph.node.extend(nodes)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back the exporter's warnings and progress lines, none of which the user can act on."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
