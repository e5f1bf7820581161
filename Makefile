# Two commands do everything on a fresh machine: `make demo` and `make test`. Both create .venv if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What has been installed: suggestions alone, what `make demo` uses, everything.
BASE := $(VENV)/.base
TRAIN := $(VENV)/.train
STAMP := $(VENV)/.installed
INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --constraint constraints.txt
DEMO := build/demo
BUILT := build/demo-build
PRODUCT := build/demo-product
CHOICE := build/demo-xcopa
MANY := build/demo-staple
FLOORS := build/floors
HARNESSES := $(addprefix build/harness/,lm_eval lighteval)
# What the shipped baseline is distilled from: a hub id, or a folder with the model.
ENCODER ?= intfloat/multilingual-e5-small
SHIPPED := mrs_suggest/suggest/embedded/everyday-retriever
TEACHER := build/e5-everyday/run.json
# Sentences in the public domain (CC0), from which its guard learns, too.
COMMON_VOICE := build/common-voice
COLLECTED = $(foreach language,$(1),$(language)=$(COMMON_VOICE)/server/data/$(language)/sentence-collector.txt)
SENTENCES := $(call COLLECTED,de en es) fr=$(COMMON_VOICE)/server/data/fr/issue2259_deleted_export_readd_fixed.txt \
	it=$(COMMON_VOICE)/server/data/it/frasi.txt $(call COLLECTED,ja nl pt) \
	ru=$(COMMON_VOICE)/server/data/ru/highsource-de-ru-translations.txt \
	sv=$(COMMON_VOICE)/server/data/sv-SE/sentence-collector.txt
PACKED := --base intfloat/multilingual-e5-small --base-license mit --remember mrs-everyday
# Nothing here needs the hub: a missing file is an error at once, not a time-out.
OFFLINE := HF_HUB_OFFLINE=1 HF_EVALUATE_OFFLINE=1 TOKENIZERS_PARALLELISM=false
# A process that crashes ends the tests: with a new one in its place, pytest-xdist may wait for ever.
PARALLEL := --numprocesses 2 --dist loadfile --max-worker-restart 0
# accelerate's defaults, passed explicitly so that it prints no notice; and all cores, where it takes one.
ONE_DEVICE := --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no \
	--num_cpu_threads_per_process $(shell $(PYTHON) -c 'import os; print(os.cpu_count())')

.PHONY: demo demo-first demo-build demo-product demo-xcopa demo-forgetting demo-staple page results test test-reproduce test-faults load test-properties test-floors test-harnesses quality release-check docs docs-serve bench bench-desk sample baseline baseline-large clean

$(BASE): setup.cfg setup.py pyproject.toml constraints.txt $(wildcard mrs_suggest/common/text/_lid*.[ch] mrs_datasets/builders/reddit/_*.c)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools wheel
	$(INSTALL) --editable .
	touch $@

# Without a GPU, `make demo TORCH="--index-url https://download.pytorch.org/whl/cpu"` saves some GB.
$(TRAIN): $(BASE)
	$(if $(TORCH),$(INSTALL) $(TORCH) torch)
	$(INSTALL) --editable '.[train,ja]'
	touch $@

$(STAMP): $(TRAIN)
	$(INSTALL) --editable '.[all,ja,zh,th,test,bench,spaces,demo,analysis,bleu,onnx,ctranslate2,translate,langid,reddit,spark,s3,serve,postgres,otel,tensorboard,wandb,trackio,mlflow,sweep,mteb,torchmetrics,release,docs]'
	touch $@

# A demonstration in minutes: fewer steps than the trainers take of their own accord, and at most this many messages.
FEW := --max_validation_examples 50 --max_test_examples 50

demo-first: $(BASE)
	$(BIN)/mrs suggest "¿Quedamos mañana?" "Are you coming to dinner tonight?" "明日の会議は何時からですか？"

demo: demo-first $(TRAIN)  ## suggestions at once; then from message-reply pairs to trained models, on the embedded sample
	$(BIN)/mrs data prepare mrs --source sample --out $(DEMO)/mrs --overwrite
	$(BIN)/mrs data stats $(DEMO)/mrs
	$(OFFLINE) $(BIN)/accelerate launch $(ONE_DEVICE) trainers/retrieval.py \
		--config trainers/configs/retrieval/quickstart.yaml --data $(DEMO)/mrs --max_steps 80 $(FEW) \
		--output_dir $(DEMO)/retriever --overwrite true
	$(OFFLINE) $(BIN)/accelerate launch $(ONE_DEVICE) trainers/generation.py --data $(DEMO)/mrs --max_steps 300 $(FEW) \
		--output_dir $(DEMO)/generator --overwrite true
	$(OFFLINE) $(BIN)/mrs compare $(DEMO)/retriever $(DEMO)/generator
	$(OFFLINE) $(BIN)/mrs score $(DEMO)/retriever/predictions.es.tsv --language es
	$(OFFLINE) $(BIN)/mrs suggest --model $(DEMO)/retriever "¿Quedamos mañana?"
	$(OFFLINE) $(BIN)/mrs suggest --model $(DEMO)/retriever "Are you coming to dinner tonight?"
	$(OFFLINE) $(BIN)/mrs suggest --model $(DEMO)/retriever "明日の会議は何時からですか？"
	$(OFFLINE) $(BIN)/mrs suggest --model $(DEMO)/retriever "Danke für deine Hilfe gestern!"
	$(OFFLINE) $(BIN)/mrs suggest --model $(DEMO)/generator --language en "Are you coming to dinner tonight?"

