/** Whoever may look at executions and not follow the stream of events sees what changes all the same, a little later. */
import { expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { ofUsers, startGuarded } from './session.ts'

it('a list and an execution are brought up to date without the permission to follow', async () => {
  const folder = makeFolder()
  const rbac = createRbacFiles(folder.path)
  rbac.assign('admin', 'system_admin')
  rbac.define('bob', [
    { types: ['execution_list', 'action_list'] },
    { types: ['action_view', 'action_execute'], on: 'action:core:local' },
  ])
  const settings = { 'rbac.enable': 'True', 'rbac.backend': 'default' }
  const stage = await startGuarded({ basePath: folder.path, settings }, ['bob'])
  try {
    const { page, close } = await stage.open('/history', 'bob')
    await page.getByText('Not live').waitFor()
    await page.getByText('No executions that you may see.').waitFor()
    const bob = await signIn(stage.server, 'bob', ofUsers)
    const body = { action: 'core.local', parameters: { cmd: 'sleep 300' } }
    const { status, body: made } = await stage.server.call<{ id: string }>('POST', '/v1/executions', body, bob)
    expect(status).toBe(201)
    const row = page.getByRole('grid', { name: 'Executions' }).getByRole('row').filter({ hasText: 'sleep 300' })
    await row.getByText('running').waitFor()
    await stage.server.call('DELETE', `/v1/executions/${made.id}`, undefined, bob)
    await row.getByText('canceled').waitFor()
    await close()
  } finally {
    await stage.stop()
    folder.remove()
  }
})
