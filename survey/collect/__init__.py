"""Collection of reports: receive, store and release them; publish, close and delete surveys."""
