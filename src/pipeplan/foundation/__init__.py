"""What everything rests on: errors, files, documents, records, registries, kernels, and how extensions are found."""
