/** `npm test [-- <arguments of vitest run>]`: installs and builds what is needed, then runs the tests of the daily run. */
import './node-version.mjs'

void import('./run-tests.mjs')
