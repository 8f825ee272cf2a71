"""Search for the best configuration: valid configurations, bounds, estimates, and the reasons why others lost."""
