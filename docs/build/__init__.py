"""What makes the generated pages and pictures of the documentation, and runs what its pages show."""
