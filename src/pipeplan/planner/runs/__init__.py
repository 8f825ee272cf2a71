"""Published runs: their rows as configurations, what they leave unsaid, and how far predictions of them are off."""
