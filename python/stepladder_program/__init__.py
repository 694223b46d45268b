"""The program of the wheel, beside this file; `stepladder` on the command line starts it."""
import importlib.util
import os
import pathlib
import sys


def main():
    # LibTorch is in the package torch, wherever that is installed. Importing it would take seconds.
    torch = importlib.util.find_spec("torch")
    if torch and torch.submodule_search_locations:
        os.environ.setdefault("STEPLADDER_TORCH", list(torch.submodule_search_locations)[0])
    os.execv(pathlib.Path(__file__).with_name("stepladder"), ["stepladder", *sys.argv[1:]])
