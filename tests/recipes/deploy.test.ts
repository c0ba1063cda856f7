/** docs/recipes/deploy.md: the files of the page, GitHub's pushes, and a Slack on loopback. */
import { createHmac } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { send } from '../conformance/support.ts'
import { withApp } from '../helpers/app.ts'
import { blocksOf } from '../helpers/doc-blocks.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { startReceiver } from '../helpers/receiver.ts'
import type { ExecutionAnswer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { adapted, recipe } from './support.ts'

const PAGE = 'deploy.md'
const SECRET = 'a secret of 28 characters !!'
const PUBLIC = 'https://svc.example.com/'
/** What a deployment does in this test: it fails for some commits. */
const COMMANDS = 'case $commit in bad*) echo "no space left" >&2; exit 3;; esac'

test('each push is deployed, one at a time, and Slack hears how it ended', async () => {
  const folder = makeFolder()
  const slack = await startReceiver()
  try {
    for (const { text } of blocksOf(recipe(PAGE))) {
      const [, path] = /^# ((?:packs|notifications)\/\S+)\n/.exec(text) ?? []
      if (path === undefined) continue
      const file = join(folder.path, path)
      mkdirSync(dirname(file), { recursive: true })
      const isScript = path.endsWith('.sh')
      writeFileSync(file, isScript ? adapted(text, { '# Your commands:': `${COMMANDS}\n# Your commands:` }) : text)
    }
    const settings = { 'auth.enable': 'True', 'webui.webui_base_url': PUBLIC, 'notifications.digest_threshold': '0' }
    await withApp({ basePath: folder.path, settings }, async (server) => {
      const admin = await signIn(server, 'admin', firstPassword(folder.path))
      const keys = { slack: `${slack.url}/services/T0/B0/secret`, github_secret: SECRET }
      for (const [name, value] of Object.entries(keys)) {
        const { status } = await server.call('PUT', `/v1/keys/${name}`, { name, value, secret: true }, admin)
        expect(status).toBe(200)
      }
      let deliveries = 0
      const push = async (commit: string, ref = 'refs/heads/main'): Promise<void> => {
        const body = JSON.stringify({ ref, after: commit, repository: { full_name: 'shop/api' } })
        const signature = createHmac('sha256', SECRET).update(body).digest('hex')
        const headers = {
          'Content-Type': 'application/json',
          'X-GitHub-Event': 'push',
          'X-GitHub-Delivery': `delivery-${++deliveries}`,
          'X-Hub-Signature-256': `sha256=${signature}`,
        }
        const answer = await send(server.urls.api, { method: 'POST', path: '/api/v1/webhooks/github', headers, body })
        expect(answer.status).toBe(202)
      }
      const told = async (count: number): Promise<string> => {
        await waitFor(`${count} messages`, () => slack.received.length >= count)
        return slack.received[count - 1]?.text ?? ''
      }

      await push('of-a-branch', 'refs/heads/next')
      await push('good1')
      const first = await told(1)
      expect(first).toContain('Succeeded: shop.push')
      expect(first).toContain(`${PUBLIC}#/history/`)
      await push('bad2')
      const second = await told(2)
      expect(second).toContain('Failed: shop.push')
      expect(second).toContain('no space left')
      await push('good3')
      expect(await told(3)).toContain('Recovered: shop.push')

      const { body } = await server.call<ExecutionAnswer[]>(
        'GET',
        '/v1/executions?action=shop.deploy',
        undefined,
        admin,
      )
      const done = body.map(({ status, result }) => [status, String(result['stdout'])])
      expect(done.toReversed()).toEqual([
        ['succeeded', 'deploy shop/api at good1'],
        ['failed', 'deploy shop/api at bad2'],
        ['succeeded', 'deploy shop/api at good3'],
      ])
      expect(slack.received.map(({ path }) => path)).toEqual(Array(3).fill('/services/T0/B0/secret'))
      expect(JSON.stringify([slack.received, body])).not.toContain(SECRET)
    })
  } finally {
    await slack.close()
    folder.remove()
  }
})
