"""Other implementations of the same schedules, run beside ours.

``make peers`` makes an environment of their own (``.venv-peers``), installs each peer there (``install``, from the table in
``peers`` and the pins in ``constraints.txt``) and runs these tests; a peer that does not install is told with its reason and
the others run on. ``make peers-trainer`` does the same with the PyTorch that torchtitan's whole Trainer needs.

- A folder a peer, of the peer's name in the table: where it is not installed, the folder is one skip that says so, so that
  its tests import the peer at their top. The peer's own warnings do not fail its tests; ours do.
- The fixture ``ran`` notes what was compared (``ran("the orders of 800 shapes")``) for the table at the end of the run.
- ``processes.run_ranks`` starts a module in one process a rank.
"""
