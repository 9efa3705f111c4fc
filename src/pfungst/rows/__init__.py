"""Files as rows, read once for data sets, logs and recorded answers: archives, JSON, tables, and the values in them."""
