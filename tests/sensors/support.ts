/** What the tests of sensors share: packs with sensors, and what they have dispatched. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

export interface SensorAnswer {
  id: string
  ref: string
  enabled: boolean
  runtime: {
    state: string
    pid?: number
    since?: string
    memory_bytes?: number
    cpu_seconds?: number
    restarts: number
    next_start?: string
    dispatches: number
    dropped: number
    last_dispatch?: string
    last_error?: string
  }
}

export interface InstanceAnswer {
  id: string
  trigger: string
  payload: Record<string, unknown>
  trace_id: string
}

/** Files of a pack; the manifest is added. */
export function writePack(basePath: string, name: string, files: Readonly<Record<string, string>>): void {
  const manifest = `name: ${name}\ndescription: d\nversion: 1.0.0\nauthor: a\n`
  for (const [path, text] of Object.entries({ 'pack.yaml': manifest, ...files })) {
    const file = join(basePath, 'packs', name, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    if (text.startsWith('#!')) chmodSync(file, 0o755)
  }
}

export async function register(server: TestApp, ...packs: string[]): Promise<void> {
  const { status, text } = await server.call('POST', '/v1/packs/register', { packs })
  if (status !== 200) throw new Error(text)
}

export async function sensorOf(server: TestApp, ref: string): Promise<SensorAnswer> {
  const { status, text, body } = await server.call<SensorAnswer>('GET', `/v1/sensortypes/${ref}`)
  if (status !== 200) throw new Error(text)
  return body
}

export function waitForState(server: TestApp, ref: string, ...states: string[]): Promise<SensorAnswer> {
  return waitFor(
    `${ref} to be ${states.join(' or ')}`,
    async () => {
      const sensor = await sensorOf(server, ref)
      return states.includes(sensor.runtime.state) ? sensor : undefined
    },
    30_000,
  )
}

/** Oldest first. */
export async function instancesOf(server: TestApp, trigger: string): Promise<InstanceAnswer[]> {
  const path = `/v1/triggerinstances?trigger=${trigger}&limit=-1`
  return (await server.call<InstanceAnswer[]>('GET', path)).body.toReversed()
}

export function waitForInstances(server: TestApp, trigger: string, count: number): Promise<InstanceAnswer[]> {
  return waitFor(
    `${count} instances of ${trigger}`,
    async () => {
      const found = await instancesOf(server, trigger)
      return found.length >= count ? found : undefined
    },
    30_000,
  )
}

export async function outputOf(server: TestApp, ref: string): Promise<string> {
  const { body } = await server.call<{ data: string }[]>('GET', `/v1/sensortypes/${ref}/output`)
  return body.map(({ data }) => data).join('')
}

export function waitForOutput(server: TestApp, ref: string, text: string): Promise<string> {
  return waitFor(
    `"${text}" in the output of ${ref}`,
    async () => {
      const output = await outputOf(server, ref)
      return output.includes(text) ? output : undefined
    },
    30_000,
  )
}
