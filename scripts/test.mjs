/** `npm test [-- <arguments of vitest run>]`: installs and builds what is needed, then runs the tests. */
import './node-version.mjs'

void import('./run-tests.mjs')
