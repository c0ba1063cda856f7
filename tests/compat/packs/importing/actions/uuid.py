raise RuntimeError("not the module uuid")
