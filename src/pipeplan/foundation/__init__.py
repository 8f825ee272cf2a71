"""Base of all rooms: errors, files, documents, records, registries, kernels, and the search for extensions."""
