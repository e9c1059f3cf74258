"""Run folders: the files of a run, by name, with their writers and readers side by side."""