demo-build: $(STAMP)  ## from two months of synthetic dumps to the data set, and a model trained on it
	$(BIN)/mrs data synth --out $(BUILT)/dumps --months 2018-01 2018-02 --comments 100000 --overwrite \
		--language-model $(BUILT)/languages.bin --toxic-words $(BUILT)/toxic_words
	$(BIN)/mrs data build --dumps '$(BUILT)/dumps/RC_*.zst' --out $(BUILT)/mrs --overwrite --buckets 8 \
		--language-model $(BUILT)/languages.bin --min-examples 1000 --min-reply-count 5 \
		--toxicity words:$(BUILT)/toxic_words \
		--translate-to es --translator dictionary:examples/words.en-es.tsv
	$(BIN)/mrs data stats $(BUILT)/mrs
	$(OFFLINE) $(BIN)/accelerate launch $(ONE_DEVICE) trainers/retrieval.py --data $(BUILT)/mrs --max_steps 300 \
		--max_train_examples 5000 --max_validation_examples 500 --max_test_examples 500 \
		--output_dir $(BUILT)/retriever --overwrite true

demo-product: $(TRAIN)  ## from a product's description to a suggester, with a scripted teacher in place of a language model
	rm -rf $(PRODUCT)
	$(OFFLINE) $(BIN)/python examples/scripted_teacher.py examples/bike_shop_answers.yaml \
		$(BIN)/mrs data generate --task examples/bike_shop.yaml --teacher '{url}#scripted' --licence apache-2.0 --out $(PRODUCT)/data
	$(BIN)/mrs data check $(PRODUCT)/data
	for run in "0 embedded" "40 suggester"; do set -- $$run; \
		$(OFFLINE) $(BIN)/accelerate launch $(ONE_DEVICE) trainers/retrieval.py \
			--config trainers/configs/retrieval/quickstart.yaml --data $(PRODUCT)/data --max_steps $$1 \
			--output_dir $(PRODUCT)/$$2 --overwrite true || exit 1; done
	$(OFFLINE) $(BIN)/mrs compare $(PRODUCT)/suggester $(PRODUCT)/embedded

demo-xcopa: $(STAMP)  ## multiple choice on generated questions: learned, at chance where the premise or the prompt is hidden
	$(BIN)/mrs data prepare synthetic-copa --source synthetic --out $(CHOICE)/data --overwrite
	for view in full nop noq; do $(OFFLINE) $(BIN)/accelerate launch $(ONE_DEVICE) trainers/multiple_choice.py \
		--config trainers/configs/multiple_choice/synthetic.yaml --data $(CHOICE)/data --view $$view \
		--output_dir $(CHOICE)/$$view --overwrite true || exit 1; done

demo-forgetting: $(STAMP)  ## a generator that forgets other languages while it learns English, and one that does not
	$(OFFLINE) $(BIN)/mrs reproduce forgetting --only zero-shot/42 denoising/42

demo-staple: $(STAMP)  ## all translations of a prompt: trained, decoded, filtered and reported, on a generated grammar
	$(BIN)/mrs data prepare synthetic-staple --source synthetic --out $(MANY)/data --overwrite
	$(OFFLINE) $(BIN)/accelerate launch $(ONE_DEVICE) trainers/generation.py \
		--config trainers/configs/generation/staple/synthetic.yaml --data $(MANY)/data --output_dir $(MANY)/run --overwrite true
	for split in validation test; do \
		$(OFFLINE) $(BIN)/mrs staple decode $(MANY)/run --data $(MANY)/data --split $$split --nbest 50 \
			--out $(MANY)/$$split.parquet --overwrite && \
		$(BIN)/mrs staple combine $(MANY)/$$split.parquet --out $(MANY)/$$split.pooled.parquet --overwrite || exit 1; done
	$(BIN)/mrs staple tune $(MANY)/validation.pooled.parquet --data $(MANY)/data --rule expected-f1 --out $(MANY)/filter --overwrite
	$(BIN)/mrs staple filter $(MANY)/test.pooled.parquet --with $(MANY)/filter --out $(MANY)/kept.parquet --overwrite
	$(BIN)/mrs staple filter $(MANY)/test.pooled.parquet --top 10 --out $(MANY)/ten.parquet --overwrite
	$(BIN)/mrs staple export $(MANY)/kept.parquet --out $(MANY)/test.pred.txt --overwrite
	$(BIN)/mrs staple report --data $(MANY)/data --split test --language qaa --out $(MANY)/report --overwrite \
		--systems n-best-10=$(MANY)/ten.parquet expected-f1=$(MANY)/kept.parquet

