/**
 * The two tiers of tests. `npm test` is the daily run; `npm run test:full` runs everything.
 *
 * Files in `FULL_ONLY` run in the full run only. `fullOnly` leaves single tests of other files to the full run, `variants`
 * the further cases of a test, and `rounds` says how often a test repeats itself in each. Every slow kind of test keeps at
 * least one test in the daily run.
 */
export type Tier = 'daily' | 'full'

/** Set by scripts/run-tests.mjs. A developer who starts vitest directly names files, and gets all that is in them. */
export const tier: Tier = process.env['SVC_TEST_TIER'] === 'daily' ? 'daily' : 'full'

export const FULL_ONLY = [
  'src/runners/arguments-by-environment.test.ts',
  'tests/compat/python-templates.test.ts',
  'tests/conformance/09-cli-crontab.test.ts',
  'tests/conformance/09-cli-rule-new.test.ts',
  'tests/conformance/security-events.test.ts',
  ...['binary', 'deb'].map((name) => `tests/packaging/${name}.test.ts`),
  ...['crontab', 'deploy', 'oauth2-proxy', 'proxy', 'real-senders', 'tunnels'].map(
    (name) => `tests/recipes/${name}.test.ts`,
  ),
  ...['cascade', 'hangup', 'idempotency', 'missed-runs', 'notifications', 'policies', 'rule-runs', 'start'].map(
    (name) => `tests/recovery/${name}.test.ts`,
  ),
  ...['clock', 'database-unusable', 'flood', 'idle-streams', 'port-taken', 'slow-readers'].map(
    (name) => `tests/faults/${name}.test.ts`,
  ),
  ...['ldap-gone', 'open-files', 'statsd-gone', 'workflow-commits'].map((name) => `tests/faults/${name}.test.ts`),
  ...['floods', 'hostile', 'tail'].map((name) => `tests/sensors/${name}.test.ts`),
  ...['memory', 'resume', 'stubborn'].map((name) => `tests/stress/${name}.test.ts`),
  ...['accessibility', 'history-many', 'history-rerun', 'hostile', 'output-large', 'output-lost'].map(
    (name) => `tests/web/${name}.test.ts`,
  ),
  'tests/web/without-stream.test.ts',
]

/** Files that load the whole machine, or measure it: the full run starts them one by one when all others have ended. */
export const ALONE = [
  'tests/sensors/floods.test.ts',
  'tests/sensors/hostile.test.ts',
  'tests/stress/load.test.ts',
  'tests/stress/memory.test.ts',
  'tests/stress/resume.test.ts',
  'tests/web/output-large.test.ts',
  ...['flood', 'idle-streams', 'open-files', 'slow-readers', 'statsd-gone'].map(
    (name) => `tests/faults/${name}.test.ts`,
  ),
]

/**
 * Registers a test, or a group of tests, in the full run only: `fullOnly(test)('…', …)`, `fullOnly(test.for(cases))('…', …)`.
 * In the daily run it registers nothing, because a skipped test fails a run with `CI=true`.
 */
export function fullOnly<R extends (...args: never[]) => unknown>(register: R): R {
  const leaveOut: unknown = () => undefined
  return tier === 'full' ? register : (leaveOut as R) // nobody uses what a registration returns
}

/** How often a test repeats what it does, with random choices or under load. */
export function rounds(count: Record<Tier, number>): number {
  return count[tier]
}

/** The cases of a test that differ in little: the first ones daily, all of them in the full run. */
export function variants<const T>(cases: readonly T[], daily = 1): readonly T[] {
  return tier === 'full' ? cases : cases.slice(0, daily)
}
