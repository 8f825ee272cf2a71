"""DeepSeek's DualPipe beside us."""
