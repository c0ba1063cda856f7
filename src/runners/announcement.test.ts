import { expect, it } from 'vitest'
import { recordRun } from '../../tests/helpers/run-context.ts'
import { createAnnouncement } from './announcement.ts'

const runner = createAnnouncement()

it('announces the parameters of the action, without what is secret', async () => {
  const { context, announced } = recordRun(
    { route: 'chat.ops', experimental: true },
    {
      actionParameters: { message: { text: 'hello' }, key: 'geheim' },
      parameterSchemas: { message: { type: 'object' }, key: { secret: true } },
    },
  )
  const message = { message: { text: 'hello' }, key: '********' }
  expect(await runner.run(context)).toEqual({ status: 'succeeded', result: { ...message, output: message } })
  expect(announced).toEqual([{ route: 'chat.ops', message }])
})

it('has a route of its own accord', async () => {
  const { context, announced } = recordRun({})
  expect(await runner.run(context)).toEqual({ status: 'succeeded', result: { output: {} } })
  expect(announced).toEqual([{ route: 'general', message: {} }])
})

it.each(['', 'a\nevent: svc.execution__update', 'a\r', 'a b', 'a\u2028', 'x'.repeat(256), 5])(
  'does not announce on the route %j',
  async (route) => {
    const { context, announced } = recordRun({ route })
    expect(await runner.run(context)).toMatchObject({
      status: 'failed',
      result: { error: expect.stringContaining('"route"') },
    })
    expect(announced).toEqual([])
  },
)
