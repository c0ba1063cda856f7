/**
 * `npm run bench [-- <part> …]`: measures every row of docs/performance.md that exists, each beside a reference from the same
 * run. Parts: the names below; default all.
 */
import { availableParallelism, totalmem } from 'node:os'
import { refusedLogins, verifiedRequests } from './access.ts'
import { singleExecutable } from './binary.ts'
import { conducting } from './conductor.ts'
import { ruleMatching, webhooks } from './events.ts'
import { oneAtATime, throughput } from './executions.ts'
import { notifying } from './notifications.ts'
import { beingWatched } from './observation.ts'
import { largeOutput, liveDelay, loopDelay, manyFollowers } from './output.ts'
import { scripts } from './scripts.ts'
import { startingWithPacks } from './packs.ts'
import { pythonActions } from './python.ts'
import { printRows, type Row } from './report.ts'
import { commandLine, scale } from './scale.ts'
import { remoteCommands } from './ssh.ts'
import { stopping } from './stop.ts'
import { restingTimers, timersDueAtOnce } from './timers.ts'
import { scrollingAGigabyte } from './web-output.ts'
import { openingTheClient } from './web.ts'
import { runningWorkflows } from './workflow-runs.ts'
import { inspecting } from './workflows.ts'

const parts: Record<string, () => Promise<Row[]>> = {
  latency: oneAtATime,
  script: scripts,
  throughput,
  python: pythonActions,
  stop: stopping,
  live: liveDelay,
  followers: manyFollowers,
  output: largeOutput,
  loop: loopDelay,
  webhook: webhooks,
  rules: ruleMatching,
  timers: async () => [...(await restingTimers()), ...(await timersDueAtOnce())],
  notifications: notifying,
  ssh: remoteCommands,
  inspect: inspecting,
  conductor: conducting,
  workflow: runningWorkflows,
  scale,
  packs: startingWithPacks,
  cli: commandLine,
  binary: singleExecutable,
  web: async () => [...(await openingTheClient()), ...(await scrollingAGigabyte())],
  watched: beingWatched,
  access: async () => [...(await verifiedRequests()), ...(await refusedLogins())],
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !Object.hasOwn(parts, name))
if (unknown.length > 0) {
  process.stderr.write(`There is no part ${unknown.join(', ')}; the parts are ${Object.keys(parts).join(', ')}.\n`)
  process.exit(2)
}

process.stdout.write(
  `Node ${process.versions.node}, ${availableParallelism()} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB; ` +
    'durable as by default (synchronous = full), log at INFO, no authentication unless a row says so\n\n',
)
const rows: Row[] = []
for (const [name, measure] of Object.entries(parts)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  process.stderr.write(`${name} …\n`)
  rows.push(...(await measure()))
}
printRows(rows)
const missed = rows.filter((row) => !row.isMet).length
process.stdout.write(`\n${rows.length - missed} of ${rows.length} budgets met\n`)
