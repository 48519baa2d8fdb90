"""Taskmill's front door: command line, composition root, supervisor of the embedded mode, demo."""

__version__ = "0.1.0"
