"""Many tasks on one process, many, or a cluster: results are stored as they come, and a sweep that ends early resumes."""
