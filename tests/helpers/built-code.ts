/**
 * Setup of every test file: servers in the test's process take their threads and helper programs from the build that
 * `npm test` has just made. A developer who starts vitest directly gets those of the sources.
 */
import { useBuiltCode } from '../../src/core/bundle.ts'

if (process.env['SVC_TEST_TIER'] !== undefined) useBuiltCode(new URL('../../dist/', import.meta.url))
