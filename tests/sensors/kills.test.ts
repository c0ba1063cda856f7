/** The server is killed while sensors dispatch: what it has acknowledged is there once, and no sensor is left or runs twice. */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { fullOnly, rounds } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { ensureVenv, makeWheel, quickVenv } from '../helpers/wheel.ts'
import { instancesOf, register, sensorOf, waitForState, writePack } from './support.ts'

const ROUNDS = rounds({ daily: 3, full: 100 })
const STARTS = 40
const seed = seedOfRun()

/** Notes each acknowledgement in a file: what the server must still know after its end. */
const python = `
import os
from svc import sensor_service

NOTES = os.environ["HOME"] + "/python.notes"

stored = sensor_service.Channel.stored
def noting(self, name):
    with open(NOTES, "a") as notes:
        notes.write(name + "\\n")
    stored(self, name)
sensor_service.Channel.stored = noting

class Steady(object):
    def __init__(self, sensor_service, config):
        self.service = sensor_service
    def run(self):
        channel = self.service._channel
        while True:
            number = channel._prefix + str(channel._number + 1)
            self.service.dispatch("kills.python", {"id": number})
`

/** Repeats what it had no answer to in its last life, under the same id. */
const program = `#!/usr/bin/env node
const { appendFileSync, readFileSync } = require('node:fs')
const notes = process.env.HOME + '/program.notes'
let next = 1
try { next = readFileSync(notes, 'utf8').trim().split('\\n').length + 1 } catch {}
const send = () => process.stdout.write(JSON.stringify({ trigger: 'kills.program', payload: { id: String(next) }, id: next }) + '\\n')
let rest = ''
process.stdin.on('data', (data) => {
  const lines = (rest + data).split('\\n')
  rest = lines.pop()
  for (const line of lines) {
    const message = JSON.parse(line)
    if (message.type === 'start') send()
    if (message.type !== 'stored' || message.id !== String(next)) continue
    appendFileSync(notes, message.id + '\\n')
    next += 1
    send()
  }
})
process.stdin.on('end', () => setTimeout(() => process.exit(0), 5000))
process.stdout.on('error', () => undefined)
`

const linesOf = (file: string): string[] => {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(0, -1)
  } catch {
    return []
  }
}

/** Pids of sensors of this test by their markers, forks of the same sensor together. */
function runningSensors(base: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
      if (!environment.includes(`HOME=${base}`)) return []
      const marker = /SVC_ACTION_EXECUTION_ID=([0-9a-f]{24})/.exec(environment)?.[1]
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
      if (marker === undefined || command === '') return []
      return command.endsWith('sensor ') ? ['python'] : command.includes('program.js') ? ['program'] : []
    } catch {
      return []
    }
  })
}

it(
  `5.10 ${ROUNDS} times (seed ${seed})`,
  async () => {
    const folder = makeFolder()
    const base = folder.path
    const random = createRandom(seed)
    const yaml = (name: string, file: string, kind: string): string =>
      `class_name: ${name}\nentry_point: ${file}\nsensor_type: ${kind}\ntrigger_types: [{name: ${kind === 'python' ? 'python' : 'program'}}]\n`
    writePack(base, 'kills', {
      'sensors/steady.py': python,
      'sensors/steady.yaml': yaml('Steady', 'steady.py', 'python'),
      'sensors/program.js': program,
      'sensors/program.yaml': yaml('Program', 'program.js', 'process'),
    })
    const [pythonNotes, programNotes] = [join(base, 'python.notes'), join(base, 'program.notes')]
    let server: TestServer | undefined
    try {
      for (let round = 0; round < ROUNDS; round++) {
        server = await startServer({ basePath: base })
        const before = [linesOf(pythonNotes).length, linesOf(programNotes).length] as const
        // At once, or when both have dispatched for a while.
        const wanted = random.below(30)
        await waitFor(
          'acknowledgements',
          () => linesOf(pythonNotes).length >= before[0] + wanted && linesOf(programNotes).length >= before[1] + wanted,
          60_000,
        )
        const running = runningSensors(base)
        expect(running).toEqual([...new Set(running)])
        await server.stop('SIGKILL')
      }
      server = await startServer({ basePath: base, settings: { 'sensorcontainer.enable': 'False' } })
      await waitFor('no sensor to be left', () => runningSensors(base).length === 0, 30_000)
      for (const [trigger, notes] of [
        ['kills.python', pythonNotes],
        ['kills.program', programNotes],
      ] as const) {
        const counts = new Map<string, number>()
        for (const { payload } of await instancesOf(server, trigger)) {
          const id = String(payload['id'])
          counts.set(id, (counts.get(id) ?? 0) + 1)
        }
        expect(linesOf(notes).filter((id) => counts.get(id) !== 1)).toEqual([])
        expect([...counts].filter(([, count]) => count > 1)).toEqual([])
        expect(linesOf(notes).length).toBeGreaterThan(0)
      }
    } finally {
      await server?.stop()
      folder.remove()
    }
  },
  ROUNDS * 60_000,
)

