/** Rules that an older version has accepted and this one would refuse: they stay, the log names them, they can change. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, it } from 'vitest'
import { withApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { waitFor } from '../helpers/wait.ts'

interface Rule {
  id: string
  enabled: boolean
  criteria: Record<string, unknown>
  trigger: object
}

it('stay, are named in the log, and can be disabled but not written anew', async () => {
  const folder = makeFolder()
  try {
    await withApp({ basePath: folder.path }, async (server) => {
      for (const [name, criteria] of [
        ['old_pattern', { 'trigger.body.a': { type: 'regex', pattern: 'OLD' } }],
        ['old_url', { 'trigger.body.a': { type: 'exists', pattern: true } }],
      ] as const) {
        const { status } = await server.call('POST', '/v1/rules', {
          name,
          enabled: true,
          trigger: { type: 'core.svc.webhook', parameters: { url: name } },
          criteria,
          action: { ref: 'core.noop' },
        })
        expect(status).toBe(201)
      }
    })
    const database = new Sqlite(join(folder.path, 'svc.db'))
    database.exec(`update rules set record = replace(record, '"OLD"', '"(["')`)
    database.exec(`update triggers set record = replace(record, '"old_url"', '"old_url?x=1"')`)
    database.close()

    await withApp({ basePath: folder.path }, async (server) => {
      await waitFor('the rule in the log', () => server.log().includes('default.old_pattern'))
      expect(server.log()).toMatch(/rule "default\.old_pattern" need a change[^\n]+regular expression is invalid/)
      expect(server.log()).toMatch(/A webhook may receive nothing: 'url' has a query/)

      const sent = await server.call('POST', '/v1/webhooks/old_url%3Fx=1', { a: 1 }, { Prefer: 'wait=20' })
      expect(sent.body['executions']).toHaveLength(1)

      for (const name of ['old_pattern', 'old_url']) {
        const { body: rule } = await server.call<Rule>('GET', `/v1/rules/default.${name}`)
        const disabled = await server.call<Rule>('PUT', `/v1/rules/${rule.id}`, { ...rule, enabled: false })
        expect([name, disabled.status, disabled.body.enabled]).toEqual([name, 200, false])
      }
      const { body: rule } = await server.call<Rule>('GET', '/v1/rules/default.old_pattern')
      const anew = { ...rule, criteria: { ...rule.criteria, 'trigger.body.b': { type: 'eq', pattern: 1 } } }
      expect((await server.call('PUT', `/v1/rules/${rule.id}`, anew)).status).toBe(400)
      const moved = { ...rule, trigger: { type: 'core.svc.webhook', parameters: { url: 'b?x=1' } } }
      expect((await server.call('PUT', `/v1/rules/${rule.id}`, moved)).status).toBe(400)
    })
  } finally {
    folder.remove()
  }
})
