# Everything runs from .venv, which is set up on first use and again when the versions change.
# It needs Python 3.11 or newer; name another one with `make grade PYTHON=/path/to/python3.12`.

VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK := requirements.lock
PROJECTS := pyproject.toml course/pyproject.toml
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo "$$name"; break; fi; done)

.DEFAULT_GOAL := help
.PHONY: help grade test lab lessons bench lint lock browser

help:  ## show this list
	@echo "make grade    grade a sample class and show the result"
	@echo "make test     run all tests"
	@echo "make lab      do the lessons in JupyterLab, on a copy of your own in work/"
	@echo "make lessons  rebuild the notebooks from course/lessons"
	@echo "make bench    run the benchmarks"
	@echo "make lint     check the style of the code"
	@echo "make lock     write exact versions to $(LOCK) (needs uv)"

grade: $(READY)
	$(RUN)/autograder demo --into build/sample-class

test: $(READY) browser
	$(RUN)/python -m pytest -n 2 --dist loadfile

# JupyterLab wants to be told that root (in a container, say) is meant. It asks for no news.
# Copies only what is not there yet: nobody's answers are overwritten.
lab: $(READY)
	@mkdir -p work && echo '*' > work/.gitignore
	@for folder in release/*/; do \
		lesson=$$(basename "$$folder"); \
		if [ -d "$$folder" ] && [ ! -e "work/$$lesson" ]; then \
			echo "copying $$lesson to work/"; cp -R "release/$$lesson" "work/$$lesson"; \
		fi; \
	done
	$(RUN)/jupyter lab --notebook-dir=work --LabApp.news_url=None \
		--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate $$([ "$$(id -u)" = 0 ] && echo --allow-root)

lessons: $(READY)
	$(RUN)/autograder build

bench: $(READY)
	@for program in benchmarks/*.py; do \
		echo "$$program"; $(RUN)/python "$$program" || exit 1; \
	done

lint: $(READY)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

lock:
	@command -v uv >/dev/null || { echo "make lock needs uv: python3 -m pip install uv"; exit 1; }
	uv pip compile --universal --python-version 3.11 --all-extras --no-emit-package hopping \
		--no-header --no-annotate $(PROJECTS) -o $(LOCK)

# --- Set-up -------------------------------------------------------------------------------------

# The stamp is written last, so that an interrupted set-up is done again.
$(READY): $(LOCK) $(PROJECTS)
	@[ -n "$(PYTHON)" ] || { echo "No Python 3.11 or newer found. Install one first."; exit 1; }
	@echo "Setting up $(VENV) with $$("$(PYTHON)" --version); this takes a few minutes once."
	@[ -x $(RUN)/python ] && $(RUN)/python -m pip --version >/dev/null 2>&1 || \
		"$(PYTHON)" -m venv --clear $(VENV) || { \
		$(call as_root_on_debian) && apt-get update && apt-get install -y python3-venv && \
		"$(PYTHON)" -m venv --clear $(VENV); }
	$(RUN)/python -m pip install --disable-pip-version-check --no-deps -r $(LOCK)
	$(RUN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation \
		-e course -e .
	@touch $@

# Tests in a browser need Chromium, tests of isolation need bubblewrap. Without them those tests are
# skipped, except in continuous integration.
browser:
	@command -v chromium >/dev/null && command -v bwrap >/dev/null || \
		if $(call as_root_on_debian); then \
			echo "Installing chromium and bubblewrap for the tests."; \
			apt-get update && apt-get install -y --no-install-recommends chromium bubblewrap; \
		else \
			echo "chromium or bubblewrap is not installed: the tests that need it are skipped."; \
		fi

as_root_on_debian = [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null
