/** The file in a Python environment of a pack that says why it could not be made: an object with `problem` and `at`. */
export const virtualenvFailure = '.svc-failed.json'
