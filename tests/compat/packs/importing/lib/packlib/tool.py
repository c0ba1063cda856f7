TOOL = "of the pack"
