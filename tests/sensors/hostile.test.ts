/** Sensors that take the machine: processes without end, lines without end, dispatches without end. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { instancesOf, register, sensorOf, waitForInstances, waitForOutput, waitForState, writePack } from './support.ts'

let server: TestApp

beforeEach(async () => {
  server = await createTestApp({ settings: { 'sensorcontainer.respawn_delay': '3600' } })
})

afterEach(() => server.stop())

function writeSensor(name: string, text: string): Promise<void> {
  const className = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`
  writePack(server.basePath, 'bad', {
    [`sensors/${name}.py`]: text,
    [`sensors/${name}.yaml`]: `class_name: ${className}\nentry_point: ${name}.py\nsensor_type: process\ntrigger_types: [{name: ${name}}]\n`,
  })
  return register(server, 'bad')
}

/** Commands of the processes of this server that name a folder of its base path. */
function commandsOf(basePath: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const command = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ') : ''
      return command.includes(basePath) ? [command] : []
    } catch {
      return []
    }
  })
}

const CHILDREN = 300
const MOST_CHILDREN = 600

/**
 * Starts children in every way that leaves a tree: other sessions, no parent, no environment, no ear for TERM. Each forks
 * twice when it gets TERM, until there have been `MOST_CHILDREN`.
 */
const bombThat = (then: string): string => `#!/usr/bin/env python3
import mmap, os, signal, struct, sys, time

count = mmap.mmap(-1, 8)

def take(most):
    number = struct.unpack("q", count[:8])[0]
    count[:8] = struct.pack("q", number + 1)
    return number < most

def again(*_):
    for _ in range(2):
        if take(${MOST_CHILDREN}) and os.fork() == 0:
            os.setsid()
            live(0)
    os._exit(0)

def live(kind):
    if kind == 1:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif kind == 2:
        os.execve("/bin/sleep", [os.path.dirname(os.path.abspath(__file__)) + "/sleep", "3000"], {})
    else:
        signal.signal(signal.SIGTERM, again)
    while True:
        time.sleep(1)

def start(number):
    if os.fork() != 0:
        return
    kind, way = number % 3, number // 3 % 3
    if way > 0:
        os.setsid()
    if way == 2 and os.fork() != 0:
        os._exit(0)
    live(kind)

for number in range(${CHILDREN}):
    take(0)
    start(number)
print('{"trigger": "bad.bomb", "payload": {}}', flush=True)
${then}
`

describe('a sensor that starts processes in every way', () => {
  it('leaves none when it is disabled', async () => {
    await writeSensor('bomb', bombThat('time.sleep(3000)'))
    await waitForInstances(server, 'bad.bomb', 1)
    await waitFor('all of them', () => commandsOf(server.basePath).length > CHILDREN)
    await server.call('PUT', '/v1/sensortypes/bad.Bomb', { enabled: false })
    await waitForState(server, 'bad.Bomb', 'disabled')
    expect(commandsOf(server.basePath)).toEqual([])
  }, 120_000)

  it('leaves none when it ends', async () => {
    await writeSensor('bomb', bombThat('sys.exit(3)'))
    await waitForInstances(server, 'bad.bomb', 1)
    await waitForState(server, 'bad.Bomb', 'waiting')
    expect(commandsOf(server.basePath)).toEqual([])
  }, 120_000)
})

it('a line of 100 MB costs nothing but its time, and the next one counts', async () => {
  const before = process.memoryUsage().rss
  await writeSensor(
    'long',
    `#!/usr/bin/env python3
import sys
for out in (sys.stdout, sys.stderr):
    for _ in range(100):
        out.write("x" * 1000000)
    out.write("\\n")
print('{"trigger": "bad.long", "payload": {}}', flush=True)
sys.stdin.read()
`,
  )
  await waitForInstances(server, 'bad.long', 1)
  expect((await sensorOf(server, 'bad.Long')).runtime).toMatchObject({ state: 'running', dispatches: 1, dropped: 1 })
  await waitForOutput(server, 'bad.Long', 'a line has more than 1048576 bytes')
  await waitForOutput(server, 'bad.Long', 'bytes of output: the sensor writes more than')
  expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
}, 120_000)

const DISPATCHES = 100_000

/** Writes all at once; begins behind the last answer of its life before. */
const flood = `#!/usr/bin/env python3
import json, os, sys, threading

notes = os.path.dirname(os.path.abspath(__file__)) + "/notes"
try:
    with open(notes) as file:
        known = len(file.read().split("\\n")) - 1
except FileNotFoundError:
    known = 0

def listen():
    with open(notes, "a") as file:
        for line in sys.stdin:
            message = json.loads(line)
            if message["type"] == "stored":
                file.write(message["id"] + "\\n")
                file.flush()

threading.Thread(target=listen, daemon=True).start()
for number in range(known + 1, ${DISPATCHES} + 1):
    sys.stdout.write('{"trigger": "bad.flood", "payload": {"n": %d}, "id": %d}\\n' % (number, number))
sys.stdout.flush()
threading.Event().wait()
`

it('of 100,000 dispatches at once none is lost and none is there twice, also when it is stopped', async () => {
  await writeSensor('flood', flood)
  const notes = (): string[] => {
    try {
      return readFileSync(join(server.basePath, 'packs', 'bad', 'sensors', 'notes'), 'utf8')
        .split('\n')
        .slice(0, -1)
    } catch {
      return []
    }
  }
  for (const count of [5_000, 20_000]) {
    // oxlint-disable-next-line no-await-in-loop -- one stop after the other
    await waitFor('many answers', () => notes().length >= count)
    // oxlint-disable-next-line no-await-in-loop
    await server.call('PUT', '/v1/sensortypes/bad.Flood', { enabled: false })
    // oxlint-disable-next-line no-await-in-loop
    await waitForState(server, 'bad.Flood', 'disabled')
    // oxlint-disable-next-line no-await-in-loop
    const numbers = new Map((await instancesOf(server, 'bad.flood')).map(({ payload }) => [String(payload['n']), true]))
    expect(notes().filter((id) => !numbers.has(id))).toEqual([])
    // oxlint-disable-next-line no-await-in-loop
    await server.call('PUT', '/v1/sensortypes/bad.Flood', { enabled: true })
  }
  await waitFor('all answers', () => notes().length >= DISPATCHES, 300_000)
  const numbers = (await instancesOf(server, 'bad.flood')).map(({ payload }) => Number(payload['n']))
  expect(numbers.length).toBe(DISPATCHES)
  expect(new Set(numbers).size).toBe(DISPATCHES)
}, 400_000)
