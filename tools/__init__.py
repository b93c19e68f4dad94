"""Programs for maintainers; nothing here is imported by the package."""
