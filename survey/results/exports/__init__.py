"""Results as files: CSV, spreadsheet, codebook, reports and figures."""