page: $(STAMP)  ## the chat page of `mrs demo`, with the model that ships in the package
	$(OFFLINE) $(BIN)/mrs demo

test: $(STAMP)  ## unit and integration tests
	$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/pytest -m "not faults and not harness" $(PARALLEL)

test-reproduce: $(STAMP)  ## one tiny cell of every row of the papers' tables (ROWS='mrs/3/*': only these); continues after a stop
	$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/python -m tests.papers.reproduce_rows $(ROWS)

test-faults: $(STAMP)  ## kills, floods and broken inputs at scale
	$(OFFLINE) $(BIN)/pytest -m faults

load: $(STAMP)  ## half an hour of requests to servers on this machine, stopped, killed and among hostile clients
	$(OFFLINE) MRS_LOAD_SECONDS=600 $(BIN)/pytest -m faults --capture=no tests/faults/test_serving_load.py tests/faults/test_serving_stages.py

test-properties: $(STAMP)  ## the property tests again, on new random examples
	$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/pytest -m hypothesis --hypothesis-profile explore $(PARALLEL)

test-floors:  ## unit tests with the lowest versions that setup.cfg allows, in an environment of their own
	test -x $(FLOORS)/bin/python || $(PYTHON) -m venv $(FLOORS)
	$(FLOORS)/bin/python -m pip install --quiet --constraint constraints-min.txt --editable '.[all,ja,zh,th,test,bleu,langid,reddit,analysis,serve,tensorboard,wandb,trackio,mlflow,sweep]'
	$(OFFLINE) OMP_NUM_THREADS=1 $(FLOORS)/bin/pytest -m "not faults and not harness" $(PARALLEL) $(wildcard tests/mrs_*) \
		tests/integration/test_trackers.py tests/integration/test_sweep.py

build/harness/%/.installed: tests/harness/%.txt .ci/harness $(STAMP)
	.ci/harness $*

test-harnesses: $(addsuffix /.installed,$(HARNESSES))  ## tasks through lm_eval and lighteval, each in an environment of its own
	$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/pytest -m harness tests/harness

quality: $(STAMP)  ## lint, types, and the size of the product code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/product_lines.py

release-check: $(STAMP)  ## may the last commit be released? dist/ gets what would be published (docs/release.md)
	$(BIN)/python .ci/release_check.py $(RELEASE)

results: $(STAMP)  ## the tables of results in README and docs, from the JSON files of `mrs reproduce`
	$(BIN)/python docs/site/quotes.py README.md $(wildcard docs/*.md docs/*/*.md)

docs: $(STAMP)  ## the documentation site, in build/site; any warning is an error
	$(OFFLINE) $(BIN)/python docs/site/assemble.py build/site-pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: docs  ## the site at http://127.0.0.1:8000, as it is now
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

bench: $(STAMP)  ## every script prints a ratio against a named alternative and writes benchmarks/results/
	set -e; for script in benchmarks/bench_*.py; do $(OFFLINE) $(BIN)/python $$script; done

bench-desk: $(STAMP)  ## a help desk's own replies, without and with example messages, against plain similarity
	$(OFFLINE) $(BIN)/python benchmarks/bench_desk.py

sample: $(STAMP)  ## rebuild the embedded sample from the phrase books
	$(BIN)/mrs data prepare mrs --source sample --out mrs_datasets/sample --overwrite

baseline: $(TEACHER) $(COMMON_VOICE)  ## fine-tune an encoder, distil it and pack the student, the baseline that ships in the package
	$(OFFLINE) $(BIN)/mrs train retrieval --config trainers/configs/retrieval/everyday.yaml
	$(OFFLINE) $(BIN)/mrs train retrieval --config trainers/configs/retrieval/everyday_pairs.yaml
	$(OFFLINE) $(BIN)/python -m mrs_suggest.training.retrieval.shrink build/everyday $(SHIPPED) $(PACKED)
	$(OFFLINE) $(BIN)/mrs models guard $(SHIPPED) --text $(SENTENCES) --sheet tests/guard_sheet.tsv

baseline-large: $(TEACHER)  ## the larger baseline, in build/everyday-retriever-large: all layers of that encoder
	$(OFFLINE) $(BIN)/mrs train retrieval --config trainers/configs/retrieval/everyday_large.yaml
	$(OFFLINE) $(BIN)/python -m mrs_suggest.training.retrieval.shrink build/everyday-large build/everyday-retriever-large $(PACKED)

$(COMMON_VOICE):
	rm -rf $@.part
	git clone --quiet --filter=blob:none https://github.com/mozilla/common-voice $@.part
	git -C $@.part checkout --quiet 168898f
	mv $@.part $@

$(TEACHER): | $(STAMP)
	$(BIN)/mrs train retrieval --config trainers/configs/retrieval/e5/everyday.yaml --model_name_or_path $(ENCODER)

clean:
	rm -rf build dist *.egg-info $(VENV)
