NAME = "hammer"
