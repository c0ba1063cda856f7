/** `svc sensor tail` over a restart of the server. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { startCli, waitForOutput } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { findPort } from '../helpers/slapd.ts'
import { outputOf, register, waitForState, writePack } from './support.ts'

it('09.3 sensor tail goes on when the server has started again, without a gap and without a repetition', async () => {
  const folder = makeFolder()
  const port = await findPort()
  const start = (): Promise<InProcessApp> =>
    createTestApp({ basePath: folder.path, settings: { 'api.port': String(port) } })
  let server = await start()
  try {
    writePack(folder.path, 'tailed', {
      'sensors/lives.yaml': 'class_name: Lives\nentry_point: lives.sh\nsensor_type: process\n',
      'sensors/lives.sh': `#!/bin/sh
echo life >> ${folder.path}/lives
echo "life $(wc -l < ${folder.path}/lives)" >&2
exec sleep 3000
`,
    })
    await register(server, 'tailed')
    await waitForState(server, 'tailed.Lives', 'running')
    const env = { HOME: folder.path, SVC_API_URL: `http://127.0.0.1:${port}/v1` }
    const tail = startCli(['sensor', 'tail', 'tailed.Lives'], env)
    await waitForOutput(tail, 'the first life', () => tail.stdout().includes('life 1\n'))
    for (const life of [2, 3]) {
      // oxlint-disable-next-line no-await-in-loop -- one restart after the other
      await server.stop()
      // oxlint-disable-next-line no-await-in-loop
      await waitForOutput(tail, 'the outage', () => tail.stderr().split('reconnecting').length === life)
      // oxlint-disable-next-line no-await-in-loop
      server = await start()
      // oxlint-disable-next-line no-await-in-loop
      await waitForOutput(tail, `life ${life}`, () => tail.stdout().includes(`life ${life}\n`))
    }
    expect(tail.stdout()).toBe(await outputOf(server, 'tailed.Lives'))
    expect(readFileSync(join(folder.path, 'lives'), 'utf8')).toBe('life\n'.repeat(3))
    await server.call('POST', '/v1/packs/uninstall', { packs: ['tailed'] })
    const { code, stdout } = await tail.exit
    expect([code, stdout]).toEqual([2, expect.stringContaining('Sensor "tailed.Lives" is not found.')])
  } finally {
    await server.stop()
    folder.remove()
  }
}, 120_000)
