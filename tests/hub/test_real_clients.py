"""The loopback hub by the real clients, in fresh processes: huggingface_hub, datasets, transformers, evaluate ..."""

from __future__ import annotations

import hashlib
import json

import pytest

from .fixtures import Client
from .server import LoopbackHub

pytestmark = pytest.mark.integration


HUGGINGFACE_HUB = """
import os, pathlib, warnings
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetCard, HfApi, ModelCard, hf_hub_download
from huggingface_hub import snapshot_download
from huggingface_hub.errors import (EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError)

def refused(error, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except error as caught:
        return caught
    raise AssertionError("not refused")

api = HfApi()
assert api.whoami()["name"] == "loopback"
folder = pathlib.Path("up/sub/deep")
folder.mkdir(parents=True)
(folder / "a b.txt").write_text("one")
(folder / "big.bin").write_bytes(bytes(range(256)) * 5000)
pathlib.Path("up/README.md").write_text("---\\nlicense: mit\\nlanguage: es\\ntags: [x]\\n---\\nHello\\n")
url = api.create_repo("org/m", private=True)
assert (url.repo_id, url.repo_type) == ("org/m", "model"), url
assert api.create_repo("org/m", exist_ok=True).repo_id == "org/m"
assert refused(HfHubHTTPError, api.create_repo, "org/m").response.status_code == 409
first = api.upload_folder(repo_id="org/m", folder_path="up", commit_message="first").oid
assert api.upload_folder(repo_id="org/m", folder_path="up").oid == first, "nothing changed: no commit"
api.create_tag("org/m", tag="v1")
add = [CommitOperationAdd("c/d.txt", b"two"), CommitOperationDelete("sub/deep/a b.txt")]
second = api.create_commit("org/m", add, commit_message="second", parent_commit=first).oid
stale = refused(HfHubHTTPError, api.create_commit, "org/m", [CommitOperationAdd("e", b"3")], commit_message="third",
                parent_commit=first)
assert stale.response.status_code == 412, stale
api.create_branch("org/m", branch="dev/x", revision="v1")
api.upload_file(repo_id="org/m", path_or_fileobj=b"dev", path_in_repo="dev.txt", revision="dev/x")
assert api.file_exists("org/m", "dev.txt", revision="dev/x") and not api.file_exists("org/m", "dev.txt")
api.delete_folder("sub", "org/m", revision="dev/x")
assert set(api.list_repo_files("org/m", revision="dev/x")) == {".gitattributes", "README.md", "dev.txt"}
refs = api.list_repo_refs("org/m")
assert {b.name: b.target_commit for b in refs.tags} == {"v1": first} and len(refs.branches) == 2
assert [c.commit_id for c in api.list_repo_commits("org/m")][:2] == [second, first]
assert [c.title for c in api.list_repo_commits("org/m")] == ["second", "first", "initial commit"]
info = api.model_info("org/m", files_metadata=True)
assert (info.sha, info.private, info.card_data.license, info.tags) == (second, True, "mit", ["x"]), info
assert {s.rfilename: s.size for s in info.siblings}["sub/deep/big.bin"] == 1280000
assert [p.lfs and p.lfs.size for p in api.get_paths_info("org/m", ["sub/deep/big.bin", "c", "none"])
        if hasattr(p, "lfs")] == [1280000]
assert [i.id for i in api.list_models(author="org")] == ["org/m"]
local = pathlib.Path(snapshot_download("org/m", revision="v1"))
assert local.name == first and (local / "sub/deep/a b.txt").read_text() == "one"
assert (local / "sub/deep/big.bin").stat().st_size == 1280000
assert pathlib.Path(hf_hub_download("org/m", "c/d.txt", revision=second[:40])).read_text() == "two"
refused(EntryNotFoundError, hf_hub_download, "org/m", "sub/deep/a b.txt")
refused(RevisionNotFoundError, snapshot_download, "org/m", revision="v9")
refused(RepositoryNotFoundError, api.dataset_info, "org/m")
refused(RepositoryNotFoundError, api.model_info, "org/m", token=False)
refused(RepositoryNotFoundError, hf_hub_download, "org/m", "README.md", token=False)
wrong = refused(HfHubHTTPError, api.whoami, token="hf_wrong")
assert "Invalid user token" in str(wrong) or wrong.response.status_code == 401
api.auth_check("org/m", write=True)
api.update_repo_settings("org/m", visibility="public")
assert api.model_info("org/m", token=False).sha == second

card = ModelCard("---\\nlicense: mit\\nlanguage: [en, es]\\n---\\n# A card\\n")
card.validate()
card.push_to_hub("org/m", commit_message="card")
assert ModelCard.load("org/m").data.language == ["en", "es"]
api.create_repo("org/d", repo_type="dataset")
DatasetCard("---\\nconfigs:\\n- config_name: es\\n  data_files: x.csv\\n---\\n# D\\n").push_to_hub("org/d")
assert api.dataset_info("org/d").card_data["configs"][0]["config_name"] == "es"
refused(ValueError, ModelCard("---\\nlanguage: Spanish!\\n---\\n").validate)
refused(ValueError, ModelCard("---\\nlicense: mit\\n---\\n").validate, repo_type="space")
api.create_repo("org/s", repo_type="space", space_sdk="gradio")
api.upload_file(repo_id="org/s", repo_type="space", path_in_repo="README.md",
                path_or_fileobj=b"---\\ntitle: S\\nsdk: gradio\\ntags: [evaluate, metric]\\n---\\n")
assert api.space_info("org/s").sdk == "gradio"
pull = api.upload_file(repo_id="org/d", repo_type="dataset", path_in_repo="x", path_or_fileobj=b"x", create_pr=True)
assert pull.pr_num == 1 and not api.file_exists("org/d", "x", repo_type="dataset")
api.delete_tag("org/m", tag="v1")
api.delete_branch("org/m", branch="dev/x")
api.delete_repo("org/s", repo_type="space")
refused(RepositoryNotFoundError, api.space_info, "org/s")
"""


