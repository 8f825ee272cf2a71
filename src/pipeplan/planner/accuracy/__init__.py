"""How far predictions of published runs are off: the error bars of new ones."""
