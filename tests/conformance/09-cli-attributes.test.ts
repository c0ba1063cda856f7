/** `-a` with a name that no record has: every list says so, and exits with 1 (contract 09, 9.2). */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { leavesOf, readTree } from '../../src/cli/reference/tree.ts'
import { createTestApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { runToEnd, type TestApp } from '../helpers/server.ts'

let app: TestApp
beforeAll(async () => {
  app = await createTestApp()
  await runToEnd(app, { cmd: 'true' })
  const rule = { name: 'hook', pack: 'default', action: { ref: 'core.noop' } }
  await app.call('POST', '/v1/rules', { ...rule, trigger: { type: 'core.svc.webhook', parameters: { url: 'hook' } } })
  await app.call('PUT', '/v1/keys/k', { name: 'k', value: 'v' })
  await app.call('POST', '/v1/apikeys', {})
})
afterAll(async () => {
  await app.stop()
})

it('09.2 -a with an unknown name ends each list of records with 1', async () => {
  const env = { SVC_API_URL: `${app.urls.api}/v1`, SVC_AUTH_URL: app.urls.auth, SVC_STREAM_URL: app.urls.stream }
  const names = leavesOf(await readTree()).map(({ name }) => name)
  const tried: string[] = []
  const wrong: unknown[] = []
  for (const name of names.filter((each) => each.endsWith(' list'))) {
    const words = [...name.split(' '), '-n', '1']
    const all = await runCli([...words, '-j'], env)
    // Has no -n, is not of the API, or has nothing to show.
    if (all.code !== 0 || all.stdout.trim() === '[]') continue
    tried.push(name)
    const { code, stdout } = await runCli([...words, '-a', 'id', 'doesntexist'], env)
    if (code !== 1 || !stdout.includes('doesntexist')) wrong.push({ name, code, stdout })
  }
  expect(wrong).toEqual([])
  expect(tried).toEqual(
    expect.arrayContaining(['action list', 'execution list', 'key list', 'pack list', 'rule list', 'trigger list']),
  )
})
