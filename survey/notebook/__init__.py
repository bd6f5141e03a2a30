"""Released reports and results for notebooks: from files, or from the API of a server."""
