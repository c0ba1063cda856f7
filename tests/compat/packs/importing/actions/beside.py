VALUE = "beside"
