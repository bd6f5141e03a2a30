"""From released counts to what people see: one path for page, CSV and command line."""