/** Holds a lock as long as it lives, and says when another life of it does. */
const locked = (name: string): string => `
import fcntl, os, subprocess, sys, time

base = os.environ["HOME"]
lock = open(base + "/${name}.lock", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    with open(base + "/doubles", "a") as doubles:
        doubles.write("${name}\\n")
with open(base + "/${name}.lives", "a") as lives:
    lives.write("life\\n")
`
const stays = (name: string): string => `${locked(name)}
import tiny_test_wheel

class ${name}(object):
    def __init__(self, sensor_service, config):
        pass
    def run(self):
        while True:
            time.sleep(1)
`
/** What it starts has left its session, has no environment, ignores TERM, and holds the lock. */
const forks = `#!/usr/bin/env python3
${locked('Forks')}
os.set_inheritable(lock.fileno(), True)
for _ in range(3):
    subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(3000)", base], env={}, close_fds=False, start_new_session=True)
time.sleep(3000)
`
const crashes = `#!/usr/bin/env python3\n${locked('Crashes')}\nsys.exit(3)\n`
const classes = ['Installs', 'Forks', 'Crashes', 'Toggles'] as const

/** Entries below a folder. */
const entriesOf = (folder: string): number => {
  try {
    return readdirSync(folder, { recursive: true }).length
  } catch {
    return 0
  }
}

/** Processes that name the folder. */
const commandsIn = (base: string): string[] =>
  readdirSync('/proc').flatMap((pid) => {
    try {
      const command = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ') : ''
      return command.includes(base) ? [command] : []
    } catch {
      return []
    }
  })

fullOnly(it)(
  `5.10 ${STARTS} times while sensors install, start, crash and are enabled and disabled (seed ${seed})`,
  async () => {
    const folder = makeFolder()
    const base = folder.path
    const random = createRandom(seed)
    await ensureVenv()
    makeWheel(base, '1.0')
    const yaml = (name: string, kind: string): string =>
      `class_name: ${name}\nentry_point: ${name.toLowerCase()}.py\nsensor_type: ${kind}\n`
    writePack(base, 'moves', {
      'requirements.txt': `--no-index\n--find-links ${base}\ntiny-test-wheel==1.0\n`,
      'sensors/installs.py': stays('Installs'),
      'sensors/installs.yaml': yaml('Installs', 'python'),
      'sensors/toggles.py': stays('Toggles'),
      'sensors/toggles.yaml': yaml('Toggles', 'python'),
      'sensors/forks.py': forks,
      'sensors/forks.yaml': yaml('Forks', 'process'),
      'sensors/crashes.py': crashes,
      'sensors/crashes.yaml': yaml('Crashes', 'process'),
    })
    const settings = {
      'actionrunner.virtualenv_opts': quickVenv.join(','),
      'sensorcontainer.respawn_delay': '0.1',
      'sensorcontainer.max_respawn_delay': '1',
    }
    const environment = join(base, 'virtualenvs', 'moves')
    const livesOf = (name: string): number => linesOf(join(base, `${name}.lives`)).length
    let server: TestServer | undefined
    /** What the server has acknowledged last, and what it may have done since. */
    const enabled = new Map<string, Set<boolean>>()
    let acknowledged = 0

    /** Enables and disables a sensor until the server is dead. */
    async function toggle(of: TestServer, name: string): Promise<void> {
      for (let value = random.once(2); ; value = !value) {
        enabled.set(name, new Set([...(enabled.get(name) ?? []), value]))
        try {
          // oxlint-disable-next-line no-await-in-loop -- one change after the other
          const { status } = await of.call('PUT', `/v1/sensortypes/moves.${name}`, { enabled: value })
          if (status !== 200) continue
        } catch {
          return
        }
        enabled.set(name, new Set([value]))
        acknowledged += 1
      }
    }

    try {
      for (let round = 0; round < STARTS; round++) {
        server = await startServer({ basePath: base, settings })
        const now = server
        if (round === 0) await register(now, 'moves')
        const toggles = ['Toggles', 'Forks'].map((name) => toggle(now, name))
        const [crashes, changes, entries] = [livesOf('Crashes'), acknowledged, random.below(30)]
        const installs = livesOf('Installs')
        const reached = random.pick<() => boolean>([
          () => entriesOf(environment) >= entries || livesOf('Installs') > installs,
          () => livesOf('Crashes') >= crashes + 1 + random.below(4),
          () => acknowledged >= changes + random.below(20),
        ])
        await waitFor('the moment', reached, 60_000)
        await server.stop('SIGKILL')
        await Promise.all(toggles)
        if (random.once(2)) rmSync(environment, { recursive: true, force: true })
      }
      server = await startServer({ basePath: base, settings })
      for (const [name, values] of enabled) {
        expect([name, [...values]]).toEqual([
          name,
          expect.arrayContaining([(await sensorOf(server, `moves.${name}`)).enabled]),
        ])
        await server.call('PUT', `/v1/sensortypes/moves.${name}`, { enabled: true })
      }
      for (const name of classes) {
        await waitForState(server, `moves.${name}`, ...(name === 'Crashes' ? ['failed'] : ['running']))
      }
      expect(linesOf(join(base, 'doubles'))).toEqual([])
      await server.stop()
      expect(commandsIn(base)).toEqual([])
    } finally {
      await server?.stop()
      folder.remove()
    }
  },
  STARTS * 60_000,
)
