# Everything that the README names. Needs only Python (3.11 or newer), git and make; all else goes into .venv.
# On Windows without make, the README gives the plain commands.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
JOBS   ?= auto
# for the slowest lesson, and for all of them, on two idle cores
NOTEBOOK_SECONDS ?= 12
LESSONS_SECONDS  ?= 120

.PHONY: lab lesson test check lint types tests notebooks solutions outputs browser bench soak fuzz clean

lab: $(VENV)/.lab           ## set up and open JupyterLab on the first lesson
	$(BIN)/lesson lab

lesson: $(VENV)/.lab        ## the same set-up, then run the first lesson without a screen and print what it shows
	$(BIN)/python -m lessonlib.lab.headless notebooks/00_start_here.ipynb

test: $(VENV)/.test check   ## set up and check everything: style, types, tests, notebooks

check: lint types tests notebooks solutions

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

tests: $(VENV)/.test
	$(BIN)/pytest -q -n $(JOBS) --dist loadfile tests

# what is compared is what a new learner sees
notebooks solutions: export LESSON_PROGRESS = off

notebooks: $(VENV)/.test
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -p no:warnings -p tests.notebook_times --timeout 300 --nbval \
	    --slowest-notebook $(NOTEBOOK_SECONDS) --all-notebooks $(LESSONS_SECONDS) \
	    --nbval-current-env --nbval-sanitize-with testdata/nbval.cfg --nbval-cell-timeout 60 notebooks

solutions: $(VENV)/.test    ## the same for the solutions of the exercises, which break the library and run its course suite
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -p no:warnings --timeout 300 --nbval --nbval-current-env \
	    --nbval-sanitize-with testdata/nbval.cfg --nbval-cell-timeout 60 solutions

outputs: $(VENV)/.test      ## for authors: run the lessons and store their outputs, or only some: make outputs NB=notebooks/06*.ipynb
	$(BIN)/python -m lessonlib.lab.author run $(or $(NB),notebooks)

soak: $(VENV)/.test         ## everything of tests/reliability: all faults in all fixtures, long fuzzing, thousands of closed streams; SOAK=2 doubles it
	$(BIN)/python -m tests.reliability.campaign
	LESSON_SOAK=$(or $(SOAK),1) $(BIN)/pytest -q -n $(JOBS) --timeout 3600 tests/reliability

fuzz: $(VENV)/.test         ## coverage-guided fuzzing (Linux, macOS): SECONDS=600 of each target
	$(BIN)/python -m pip install --quiet --editable ".[fuzz]"
	$(BIN)/python -m tests.reliability.fuzz $(or $(SECONDS),60)

browser: $(VENV)/.test      ## JupyterLab in a real browser (needs chromium); leaves its screenshots in build/screenshots
	$(BIN)/python -m pip install --quiet playwright
	LESSON_BROWSER=1 $(BIN)/pytest -q --timeout 600 tests/browser

bench: $(VENV)/.bench      ## speed and memory beside the official packages: half an hour or more; make bench MODE=--short for a look
	$(BIN)/python -m benchmarks $(MODE)

$(VENV)/bin/python $(VENV)/Scripts/python.exe:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.lab: pyproject.toml | $(BIN)/python$(if $(filter Windows_NT,$(OS)),.exe,)
	$(BIN)/python -m pip install --quiet --editable ".[lab]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python$(if $(filter Windows_NT,$(OS)),.exe,)
	$(BIN)/python -m pip install --quiet --editable ".[test,sdk]"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python$(if $(filter Windows_NT,$(OS)),.exe,)
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
