import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createFamilies, createBound } from './families.ts'

test('a label keeps a maximum number of values; further ones are other', async () => {
  const registry = new Registry()
  const families = createFamilies(registry)
  for (let i = 0; i < 600; i += 1) families.count('execution.ended', { action: `p.a${i}`, status: 'failed' })
  families.count('execution.ended', { action: 'p.a0', status: 'succeeded' })
  const page = await registry.getSingleMetricAsString('svc_action_executions_total')
  expect(page).toContain('{action="other",status="failed"} 100')
  expect(page).toContain('{action="p.a499",status="failed"} 1')
  expect(page).toContain('{action="p.a0",status="succeeded"} 1')
  expect(page).not.toContain('p.a500')
})

test('known values stay after the maximum is reached', () => {
  const bound = createBound(2)
  expect(['a', 'b', 'c', 'a', 'b', 'c'].map(bound)).toEqual(['a', 'b', 'other', 'a', 'b', 'other'])
})