def test_huggingface_hub(hub: LoopbackHub, hub_client: Client) -> None:
    hub_client(HUGGINGFACE_HUB)
    repo = hub.repo("model", "org/m")
    assert [commit.title for commit in repo.commits()] == ["card", "second", "first", "initial commit"]
    assert repo.text("c/d.txt") == "two"
    assert repo.files(repo.commits()[2].sha) == [".gitattributes", "README.md", "sub/deep/a b.txt", "sub/deep/big.bin"]
    assert sorted(hub.repositories) == [("dataset", "org/d"), ("model", "org/m")]
    assert not [str(entry) for entry in hub.log if entry.status >= 500]


def test_datasets(hub: LoopbackHub, hub_client: Client) -> None:
    hub_client("""
from datasets import Dataset, DatasetDict
for config in ("en", "es"):
    rows = {"message": [f"{config} {i}" for i in range(200)], "reply": ["r"] * 200}
    split = DatasetDict(train=Dataset.from_dict(rows), test=Dataset.from_dict({k: v[:3] for k, v in rows.items()}))
    split.push_to_hub("org/d", config, private=True, set_default=config == "en", num_shards={"train": 3})
""")
    repo = hub.repo("dataset", "org/d")
    assert repo.private
    assert len([path for path in repo.files() if path.startswith("es/train-")]) == 3
    repo.tags["v1"] = repo.sha()
    repo.write("README.md", repo.text("README.md") + "\nmore")
    hub_client("""
from datasets import get_dataset_config_names, load_dataset
from datasets.exceptions import DatasetNotFoundError
try:  # first, for it would fall back to its cache
    load_dataset("org/d", "es", token=False)
except DatasetNotFoundError:
    pass
else:
    raise AssertionError("a private data set without the token")
assert get_dataset_config_names("org/d") == ["en", "es"]
loaded = load_dataset("org/d", "es")
assert loaded["train"].num_rows == 200 and loaded["test"][2] == {"message": "es 2", "reply": "r"}
assert load_dataset("org/d", split="test", revision="v1")[0]["message"] == "en 0"
streamed = list(load_dataset("org/d", "es", split="train", streaming=True))
assert streamed == loaded["train"].to_list()
""", home="reader")  # fmt: skip
    assert any(entry.range for entry in hub.log), "streaming reads stretches of a file"


MODELS_PUSH = """
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BartConfig, BartForConditionalGeneration, BertConfig, BertModel, PreTrainedTokenizerFast
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "how", "are", "you", "fine"]
raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
raw.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                    sep_token="[SEP]", bos_token="[CLS]", eos_token="[SEP]")
size = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
            encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=32)
bart = BartForConditionalGeneration(BartConfig(vocab_size=8, **size, pad_token_id=0, bos_token_id=2, eos_token_id=3,
                                               decoder_start_token_id=3, forced_eos_token_id=3))
bart.push_to_hub("org/seq2seq", private=True)
tokenizer.push_to_hub("org/seq2seq")
bert = BertModel(BertConfig(vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                            intermediate_size=16, max_position_embeddings=32))
bert.save_pretrained("bert")
tokenizer.save_pretrained("bert")
from sentence_transformers import SentenceTransformer
model = SentenceTransformer("bert")
model.push_to_hub("org/retriever", commit_message="trained")
import numpy, torch
numpy.save("encoded.npy", model.encode(["how are you", "fine"]))
torch.save(bart.state_dict(), "bart.pt")
"""
MODELS_LOAD = """
import numpy, torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
bart = AutoModelForSeq2SeqLM.from_pretrained("org/seq2seq")
assert all(torch.equal(v, bart.state_dict()[k]) for k, v in torch.load("bart.pt").items())
assert AutoTokenizer.from_pretrained("org/seq2seq")("how are you")["input_ids"] == [4, 5, 6]
from sentence_transformers import SentenceTransformer
model = SentenceTransformer("org/retriever")
assert numpy.allclose(model.encode(["how are you", "fine"]), numpy.load("encoded.npy"), atol=1e-6)
"""


