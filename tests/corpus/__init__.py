"""Files that released versions wrote and read, a folder each: what the next version must still read."""
