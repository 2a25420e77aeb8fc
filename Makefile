# The two commands:  make book  and  make test.  Both set up .venv by themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PAGE   := _build/html/index.html
BUILT  := _build/.built

# chapters run with a plain IPython profile, not the user's own; its log level keeps the build's output readable
export IPYTHONDIR := $(CURDIR)/$(VENV)/ipython

# everything the book is made of: when none of it has changed, `make book` has nothing to do
SOURCES := $(wildcard nbs/*.ipynb nbs/*.md spectral_moments/*.py spectral_moments/*/*.py spectral_moments/io/*.html results/* studies/*.py) \
           _config.yml _toc.yml references.bib Makefile $(wildcard _ext/*.py _static/*)

STUDIES := comparison noise spectrum feature_learning error_bars cortex alignment exponents functions

.PHONY: help book test setup recordings export clean-notebooks check-notebooks lint bench reproduce pins address clean

help:               ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: $(STAMP)     ## create .venv and install the package with its tools, at the pinned versions

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@mkdir -p $(IPYTHONDIR)/profile_default
	@echo 'c.IPKernelApp.log_level = "ERROR"' > $(IPYTHONDIR)/profile_default/ipython_kernel_config.py
	@touch $@

book: $(BUILT)      ## run every chapter and build the book; a failing cell or a warning fails the build
	@echo "The book is built. Open $(PAGE)"

$(BUILT): $(STAMP) $(SOURCES) | recordings
	@rm -rf _build
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/jupyter-book build . --all -W -n --keep-going --quiet
	$(BIN)/python tools/check_book.py _build/html
	@touch $@

test: $(STAMP) recordings check-notebooks lint  ## notebooks in sync, every chapter's cells, the tests, the README, the linter
	@# a chapter that the book has run is not run again, unless it, the package, its data or a version has changed
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/nbdev_test --n_workers 2 --timing --skip_file_re "$$($(BIN)/python _ext/chapters.py)"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

recordings: $(STAMP) ## fetch the recordings of one chapter into the user's cache; offline, a note and no failure
	@$(BIN)/python studies/recordings.py --optional

check-notebooks: $(STAMP)  ## notebooks are clean and the exported modules match them
	$(BIN)/python tools/notebooks.py check

clean-notebooks: $(STAMP)  ## strip outputs and stray metadata from the notebooks
	$(BIN)/python tools/notebooks.py clean

export: $(STAMP)    ## format and clean the notebooks, and write the modules from them
	$(BIN)/ruff format --quiet .
	$(BIN)/python tools/notebooks.py clean export

lint: $(STAMP)      ## ruff: rules and layout
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/python tools/address.py --check

bench: $(STAMP)     ## times and errors, next to peers; BESIDE=PATH measures another version too
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'  # peers
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bench.py $(if $(BESIDE),--beside $(BESIDE))
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/peers.py
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py

reproduce: $(STAMP) recordings ## draw the first matrices of every stored study again, and compare
	for name in $(STUDIES); do OMP_NUM_THREADS=1 nice $(BIN)/python studies/$$name.py --check || exit 1; done

pins:               ## write constraints.txt: the newest versions that a fresh environment takes
	rm -rf _build/pins && $(PYTHON) -m venv _build/pins
	_build/pins/bin/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	@# not what torch takes for graphics cards, so that the file is the same on every machine
	_build/pins/bin/python -m pip freeze --exclude spectral_moments | grep -Ev '^(cuda|nvidia|triton)' | sed -E 's/\+[a-z0-9.]+$$//' > constraints.txt

address:            ## write the addresses of pyproject.toml into the README and CITATION.cff
	$(PYTHON) tools/address.py

clean:              ## remove what was built, keep the environment
	rm -rf _build build dist .pytest_cache .ruff_cache .hypothesis *.egg-info