def test_transformers_and_sentence_transformers(hub: LoopbackHub, hub_client: Client) -> None:
    hub_client(MODELS_PUSH)
    assert hub.repo("model", "org/seq2seq").private
    assert hub.repo("model", "org/retriever").commits()[0].title == "trained"
    assert {"modules.json", "model.safetensors", "README.md"} <= set(hub.repo("model", "org/retriever").files())
    hub_client(MODELS_LOAD, home="reader")


METRIC = """
import datasets
import evaluate
from .helper import length

class Lengths(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(description="d", citation="c",
                                   features=datasets.Features({"predictions": datasets.Value("string")}))

    def _compute(self, predictions):
        return {"length": sum(map(length, predictions))}
"""


def test_evaluate(hub: LoopbackHub, hub_client: Client) -> None:
    space = hub.create("space", "org/lengths")
    space.write("helper.py", "def length(text):\n    return len(text)\n")
    old = space.write("lengths.py", METRIC)
    space.write("helper.py", "def length(text):\n    return 1\n")
    source = f"""
import evaluate
assert evaluate.load("org/lengths", module_type="metric").compute(predictions=["ab", "c"]) == {{"length": 2}}
assert evaluate.load("org/lengths", revision={old!r}).compute(predictions=["ab", "c"]) == {{"length": 3}}
"""
    hub_client(source)


NAMES = ("busy", "limited", "cut", "lost", "stale", "broken", "asked")
FAULTS = """
import json, pathlib, sys, time
from huggingface_hub import CommitOperationAdd, HfApi, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError

api, said = HfApi(), {}
for name in sys.argv[1:]:
    lfs = CommitOperationAdd("a.bin", name.encode() * 20000)
    parent = api.model_info(f"org/{name}").sha
    try:
        api.create_commit(f"org/{name}", [lfs], commit_message="publish", parent_commit=parent)
        said[name] = "done"
    except HfHubHTTPError as error:
        said[name] = error.response.status_code
    except Exception as error:
        said[name] = type(error).__name__
start = pathlib.Path(hf_hub_download("org/long", "a.bin")).read_bytes()
said["long"] = len(start)
print(json.dumps(said))
"""


def test_faults_as_the_real_client_sees_them(hub: LoopbackHub, hub_client: Client) -> None:
    old = {n: hub.create("model", f"org/{n}").sha() for n in NAMES}
    hub.create("model", "org/long").write("a.bin", bytes(12 << 20))
    hub.faults.add("POST", "org/busy/preupload", status=500)
    hub.faults.add("POST", "org/limited.git", status=429, retry_after=0)
    hub.faults.add("PUT", hashlib.sha256(b"cut" * 20000).hexdigest(), drop_request=1000)
    hub.faults.add("POST", "org/lost/commit", drop_response=0)
    hub.faults.add("POST", "org/stale/commit", stale=True)
    hub.faults.add("POST", "org/broken/commit", status=500)
    hub.faults.add("POST", "org/asked/commit", drop_request=30)
    hub.faults.add("GET", "org/long/resolve", drop_body=11 << 20)
    said = json.loads(hub_client(FAULTS, *NAMES).stdout)
    assert said == {
        "busy": "done", "limited": "done", "cut": "done",  # tried again by the client
        "lost": "RemoteProtocolError", "stale": 412, "broken": 500, "asked": "RemoteProtocolError",  # not tried again
        "long": 12 << 20,
    }  # fmt: skip
    for name in ("busy", "limited", "cut", "lost"):
        assert hub.repo("model", f"org/{name}").read("a.bin") == name.encode() * 20000, "done, also where unanswered"
    for name in ("broken", "asked"):
        assert hub.repo("model", f"org/{name}").sha() == old[name]
    assert hub.repo("model", "org/stale").files() == [".gitattributes", "FOREIGN.txt"]
    assert [e.range for e in hub.requests("GET", "org/long/resolve")] == ["", f"bytes={10 << 20}-"], "10 MiB a time"
    assert all(fault.fired == 1 for fault in hub.faults.planned)
    assert len([e for e in hub.log if e.fault]) == 8
