"""An exported message encoder gives torch's vectors, is taken where it lies, and answers each message by itself."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.exports import GRAPH, ONNX, SETTINGS, note_missing
from mrs_suggest.models.retrieval.onnx_encoder import OnnxEncoder
from mrs_suggest.suggest.retrieval_suggester import _message_encoder, weights_encoder

TEXTS = ["How are you?", "", "明日は元気ですか？", "a b c " * 200, "x", "Как дела? 🙂"]
UNLOADED = """
import sys
from mrs_suggest.suggest.suggester import Suggester
print(len(Suggester.from_pretrained("everyday-retriever").suggest(["Thanks!"], "en")[0]), "onnxruntime" in sys.modules)
"""


@pytest.fixture(scope="module")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A retriever of the smallest BERT with prompt, mean and normalisation, and its encoder in fp32."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
    from mrs_suggest.models.retrieval.onnx_writer import write_onnx_encoder

    folder = tmp_path_factory.mktemp("exported")
    build_dual_encoder(str(checkpoint), "mean", query_prompt="a b: ", normalize=True).save_pretrained(str(folder))
    write_onnx_encoder(load_dual_encoder(folder).eval(), folder, folder, int8=False)
    return folder


@pytest.fixture(scope="module")
def int8(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same encoder in int8."""
    from mrs_suggest.models.retrieval.onnx_writer import _quantise

    folder = tmp_path_factory.mktemp("int8") / "model"
    shutil.copytree(exported, folder)
    _quantise(folder / ONNX / GRAPH)
    settings = json.loads((folder / ONNX / SETTINGS).read_text(encoding="utf-8"))
    (folder / ONNX / SETTINGS).write_text(json.dumps({**settings, "int8": True}), encoding="utf-8")
    return folder


def encoder_of(folder: Path) -> OnnxEncoder:
    found = OnnxEncoder.load(folder)
    assert found is not None
    return found


def test_the_export_in_the_folder_answers_with_the_vectors_of_the_weights(exported: Path) -> None:
    expected = weights_encoder(exported)(TEXTS)
    for batch in (1, 2, 64):
        np.testing.assert_allclose(encoder_of(exported).encode(TEXTS, batch), expected, rtol=1e-4, atol=1e-5)
    assert encoder_of(exported).encode([]).shape == (0, 16)
    assert isinstance(getattr(_message_encoder(exported), "__self__", None), OnnxEncoder)
    assert not isinstance(getattr(weights_encoder(exported), "__self__", None), OnnxEncoder)


def test_an_int8_vector_is_near_the_weights_one_and_does_not_depend_on_its_batch(int8: Path, exported: Path) -> None:
    encoder = encoder_of(int8)
    together = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(encoder.encode([text])[0], vector, atol=1e-4, err_msg=text)
    expected = weights_encoder(int8)(TEXTS)
    cosines = (together * expected).sum(1) / np.linalg.norm(together, axis=1) / np.linalg.norm(expected, axis=1)
    assert 0.999 < cosines.min() < cosines.max() < 1 - 1e-7
    assert (int8 / ONNX / GRAPH).stat().st_size < 0.9 * (exported / ONNX / GRAPH).stat().st_size


def test_without_the_extra_the_weights_answer_and_one_note_tells_why(
    exported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    note_missing.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for _ in range(2):
        np.testing.assert_allclose(_message_encoder(exported)(TEXTS), weights_encoder(exported)(TEXTS))
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install '.[onnx]'" in line
    assert "its weights answer" in line


@pytest.mark.parametrize(
    ("name", "content"), [(GRAPH, b"no graph"), (SETTINGS, b"{"), (SETTINGS, b'{"int8": true}'), (SETTINGS, b"[]")]
)
def test_a_damaged_export_is_named(exported: Path, tmp_path: Path, name: str, content: bytes) -> None:
    folder = tmp_path / "model"
    shutil.copytree(exported, folder)
    (folder / ONNX / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{ONNX}/{name}: damaged; .* mrs models export .* --remove"):
        _message_encoder(folder)


def test_tables_of_vectors_are_not_exported(checkpoint: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
    from mrs_suggest.models.retrieval.onnx_writer import write_onnx_encoder

    model = build_dual_encoder(str(checkpoint), encoders="static", dimension=8)
    with pytest.raises(InputError, match="come from a table"):
        write_onnx_encoder(model, tmp_path, tmp_path, int8=False)
    assert list(tmp_path.iterdir()) == []
