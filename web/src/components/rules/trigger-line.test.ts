import { expect, it } from 'vitest'
import { parametersLine, triggerLine } from './trigger-line.ts'

it('tells a trigger in one line', () => {
  expect(triggerLine({ type: 'core.svc.webhook', parameters: { url: 'orders', signature: {} } })).toBe(
    'core.svc.webhook orders',
  )
  const interval = { unit: 'minutes', delta: 5 }
  expect(triggerLine({ type: 'core.svc.IntervalTimer', parameters: interval })).toBe(
    'core.svc.IntervalTimer every 5 minutes',
  )
  expect(parametersLine('core.svc.CronTimer', { hour: 3, minute: '*/5' })).toBe('hour=3 minute=*/5')
  expect(parametersLine('core.svc.CronTimer', { cron: '@daily' })).toBe('@daily')
  const weekly = { cron: '0 9 * * mon', timezone: 'Europe/Berlin', jitter_seconds: 60 }
  expect(parametersLine('core.svc.CronTimer', weekly)).toBe('0 9 * * mon in Europe/Berlin')
  for (const name of ['date', 'run_at']) {
    expect(parametersLine('core.svc.DateTimer', { [name]: '2030-01-01' })).toBe('on 2030-01-01')
  }
  expect(triggerLine({ type: 'pack.type', parameters: {} })).toBe('pack.type')
})

it('cuts what is long, and many', () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`p${i}`, 'v'.repeat(1000)]))
  expect(parametersLine('any', many).length).toBeLessThan(90)
  expect(parametersLine('core.svc.webhook', { url: '😀'.repeat(100) }).isWellFormed()).toBe(true)
})
