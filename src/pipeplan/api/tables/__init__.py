"""The tables of the answers for a terminal. They need rich, which is loaded when a table is printed."""
