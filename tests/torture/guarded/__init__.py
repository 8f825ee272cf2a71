"""What every Python process of a box loads at its start: this folder is on its path."""
