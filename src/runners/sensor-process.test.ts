/** How the lines of a sensor are read: in turns of the event loop, all of them, whatever holds the pipe. */
import { chmodSync, closeSync, constants, openSync, writeSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '../core/ids.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { rounds } from '../../tests/helpers/tiers.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import { createLauncher } from './process/create-launcher.ts'
import { createProcessTrees, type ProcessTrees } from './process/kill-tree.ts'
import type { Launcher } from './process/launcher.ts'
import {
  createSensorProcesses,
  MAX_LINES_PER_TURN,
  type SensorProcess,
  type SensorProcesses,
  type SensorRequest,
} from './sensor-process.ts'

const folder = makeFolder()
let launcher: Launcher
let trees: ProcessTrees
let processes: SensorProcesses

beforeAll(async () => {
  ;({ launcher } = await createLauncher())
  trees = createProcessTrees({ launcher })
  processes = createSensorProcesses({
    launcher,
    trees,
    virtualenvs: { interpreterFor: () => Promise.reject(new Error('no Python')) },
    inheritedEnv: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
    startFile: '',
    cacheFolder: folder.path,
    logLevel: 'INFO',
    packsPaths: [],
    maxPageSize: 100,
  })
})

afterAll(async () => {
  await trees.stop()
  await launcher.stop()
  folder.remove()
})

type Handlers = Partial<Pick<SensorRequest, 'message' | 'wrongLine' | 'emit'>>

async function startSensor(script: string, handlers: Handlers = {}): Promise<SensorProcess> {
  const file = folder.write('sensor.sh', `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o755)
  const started = await processes.startProgram({
    pack: 'tests',
    packFolder: folder.path,
    file,
    marker: newId(),
    env: {},
    job: {},
    emit: () => undefined,
    message: () => undefined,
    wrongLine: () => undefined,
    signal: new AbortController().signal,
    ...handlers,
  })
  if ('problem' in started) throw new Error(started.problem)
  return started
}

it.each([
  ['are no JSON', 'x'],
  ['are no objects', '[1]'],
  ['are objects', '{"type": "ready"}'],
  ['wait for nothing', '{"type": "waits"}'],
])('lines without end that %s leave other work its turns', async (_, line) => {
  let inTurn = 0
  let most = 0
  let count = 0
  const handled = (value: unknown): Promise<void> | undefined => {
    inTurn += 1
    count += 1
    most = Math.max(most, inTurn)
    return line.includes('waits') && typeof value === 'object' ? Promise.resolve() : undefined
  }
  const sensor = await startSensor(`exec yes '${line}'`, { message: handled, wrongLine: handled })
  const ended = waitFor('many lines', () => count >= 20_000).then(async () => {
    await sensor.stop()
    return sensor.ended
  })
  let hasEnded = false
  void ended.finally(() => (hasEnded = true))
  while (!hasEnded) {
    // oxlint-disable-next-line no-await-in-loop -- turn by turn
    await new Promise((resolve) => setImmediate(resolve))
    inTurn = 0
  }
  await ended
  // A turn may handle the end of what was read and the start of what comes next.
  expect(most).toBeLessThanOrEqual(3 * MAX_LINES_PER_TURN)
})

it('all that a sensor has sent is handled after its end, however slowly, and no line is torn', async () => {
  const lines = rounds({ daily: 400, full: 4_000 })
  const numbers: number[] = []
  const wrong: unknown[] = []
  const sensor = await startSensor(`seq -f '{"n": %.0f, "text": "a text of some length"}' ${lines}`, {
    async message({ n }) {
      numbers.push(Number(n))
      // As slow as a disk.
      await new Promise((resolve) => setTimeout(resolve, 1))
    },
    wrongLine(line) {
      wrong.push(line)
      return undefined
    },
  })
  expect(await sensor.ended).toEqual({ exitCode: 0, problem: undefined })
  expect(wrong).toEqual([])
  expect(numbers).toEqual(Array.from({ length: lines }, (_, i) => i + 1))
})

it('a line without a line feed counts at the end; a survivor that holds the pipe holds nothing up', async () => {
  const numbers: unknown[] = []
  const sensor = await startSensor(`echo '{"n": 1}'; printf '{"n": 2}'; read -r start; read -r next`, {
    message({ n }) {
      numbers.push(n)
      return undefined
    },
  })
  // This process is no part of the tree.
  const held = openSync(`/proc/${sensor.identity.pid}/fd/1`, 'w')
  try {
    await waitFor('the first line', () => numbers.length === 1)
    await sensor.stop()
    await sensor.ended
    expect(numbers).toEqual([1, 2])
    expect(() => writeSync(held, '{"n": 3}\n')).toThrow('EPIPE')
    expect(numbers).toEqual([1, 2])
  } finally {
    closeSync(held)
  }
})

it('a survivor that goes on writing is cut', async () => {
  let count = 0
  const sensor = await startSensor('read -r start; read -r next', {
    message() {
      count += 1
      return undefined
    },
  })
  const held = openSync(`/proc/${sensor.identity.pid}/fd/1`, constants.O_WRONLY | constants.O_NONBLOCK)
  const writer = (async () => {
    for (;;) {
      try {
        writeSync(held, '{"n": 3}\n'.repeat(400))
      } catch (error) {
        // The pipe is full.
        if (!String(error).includes('EAGAIN')) throw error
      }
      // oxlint-disable-next-line no-await-in-loop -- it never ends by itself
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  try {
    await Promise.race([writer, waitFor('lines', () => count > 1000)])
    await sensor.stop()
    await sensor.ended
    await expect(writer).rejects.toThrow('EPIPE')
  } finally {
    closeSync(held)
  }
})
