/** The server is killed while sensors dispatch: what it has acknowledged is there once, and no sensor is left or runs twice. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { rounds } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { instancesOf, writePack } from './support.ts'

const ROUNDS = rounds({ daily: 3, full: 100 })
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
