VALUE = "lib"
