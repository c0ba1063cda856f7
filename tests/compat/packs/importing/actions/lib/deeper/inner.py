INNER = "inner"
